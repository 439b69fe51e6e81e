/* A run of two processes, one a node, over TCP, in which something breaks: it ends on both nodes in under ten
 * seconds with exit code 4 or 5 and a report that names the node at fault, and leaks nothing.
 *
 *   test_faults [OPTIONS]
 *
 * OPTIONS are the cpu backend's, "transport=verbs transport_options=device=rxe0,rxe1": the run without a fault and the
 * fault that any transport can have, over that one, which has to be there.  Without them everything over TCP.
 *
 * All that the processes tell each other passes through the launcher of pair.h, so that it can be tampered with. */
#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"
#include "backends/net/proxy.h"
#include "backends/net/transport.h"
#include "core/clock.h"
#include "kernels/kernels.h"
#include "late_puts.h"
#include "pair.h"

#include "../suite.h"

#define FAULT_MS 200
#define FOREVER 2000000 /* epochs */

enum fault {
    FAULT_NONE,
    FAULT_KILLED,  /* node 1's process dies */
    FAULT_STOPPED, /* it stays, but does nothing any more: queues fill up */
    FAULT_LINK,    /* its connections break */
    FAULT_STUCK,   /* it dies, and node 0's proxy is inside a call of the transport that never returns */
    FAULT_REFUSED, /* nobody listens where it says */
    FAULT_KEY,     /* the key of its window is not the one that it tells */
};

static enum fault fault;
static const char *transport = "transport=ofi";
static bool has_to_run;

static struct shared { /* with the processes of both nodes */
    _Atomic bool stuck;
} * shared;

static struct pair_outcome outcomes[2]; /* by node */

static void tamper(uint8_t *message, size_t bytes)
{
    uint32_t kind;
    size_t head = bytes % sizeof(struct endpoint_address);

    memcpy(&kind, message, sizeof kind);
    if (kind != MESSAGE_CHILD_GATHER || bytes < sizeof(struct endpoint_address))
        return;
    for (size_t at = head; at < bytes; at += sizeof(struct endpoint_address)) {
        struct endpoint_address a;

        memcpy(&a, message + at, sizeof a);
        if (fault == FAULT_KEY)
            a.window_key ^= 0x5a5a;
        if (fault == FAULT_REFUSED)
            for (size_t i = 0; i + 6 <= sizeof a.own; i++)
                if (memcmp(&a.own[i], "\x02\x00", 2) == 0 && (a.own[i + 2] || a.own[i + 3])) {
                    a.own[i + 2] = 0; /* a socket address: port 9, where nobody listens */
                    a.own[i + 3] = 9;
                    break;
                }
        memcpy(message + at, &a, sizeof a);
    }
}

/* ---- what breaks ---- */

/* How many connections over TCP there are; with `and_break` there were. */
static int connections(bool and_break)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    int count = 0;

    while ((entry = readdir(folder))) {
        struct sockaddr_storage peer;
        socklen_t bytes = sizeof peer;
        int fd = atoi(entry->d_name);

        if (getpeername(fd, (struct sockaddr *)&peer, &bytes) != 0 ||
            (peer.ss_family != AF_INET && peer.ss_family != AF_INET6))
            continue;
        count++;
        if (and_break)
            shutdown(fd, SHUT_RDWR);
    }
    closedir(folder);
    return count;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static _Atomic bool over; /* the run that something breaks in */

/* As in a library that waits for a lock which nobody will release. */
static void stay(int number)
{
    (void)number;
    for (;;)
        pause();
}

/* Catches the proxy's thread, wherever it is. */
static void stick_proxy(void)
{
    DIR *folder = opendir("/proc/self/task");
    struct dirent *entry;

    signal(SIGUSR1, stay);
    while ((entry = readdir(folder))) {
        char path[300], name[32] = "";
        FILE *f;

        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        f = fopen(path, "r");
        if (f && fgets(name, sizeof name, f) && strcmp(name, PROXY_THREAD_NAME "\n") == 0)
            shared->stuck = tgkill(getpid(), atoi(entry->d_name), SIGUSR1) == 0;
        if (f)
            fclose(f);
    }
    closedir(folder);
}

/* Some time after the nodes have begun to talk.  A link that is down stays down: where nothing was on its way when it
 * broke, the provider connects anew without a word. */
static void *break_later(void *arg)
{
    while (connections(false) == 0)
        pause_ms(10);
    pause_ms(FAULT_MS);
    if (fault == FAULT_STUCK && pair_node == 0)
        stick_proxy();
    while (fault == FAULT_STUCK && !shared->stuck)
        pause_ms(10);
    if (pair_node == 0)
        return arg;
    if (fault == FAULT_KILLED || fault == FAULT_STUCK)
        kill(getpid(), SIGKILL);
    else if (fault == FAULT_STOPPED)
        kill(getpid(), SIGSTOP);
    else
        while (!over) /* without a pause, in which a new connection could carry a whole epoch */
            connections(true);
    return arg;
}

#if defined __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#define LEAKS() __lsan_do_recoverable_leak_check()
#else
#define LEAKS() 0
#endif

/* The backend takes ten times as long as it is told where a sanitizer slows everything down. */
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define DEFAULT_TIMEOUT " timeout=1s"
#define SHORT_TIMEOUT " timeout=400ms"
#define LIMIT_S 30
#else
#define DEFAULT_TIMEOUT "" /* 10s */
#define SHORT_TIMEOUT " timeout=4s"
#define LIMIT_S 10
#endif

/* Whether what is left behind is ours to answer for.  A call that does not return keeps what it has; and libfabric 1.17
 * may lose a connection that is cut while it is being made (once, 376 bytes, both blocks its own). */
static bool leak_is_ours(void)
{
    return fault != FAULT_STUCK && fault != FAULT_LINK;
}

/* The cpu backend, with a thread on node 1 that breaks something. */
static enum status faulty_run(const struct job *job, struct run_result *r)
{
    bool later = fault == FAULT_STUCK || (job->nodes->node == 1 && fault >= FAULT_KILLED && fault <= FAULT_LINK);
    pthread_t thread;

    over = false;
    if (later)
        pthread_create(&thread, NULL, break_later, NULL);
    cpu_backend.run(job, r);
    over = true;
    if (later)
        pthread_join(thread, NULL);
    if (leak_is_ours() && LEAKS()) {
        r->status = ST_WRONG;
        snprintf(r->report, sizeof r->report, "it leaks memory");
    }
    return r->status;
}

static struct backend faulty_backend;

/* ---- a run on two nodes ---- */

/* Returns how long it took. */
static double run(enum fault what, const char *options, uint32_t epochs)
{
    char all_options[256];
    double seconds;

    fault = what;
    faulty_backend = cpu_backend;
    faulty_backend.run = faulty_run;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    snprintf(all_options, sizeof all_options, "%s%s", transport, options);
    seconds = pair_run(
        &(struct pair_trial){
            .backend = &faulty_backend,
            .kernel = &ag_gemm_kernel,
            .problem = {.m = 64, .n = 32, .k = 64},
            .gpus = 1,
            .timing = {.mode = TIMING_PIPELINED, .iterations = epochs},
            .params = "tile_m=16 tile_n=16",
            .options = all_options,
            .tamper = tamper,
        },
        outcomes);
    munmap(shared, sizeof *shared);
    return seconds;
}

static bool can_run(void)
{
    const struct transport *t = transport_find("ofi");
    char why[256] = "built without libfabric";

    if (has_to_run || (t && transport_available(t, why, sizeof why) >= 0))
        return true;
    fprintf(stderr, "test_faults: skipped: ofi: %s\n", why);
    return false;
}

START_TEST(nothing_breaks)
{
    uint32_t epochs = has_to_run ? 60 : 5; /* enough packets for some to be lost, where they are */

    if (!can_run())
        return;
    run(FAULT_NONE, "", epochs);
    for (int i = 0; i < 2; i++) {
        const struct pair_outcome *o = &outcomes[i];

        ck_assert_msg(o->status == ST_OK, "node %d: %d %s", i, o->status, o->report);
        ck_assert_uint_eq(o->checked, epochs * 2 * 64 * 32);
    }
}
END_TEST

static const struct fault_row {
    const char *name;
    enum fault fault;
    const char *options;
} rows[] = {
    {"wrong key", FAULT_KEY, ""}, /* the only one that does not look for connections over TCP */
    {"killed", FAULT_KILLED, ""},
    {"stopped, queues full", FAULT_STOPPED, " fifo=2" SHORT_TIMEOUT},
    {"link down", FAULT_LINK, SHORT_TIMEOUT}, /* by an error, or by silence where connecting anew takes for ever */
    {"refused", FAULT_REFUSED, DEFAULT_TIMEOUT},
#ifndef __SANITIZE_THREAD__ /* whatever a thread that is left behind has ever read counts as a race with its end */
    {"killed, and the other end stuck", FAULT_STUCK, ""},
#endif
};

START_TEST(a_fault_ends_the_run_on_both_nodes)
{
    const struct fault_row *row = &rows[_i];
    double seconds;

    if (!can_run())
        return;
    seconds = run(row->fault, row->options, FOREVER);
    for (int i = 0; i < 2; i++) {
        const struct pair_outcome *o = &outcomes[i];
        int code = status_exit_code(o->status);

        ck_assert_msg(code == 4 || code == 5, "%s: node %d: exit code %d: %s", row->name, i, code, o->report);
        ck_assert_msg(strstr(o->report, "node 1"), "%s: node %d does not name the peer: %s", row->name, i, o->report);
    }
    if (getenv("MKERNEL_TEST_VERBOSE"))
        fprintf(stderr, "%s: %.1f s, %s\n%s\n", row->name, seconds, status_text(outcomes[0].status),
                outcomes[0].report);
    ck_assert_msg(seconds < LIMIT_S, "%s: took %.1f s", row->name, seconds);
}
END_TEST

/* ---- puts that nobody waits for ---- */

/* Both nodes' workers are done long before the puts. */
START_TEST(a_node_stays_until_its_peers_puts_have_come)
{
    const struct pair_trial trial = {
        .backend = &cpu_backend,
        .kernel = &late_puts_kernel,
        .gpus = 1,
        .timing = {.mode = TIMING_PIPELINED, .iterations = 1},
        .params = "",
        .options = transport,
    };
    double seconds;

    if (!can_run())
        return;
    if (has_to_run)
        late_puts_elements = 1 << 17; /* an emulated network */
    seconds = pair_run(&trial, outcomes);
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(outcomes[i].status == ST_OK, "node %d: %s", i, outcomes[i].report);
        ck_assert_uint_eq(outcomes[i].puts, LATE_PUTS);
        ck_assert_msg(outcomes[i].puts_completed == LATE_PUTS, "%d of %d puts are complete after %.1f s",
                      (int)outcomes[i].puts_completed, LATE_PUTS, seconds);
    }
}
END_TEST

/* ---- a node that is at something else when the other fails ---- */

static bool is_deaf;

static enum status busy_run(const struct job *job, struct run_result *r)
{
    r->status = job->nodes->node == 1 ? ST_IO : ST_INTERRUPTED;
    snprintf(r->report, sizeof r->report, "%s", job->nodes->node == 1 ? "it broke" : "rank 0 was under way");
    while (job->nodes->node == 0 && (is_deaf || !*job->interrupted))
        pause_ms(10);
    return r->status;
}

/* That is stopped, and the run has failed, not been interrupted; nor was it for lack of memory. */
START_TEST(a_busy_node_does_not_hide_the_failure)
{
    struct pair_trial trial = {
        .backend = &faulty_backend,
        .kernel = &ag_gemm_kernel,
        .problem = {.m = 64, .n = 32, .k = 64},
        .gpus = 1,
        .timing = {.mode = TIMING_PIPELINED, .iterations = 1},
        .params = "tile_m=16 tile_n=16",
        .options = "",
    };

    is_deaf = _i;
    faulty_backend = cpu_backend;
    faulty_backend.run = busy_run;
    pair_run(&trial, outcomes);
    for (int i = 0; i < 2; i++) {
        const struct pair_outcome *o = &outcomes[i];

        ck_assert_msg(o->status == ST_IO, "node %d: %s: %s", i, status_text(o->status), o->report);
        ck_assert_msg(strstr(o->report, "it broke") && strstr(o->report, is_deaf ? "stopped" : "under way") &&
                          !strstr(o->report, "memory"),
                      "node %d: %s", i, o->report);
    }
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("faults between nodes");
    TCase *tc = tcase_create("two processes");
    int rows_that_fit = sizeof rows / sizeof *rows;

    if (argc > 1) {
        transport = argv[1];
        has_to_run = true;
        rows_that_fit = 1;
    }
    suite_add_tcase(s, tc);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, nothing_breaks);
    tcase_add_test(tc, a_node_stays_until_its_peers_puts_have_come);
    tcase_add_loop_test(tc, a_busy_node_does_not_hide_the_failure, 0, 2);
    tcase_add_loop_test(tc, a_fault_ends_the_run_on_both_nodes, 0, rows_that_fit);
    return suite_run(s);
}
