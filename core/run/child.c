#include "core/run/child.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"

static bool write_all(int fd, const void *data, size_t size_bytes)
{
    const char *p = data;

    while (size_bytes > 0) {
        ssize_t n = write(fd, p, size_bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        size_bytes -= (size_t)n;
    }
    return true;
}

static volatile sig_atomic_t interrupt;

static void on_term(int number)
{
    (void)number;
    interrupt = 1;
}

const volatile sig_atomic_t *child_interrupt(void)
{
    signal(SIGTERM, on_term);
    return &interrupt;
}

/* Ctrl-C reaches the whole foreground group: the parent decides what happens to its children. */
static void child_main(child_fn *fn, void *arg, pid_t parent, int pipe_fd, struct run_result *result)
{
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* it died before */
    fn(arg, result);
    fflush(stdout);
    fflush(stderr);
    _exit(write_all(pipe_fd, result, sizeof *result) ? 0 : 1);
}

enum status child_start(struct child *c, child_fn *fn, void *arg, uint64_t timeout_ns, struct run_result *result)
{
    pid_t parent = getpid(), pid;
    int ends[2];

    if (pipe(ends) != 0) {
        log_error("cannot create a pipe: %s", strerror(errno));
        return ST_ENVIRONMENT;
    }
    memset(result, 0, sizeof *result);
    fflush(stdout);
    fflush(stderr);
    pid = fork();
    if (pid < 0) {
        log_error("cannot start a child process: %s", strerror(errno));
        close(ends[0]);
        close(ends[1]);
        return ST_ENVIRONMENT;
    }
    if (pid == 0) {
        close(ends[0]);
        child_main(fn, arg, parent, ends[1], result);
    }
    close(ends[1]);
    *c = (struct child){.pid = pid,
                        .pipe = ends[0],
                        .timeout_ns = timeout_ns,
                        .deadline_ns = clock_now_ns() + timeout_ns,
                        .result = result};
    return ST_OK;
}

static void fail(struct run_result *r, enum status st, const char *text)
{
    memset(r, 0, sizeof *r);
    r->status = st;
    snprintf(r->report, sizeof r->report, "%s", text);
}

/* What is left of a result when the child was stopped for its time: where it stood then. */
static void say_late(struct child *c)
{
    char stood[sizeof c->result->report];

    memcpy(stood, c->result->report, sizeof stood);
    c->result->status = ST_HANG;
    snprintf(c->result->report, sizeof c->result->report,
             "no result after %.3g s of real time (--timeout sets the limit)\n%.*s", (double)c->timeout_ns / 1e9,
             (int)sizeof stood - 100, stood);
}

/* The child is gone and left no whole result: say why. */
static void explain(struct child *c, int how)
{
    char text[512];

    if (c->timed_out) {
        snprintf(text, sizeof text, "no result after %.3g s of real time: killed (--timeout sets the limit)",
                 (double)c->timeout_ns / 1e9);
        fail(c->result, ST_HANG, text);
    } else if (c->asked && WIFSIGNALED(how) && (WTERMSIG(how) == SIGTERM || WTERMSIG(how) == SIGKILL)) {
        fail(c->result, ST_INTERRUPTED, ""); /* it did not say where it stood */
    } else if (WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) {
        fail(c->result, ST_MEMORY,
             "the run was killed by signal 9, most likely by the kernel for lack of memory: "
             "try fewer --jobs or a smaller problem");
    } else if (WIFSIGNALED(how)) {
        snprintf(text, sizeof text, "the run crashed with signal %d (%s): this is a bug in mkernel", WTERMSIG(how),
                 strsignal(WTERMSIG(how)));
        fail(c->result, ST_WRONG, text);
    } else {
        snprintf(text, sizeof text, "the run ended with code %d and no result: this is a bug in mkernel",
                 WEXITSTATUS(how));
        fail(c->result, ST_WRONG, text);
    }
}

static void reap(struct child *c)
{
    struct rusage usage;
    int how = 0;

    close(c->pipe);
    while (wait4(c->pid, &how, 0, &usage) < 0)
        assert(errno == EINTR);
    if (c->received < sizeof *c->result)
        explain(c, how);
    else if (c->timed_out && c->result->status == ST_INTERRUPTED)
        say_late(c);
    c->result->cpu_seconds = (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 +
                             (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
    c->result->peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    c->pid = 0;
}

void child_stop(struct child *c)
{
    if (c->pid == 0)
        return;
    c->asked = true;
    c->deadline_ns = clock_now_ns() + CHILD_GRACE_NS;
    kill(c->pid, SIGTERM);
}

static void end_in_time(struct child *c)
{
    if (c->asked) {
        kill(c->pid, SIGKILL);
        return;
    }
    c->timed_out = true;
    child_stop(c);
}

bool child_step(struct child *c)
{
    char spill;
    ssize_t n;

    assert(c->pid > 0);
    if (clock_now_ns() >= c->deadline_ns)
        end_in_time(c);
    if (poll(&(struct pollfd){.fd = c->pipe, .events = POLLIN}, 1, 0) <= 0)
        return false;
    if (c->received < sizeof *c->result)
        n = read(c->pipe, (char *)c->result + c->received, sizeof *c->result - c->received);
    else
        n = read(c->pipe, &spill, 1);
    if (n < 0)
        return false; /* EINTR: asked again */
    c->received += (size_t)n;
    if (n > 0)
        return false;
    reap(c); /* end of file: the child is gone */
    return true;
}
