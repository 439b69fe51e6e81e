/* A star: member 0 holds one end of a socket pair to each other member, collects and hands out. */
#include "backends/net/bootstrap_local.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "core/clock.h"
#include "core/log.h"

struct local {
    uint32_t size;
    int ends[LOCAL_MEMBERS_MAX][2]; /* [i][0] is member 0's end of the pair to i, [i][1] is i's */
};

struct member {
    struct bootstrap b;
    struct local *local;
    uint64_t timeout_ns;
    local_member_fn *fn;
    void *arg;
    int code;
    pthread_t thread;
    pid_t pid;
};

/* ---- bytes ---- */

static enum status gone(struct bootstrap *b, uint32_t other, int error)
{
    snprintf(b->error, sizeof b->error, "bootstrap: member %u of %u is gone: %s", other, b->size,
             error ? strerror(error) : "it closed the connection");
    return ST_IO;
}

static enum status await_ready(struct bootstrap *b, uint32_t other, int fd, short events, uint64_t deadline_ns)
{
    uint64_t now = clock_now_ns();
    struct pollfd p = {.fd = fd, .events = events};
    int wait_ms = now < deadline_ns ? (int)((deadline_ns - now) / 1000000) + 1 : 0;
    int ready = poll(&p, 1, wait_ms);

    if (ready < 0 && errno != EINTR)
        return gone(b, other, errno);
    if (ready > 0 || now < deadline_ns)
        return ST_OK;
    snprintf(b->error, sizeof b->error, "bootstrap: member %u of %u does not answer", other, b->size);
    return ST_HANG;
}

/* All of `bytes`, one way. */
static enum status transfer(struct bootstrap *b, uint32_t other, int fd, bool out, void *data, size_t bytes)
{
    struct member *m = b->state;
    uint64_t deadline_ns = clock_now_ns() + m->timeout_ns;
    uint8_t *at = data;

    while (bytes > 0) {
        ssize_t n = out ? send(fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(fd, at, bytes, MSG_DONTWAIT);

        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        } else if (n == 0) {
            return gone(b, other, 0);
        } else if (errno != EAGAIN && errno != EINTR) {
            return gone(b, other, errno);
        } else {
            TRY(await_ready(b, other, fd, out ? POLLOUT : POLLIN, deadline_ns));
        }
    }
    return ST_OK;
}

/* ---- the bootstrap ---- */

static enum status local_allgather(struct bootstrap *b, const void *mine, size_t bytes, void *all)
{
    struct member *m = b->state;
    uint8_t *to = all;

    memmove(to + b->rank * bytes, mine, bytes);
    if (b->rank > 0) {
        int fd = m->local->ends[b->rank][1];

        TRY(transfer(b, 0, fd, true, to + b->rank * bytes, bytes));
        return transfer(b, 0, fd, false, all, bytes * b->size);
    }
    for (uint32_t i = 1; i < b->size; i++)
        TRY(transfer(b, i, m->local->ends[i][0], false, to + i * bytes, bytes));
    for (uint32_t i = 1; i < b->size; i++)
        TRY(transfer(b, i, m->local->ends[i][0], true, all, bytes * b->size));
    return ST_OK;
}

/* Shuts the member's own ends, so that the others notice whoever else still holds them. */
static void local_close(struct bootstrap *b)
{
    struct member *m = b->state;

    if (b->rank > 0)
        shutdown(m->local->ends[b->rank][1], SHUT_RDWR);
    for (uint32_t i = 1; b->rank == 0 && i < b->size; i++)
        shutdown(m->local->ends[i][0], SHUT_RDWR);
}

static const struct bootstrap_ops local_ops = {
    .name = "local",
    .allgather = local_allgather,
    .close = local_close,
};

/* ---- members ---- */

static void *member_main(void *arg)
{
    struct member *m = arg;

    m->code = m->fn(&m->b, m->arg);
    bootstrap_close(&m->b);
    return NULL;
}

/* A member keeps its own ends only: a pair whose other end's process has died then reads as closed. */
static void close_others_ends(const struct local *l, uint32_t rank)
{
    for (uint32_t i = 1; i < l->size; i++) {
        if (rank != 0)
            close(l->ends[i][0]);
        if (rank != i)
            close(l->ends[i][1]);
    }
}

/* _exit() asks no sanitizer. */
static bool leaks(void)
{
#ifdef __SANITIZE_ADDRESS__
    return __lsan_do_recoverable_leak_check() != 0;
#else
    return false;
#endif
}

static bool start_process(struct member *m)
{
    fflush(NULL); /* or the child would write it a second time */
    m->pid = fork();
    if (m->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody stays behind when the test is killed */
        close_others_ends(m->local, m->b.rank);
        member_main(m);
        fflush(NULL);
        _exit(m->code == 0 && leaks() ? LOCAL_LEAKS : m->code);
    }
    return m->pid > 0;
}

static bool start(enum local_kind kind, struct member *m)
{
    return kind == LOCAL_PROCESSES ? start_process(m) : pthread_create(&m->thread, NULL, member_main, m) == 0;
}

static bool reap(struct member *m)
{
    int how;

    if (m->pid == 0 || waitpid(m->pid, &how, WNOHANG) != m->pid)
        return m->pid == 0;
    m->code = WIFSIGNALED(how) ? LOCAL_KILLED + WTERMSIG(how) : WEXITSTATUS(how);
    m->pid = 0;
    return true;
}

static void reap_all(struct member *members, uint32_t count, uint64_t deadline_ns)
{
    bool killed = false;

    for (uint32_t left = count; left > 0;) {
        left = 0;
        for (uint32_t i = 0; i < count; i++)
            left += !reap(&members[i]);
        if (left > 0 && !killed && clock_now_ns() > deadline_ns) {
            for (uint32_t i = 0; i < count; i++)
                if (members[i].pid > 0)
                    kill(members[i].pid, SIGKILL);
            killed = true;
        }
        if (left > 0)
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

static bool local_open(struct local *l, uint32_t size)
{
    l->size = 1;
    for (uint32_t i = 1; i < size; i++, l->size++)
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, l->ends[i]) != 0) {
            log_error("bootstrap: no socket pair: %s", strerror(errno));
            return false;
        }
    return true;
}

static void close_ends(struct local *l)
{
    for (uint32_t i = 1; i < l->size; i++) {
        close(l->ends[i][0]);
        close(l->ends[i][1]);
    }
}

/* Processes hold the ends themselves: what stays open here would keep a dead one's pair alive. */
static bool run_members(enum local_kind kind, struct local *l, struct member *members, double timeout_s)
{
    uint32_t started = 0;

    while (started < l->size && start(kind, &members[started]))
        started++;
    if (started < l->size) {
        log_error("bootstrap: member %u of %u did not start: %s", started, l->size, strerror(errno));
        for (uint32_t i = 1; i < l->size; i++)
            shutdown(l->ends[i][0], SHUT_RDWR);
    }
    if (kind == LOCAL_PROCESSES) {
        close_ends(l);
        reap_all(members, started, clock_now_ns() + (uint64_t)(timeout_s * 1e9));
        return started == l->size;
    }
    for (uint32_t i = 0; i < started; i++)
        pthread_join(members[i].thread, NULL);
    close_ends(l);
    return started == l->size;
}

bool local_run(enum local_kind kind, uint32_t size, double timeout_s, local_member_fn *fn, void *arg, int *codes)
{
    struct local l;
    struct member members[LOCAL_MEMBERS_MAX];
    bool ok;

    assert(size >= 1 && size <= LOCAL_MEMBERS_MAX);
    if (!local_open(&l, size)) {
        close_ends(&l);
        return false;
    }
    memset(members, 0, sizeof members);
    for (uint32_t i = 0; i < size; i++)
        members[i] = (struct member){
            .b = {.ops = &local_ops, .rank = i, .size = size, .state = &members[i]},
            .local = &l,
            .timeout_ns = (uint64_t)(timeout_s * 1e9),
            .fn = fn,
            .arg = arg,
        };
    ok = run_members(kind, &l, members, timeout_s);
    for (uint32_t i = 0; i < size; i++)
        codes[i] = members[i].code;
    return ok;
}
