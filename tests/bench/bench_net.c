/* Transports against the plain library.
 *
 *   bench_net TRANSPORT[:OPTION=VALUE ...] [RUNS]
 *
 * Two processes on this machine; contestants take turns, RUNS (5) times, and the median counts.  Every sample
 * is printed.  For ofi the plain library is a loop over libfabric on the same provider, first with the same promise
 * (a completed write has been delivered), then without; for verbs it is ib_write_bw of perftest, where that is
 * there. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench_net.h"
#include "core/clock.h"

#define RUNS_MAX 25

/* ---- the transport ---- */

static double seconds_since(uint64_t since_ns)
{
    return (double)(clock_now_ns() - since_ns) * 1e-9;
}

/* As the plain loops wait: without pauses. */
static void await_flag(struct member *m, uint32_t flag, uint64_t value)
{
    for (;;) {
        must(member_poll(m) >= 0, "%s", endpoint_error(m->e));
        if (__atomic_load_n(&m->flags[flag], __ATOMIC_ACQUIRE) >= value)
            return;
        sched_yield();
    }
}

int bench_put_bandwidth(struct bootstrap *b, void *arg)
{
    const struct bench *bench = arg;
    struct member *m = member_open(&bench->setting, b, BENCH_BYTES * BENCH_DEPTH, BENCH_DEPTH, BENCH_DEPTH, WAIT_S);

    memset(m->window, 1, m->window_bytes);
    member_connect(m);
    for (uint32_t pass = 0; pass < 2 && b->rank == 0; pass++) { /* the first one warms up */
        uint32_t puts = pass == 0 ? BENCH_DEPTH : bench->puts;
        uint64_t since_ns = clock_now_ns();

        for (uint32_t i = 0; i < puts; i++) {
            uint32_t slot = i % BENCH_DEPTH;
            uint64_t at = bench->one_sided ? 0 : (uint64_t)slot * BENCH_BYTES;

            member_put_well(m, (struct put){.peer = 1,
                                            .flag = slot,
                                            .value = pass * 1000000 + i + 1,
                                            .from = at,
                                            .to = at,
                                            .bytes = BENCH_BYTES});
        }
        member_drain(m);
        *bench->figure = (double)puts * BENCH_BYTES / seconds_since(since_ns) * 1e-6;
    }
    if (bench->one_sided)
        must(bootstrap_barrier(b) >= 0, "%s", b->error);
    else if (b->rank == 1)
        await_flag(m, (bench->puts - 1) % BENCH_DEPTH, 1000000 + bench->puts);
    member_barrier(m);
    member_close(m);
    return 0;
}

int bench_put_latency(struct bootstrap *b, void *arg)
{
    const struct bench *bench = arg;
    struct member *m = member_open(&bench->setting, b, 4096, 1, BENCH_PING_DEPTH, WAIT_S);
    uint64_t since_ns = 0;

    member_connect(m);
    for (uint32_t i = 1; i <= bench->rounds + 10; i++) {
        if (i == 10)
            since_ns = clock_now_ns();
        if (b->rank == 1)
            await_flag(m, 0, i);
        member_put_well(m, (struct put){.peer = 1 - b->rank, .value = i, .bytes = 8});
        if (b->rank == 0)
            await_flag(m, 0, i);
    }
    if (b->rank == 0)
        *bench->figure = seconds_since(since_ns) / bench->rounds / 2 * 1e6;
    member_barrier(m);
    member_close(m);
    return 0;
}

/* One at a time, until it is complete; the receiver polls all the time. */
int bench_put_completion(struct bootstrap *b, void *arg)
{
    const struct bench *bench = arg;
    struct member *m = member_open(&bench->setting, b, 4096, 1, BENCH_PING_DEPTH, WAIT_S);
    uint64_t since_ns = 0;

    member_connect(m);
    for (uint32_t i = 1; b->rank == 0 && i <= bench->rounds + 10; i++) {
        if (i == 10)
            since_ns = clock_now_ns();
        member_put_well(m, (struct put){.peer = 1, .value = i, .bytes = 8});
        while (endpoint_pending(m->e) > 0) {
            must(member_poll(m) >= 0, "%s", endpoint_error(m->e));
            sched_yield();
        }
    }
    if (b->rank == 0)
        *bench->figure = seconds_since(since_ns) / bench->rounds * 1e6;
    else
        await_flag(m, 0, bench->rounds + 10);
    member_barrier(m);
    member_close(m);
    return 0;
}

/* ---- turns ---- */

struct contestant {
    const char *name, *unit;
    local_member_fn *run;
    double samples[RUNS_MAX];
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_median(struct contestant *c, uint32_t runs)
{
    qsort(c->samples, runs, sizeof *c->samples, compare_doubles);
    printf("%s %.1f %s (%.1f to %.1f)", c->name, c->samples[runs / 2], c->unit, c->samples[0], c->samples[runs - 1]);
}

static void run_once(struct contestant *c, struct bench *bench, uint32_t turn)
{
    int codes[2];

    bench->turn = turn;
    if (!local_run(LOCAL_PROCESSES, 2, WAIT_S * 2, c->run, bench, codes) || codes[0] || codes[1]) {
        fprintf(stderr, "bench_net: %s failed\n", c->name);
        exit(1);
    }
    c->samples[turn] = *bench->figure;
    printf("%s %.1f %s\n", c->name, *bench->figure, c->unit);
    fflush(stdout);
}

static void compare(struct contestant *ours, struct contestant *plain, struct bench *bench, uint32_t runs)
{
    for (uint32_t turn = 0; turn < runs; turn++) {
        run_once(ours, bench, turn);
        if (plain->run)
            run_once(plain, bench, turn);
    }
    printf("median: ");
    print_median(ours, runs);
    if (plain->run) {
        printf(", ");
        print_median(plain, runs);
        printf(", ratio %.2f", ours->samples[runs / 2] / plain->samples[runs / 2]);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? strtok(argv[1], ":") : "ofi", *options = argc > 1 ? strtok(NULL, "") : "";
    uint32_t runs = argc > 2 ? (uint32_t)atoi(argv[2]) : 5;
    struct bench bench = {.setting = {.transport = transport_find(name), .options = options ? options : ""},
                          .puts = slow_machine() ? 32 : 1000,
                          .rounds = slow_machine() ? 200 : 5000};
    struct contestant put = {.name = "put bandwidth", .unit = "MB/s", .run = bench_put_bandwidth},
                      ping = {.name = "put latency", .unit = "us", .run = bench_put_latency},
                      complete = {.name = "put until complete", .unit = "us", .run = bench_put_completion},
                      plain_put = {.name = "plain bandwidth", .unit = "MB/s"},
                      plain_ping = {.name = "plain latency", .unit = "us"},
                      plain_complete = {.name = "plain until complete", .unit = "us"};

    if (!bench.setting.transport || bench.setting.transport->in_process || runs < 1 || runs > RUNS_MAX) {
        fprintf(stderr, "usage: bench_net TRANSPORT[:OPTION=VALUE ...] [RUNS], RUNS from 1 to %d\n", RUNS_MAX);
        return 2;
    }
#if HAVE_LIBFABRIC
    if (strcmp(name, "ofi") == 0) {
        plain_put.run = bench_plain_bandwidth;
        plain_ping.run = bench_plain_latency;
        plain_complete.run = bench_plain_completion;
    }
#endif
#if HAVE_VERBS
    bench.one_sided = strcmp(name, "verbs") == 0;
    if (strcmp(name, "verbs") == 0 && perftest_is_there())
        plain_put = (struct contestant){.name = "ib_write_bw", .unit = "MB/s", .run = bench_perftest_bandwidth};
    else if (strcmp(name, "verbs") == 0)
        printf("skipped: ib_write_bw is not there (perftest)\n");
#endif
    bench.figure = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(bench.figure != MAP_FAILED, "no memory");
    bench.delivered = true;
    compare(&put, &plain_put, &bench, runs);
    compare(&ping, &plain_ping, &bench, runs);
    if (plain_complete.run)
        compare(&complete, &plain_complete, &bench, runs);
    bench.delivered = false;
    if (plain_ping.run) {
        printf("plain without waiting for deliveries:\n");
        compare(&put, &plain_put, &bench, runs);
        compare(&ping, &plain_ping, &bench, runs);
    }
    return 0;
}
