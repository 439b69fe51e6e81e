/* The cuda backend on several nodes, one process each, or all in one: puts go from a GPU's FIFO through its proxy over
 * a transport into a window of the other process, every element checked; and what each node says when one breaks.
 *
 * Built twice: as test_cuda_nodes for a GPU, which the processes share, and as test_rig_nodes over a runtime that is
 * none (fake_cuda.h), whose kernels know what GEMM kernels consist of.
 *
 *   test_rig_nodes [OPTIONS]
 *
 * OPTIONS are the cuda backend's, "transport=verbs transport_options=device=rxe0,rxe1": two processes over that
 * transport alone, which has to be there, staged and by "GPU" memory that it reaches. */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/cuda/cuda.h"
#include "backends/net/transport.h"
#include "harness.h"
#include "kernels/kernels.h"
#include "late_puts.h"
#include "pair.h"

#include "../suite.h"

#ifdef FAKE_CUDA
#include "fake_cuda.h"
#endif

static const char *patience(void)
{
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
    return " timeout=60s";
#else
    return getenv("MKERNEL_TEST_SLOW") ? " timeout=60s" : "";
#endif
}

#define COUNT(rows) (int)(sizeof(rows) / sizeof *(rows))

static bool is_available(const char *transport, char *why, size_t why_bytes)
{
    const struct transport *t = transport_find(transport);

    return t && transport_available(t, why, why_bytes) >= 0;
}

static bool can_run(const char *options)
{
    char why[256] = "built without libfabric";

    if (!strstr(options, "transport=ofi") || is_available("ofi", why, sizeof why))
        return true;
    fprintf(stderr, "test_nodes: skipped: ofi: %s\n", why);
    return false;
}

/* ---- what runs ---- */

static const struct kernel_row {
    const struct kernel *kernel;
    struct problem problem;
    const char *params;
} kernel_rows[] = {
    {&ag_gemm_kernel, {.m = 72, .n = 40, .k = 65}, "tile_m=16 tile_n=32 chunk=1KiB"},
    {&gemm_rs_kernel, {.m = 72, .n = 40, .k = 64}, "tile_m=16 tile_n=32 chunk=1KiB"},
    {&gemm_ar_kernel, {.m = 64, .n = 48, .k = 72}, "tile_m=16 tile_n=32 chunk=1KiB"},
    {&gemm_ar_kernel, {.m = 64, .n = 48, .k = 72}, "tile_m=16 tile_n=32 chunk=1KiB reduce=switch"},
#ifndef FAKE_CUDA
    {&ring_attention_kernel,
     {.attention = {.seq = 200, .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 64, .causal = true}},
     "tile_m=64 chunk=8KiB"},
    {&moe_dispatch_gemm_kernel,
     {.moe = {.tokens = 60, .hidden = 72, .inter = 80, .experts = 8, .top_k = 2, .capacity = 2}},
     "tile_m=16 tile_n=32 chunk=1KiB"},
    {&moe_dispatch_ffn_combine_kernel,
     {.moe = {.tokens = 60, .hidden = 72, .inter = 80, .experts = 8, .top_k = 2, .capacity = 2}},
     "tile_m=16 tile_n=32 chunk=1KiB"},
#endif
};

static const struct way_row {
    uint32_t gpus; /* per node */
    const char *options;
} way_rows[] = {
    {1, "transport=ofi"},
    {2, "transport=ofi"},
    {2, "transport=ofi fifo=1 transport_options=data_bytes=4"},
    {1, "transport=ofi transport_options=provider=shm"},
};

static void say_problem(const struct kernel_row *k, const struct way_row *w, const char *where, const char *report)
{
    ck_abort_msg("%s, 2 x %u, %s, %s: %s", k->kernel->name, w->gpus, w->options, where, report);
}

/* ---- two processes ---- */

static void run_two(const struct backend *backend, const struct kernel_row *k, const struct way_row *w,
                    enum timing_mode mode, struct pair_outcome outcomes[2])
{
    char options[256];
    double seconds;

    snprintf(options, sizeof options, "%s%s", w->options, patience());
    seconds = pair_run(
        &(struct pair_trial){
            .backend = backend,
            .kernel = k->kernel,
            .problem = k->problem,
            .gpus = w->gpus,
            .timing = {.mode = mode, .warmup = 1, .iterations = 3},
            .params = k->params,
            .options = options,
        },
        outcomes);
    for (int node = 0; node < 2; node++) {
        if (outcomes[node].status != ST_OK)
            say_problem(k, w, node ? "node 1" : "node 0", outcomes[node].report);
        ck_assert_uint_gt(outcomes[node].checked, 0);
        ck_assert_uint_gt(outcomes[node].puts, 0);
    }
    if (getenv("MKERNEL_TEST_VERBOSE"))
        fprintf(stderr, "%s, 2 x %u, %s: %s, %llu elements, %llu puts, %.1f s\n", k->kernel->name, w->gpus, w->options,
                outcomes[0].model, (unsigned long long)outcomes[0].checked, (unsigned long long)outcomes[0].puts,
                seconds);
}

START_TEST(two_processes_are_exact)
{
    int i = _i;
    const struct kernel_row *k = &kernel_rows[harness_digit(&i, COUNT(kernel_rows))];
    const struct way_row *w = &way_rows[harness_digit(&i, COUNT(way_rows))];
    struct pair_outcome outcomes[2];

    if (!can_run(w->options))
        return;
#ifdef FAKE_CUDA
    fake_cuda.devices = 1 + _i % 2;
#endif
    run_two(&cuda_backend, k, w, _i % 2 ? TIMING_PIPELINED : TIMING_ISOLATED, outcomes);
    ck_assert_msg(strstr(outcomes[0].model, "ofi staged"), "%s", outcomes[0].model);
}
END_TEST

#ifdef FAKE_CUDA
static struct way_row given = {.gpus = 2};

/* Nodes, a bit each, whose devices see in order what cards write: all of them have to, or all stage. */
static const struct order_row {
    uint32_t ordered;
    const char *says;
} order_rows[] = {{0, "staged"}, {1, "staged"}, {3, "direct"}};

static uint32_t ordered;

static enum status ordered_run(const struct job *job, struct run_result *r)
{
    fake_cuda.ordered = ordered >> job->nodes->node & 1;
    return cuda_backend.run(job, r);
}

START_TEST(two_processes_by_the_given_way)
{
    struct backend backend = cuda_backend;
    struct pair_outcome outcomes[2];

    backend.run = ordered_run;
    ordered = order_rows[_i].ordered;
    run_two(&backend, &kernel_rows[0], &given, TIMING_ISOLATED, outcomes);
    ck_assert_msg(strstr(outcomes[0].model, order_rows[_i].says), "%s", outcomes[0].model);
}
END_TEST
#endif

static const struct refusal {
    const char *options, *says;
    int code;
} refusals[] = {
    {"transport=loopback", "the transport loopback stays inside one process", 2},
    {"transport=ofi transport_options=povider=tcp", "cuda.transport_options: transport ofi has no option \"povider\"",
     2},
    {"transport=verbs", "verbs", 5}, /* no device, or built without */
};

START_TEST(what_cannot_be_is_refused)
{
    struct pair_outcome outcomes[2];
    char why[256];

    if (!can_run(refusals[_i].options) ||
        (strstr(refusals[_i].options, "verbs") && is_available("verbs", why, sizeof why)))
        return;
    pair_run(&(struct pair_trial){.backend = &cuda_backend,
                                  .kernel = kernel_rows[0].kernel,
                                  .problem = kernel_rows[0].problem,
                                  .gpus = 1,
                                  .timing = {.iterations = 1},
                                  .params = kernel_rows[0].params,
                                  .options = refusals[_i].options},
             outcomes);
    for (int node = 0; node < 2; node++) {
        ck_assert_int_eq(status_exit_code(outcomes[node].status), refusals[_i].code);
        ck_assert_msg(strstr(outcomes[node].report, refusals[_i].says), "%s", outcomes[node].report);
    }
}
END_TEST

/* ---- one process ---- */

static const struct way_row one_process_rows[] = {{2, "transport=ofi"}, {2, "transport=loopback"}, {2, "fifo=1"}};

START_TEST(one_process_is_exact)
{
    int i = _i;
    const struct kernel_row *k = &kernel_rows[harness_digit(&i, COUNT(kernel_rows))];
    const struct way_row *w = &one_process_rows[harness_digit(&i, COUNT(one_process_rows))];
    static struct run_result r;
    struct program p = {0};

    if (!can_run(w->options))
        return;
    harness_emit(k->kernel, &k->problem, (struct world){2, w->gpus}, FORM_FUSED, k->params, &p);
    harness_run(&(struct trial){.backend = &cuda_backend,
                                .kernel = k->kernel,
                                .program = &p,
                                .problem = k->problem,
                                .timing = {.mode = TIMING_ISOLATED, .warmup = 1, .iterations = 3},
                                .options = w->options},
                &r);
    program_fini(&p);
    if (r.status != ST_OK)
        say_problem(k, w, "one process", r.report);
    ck_assert_uint_gt(r.proxy.latency.count, 0);
}
END_TEST

/* ---- what breaks ---- */

static void *die_later(void *arg)
{
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    kill(getpid(), SIGKILL);
    return arg;
}

static enum status faulty_run(const struct job *job, struct run_result *r)
{
    pthread_t thread;

    if (job->nodes->node == 1 && pthread_create(&thread, NULL, die_later, NULL) == 0)
        pthread_detach(thread);
    return cuda_backend.run(job, r);
}

/* Node 0 waits for flags that nobody raises any more. */
START_TEST(a_dead_node_ends_the_run_on_both)
{
    static struct backend faulty_backend;
    struct pair_outcome outcomes[2];
    double seconds;

    if (!can_run("transport=ofi"))
        return;
    faulty_backend = cuda_backend;
    faulty_backend.run = faulty_run;
    seconds = pair_run(&(struct pair_trial){.backend = &faulty_backend,
                                            .kernel = kernel_rows[0].kernel,
                                            .problem = kernel_rows[0].problem,
                                            .gpus = 1,
                                            .timing = {.mode = TIMING_ISOLATED, .iterations = 2000000},
                                            .params = kernel_rows[0].params,
                                            .options = "transport=ofi timeout=4s"},
                       outcomes);
    for (int node = 0; node < 2; node++) {
        int code = status_exit_code(outcomes[node].status);

        ck_assert_msg(code == 4 || code == 5, "node %d: exit code %d: %s", node, code, outcomes[node].report);
        ck_assert_msg(strstr(outcomes[node].report, "node 1"), "node %d: %s", node, outcomes[node].report);
    }
    ck_assert_msg(strstr(outcomes[0].report, "held up by: "), "%s", outcomes[0].report);
    if (getenv("MKERNEL_TEST_VERBOSE"))
        fprintf(stderr, "a dead node: %.1f s\n%s\n", seconds, outcomes[0].report);
    ck_assert_msg(seconds < 15, "took %.1f s", seconds);
}
END_TEST

/* ---- a program that never ends on node 0 ---- */

static const struct program_ops *sound_ops;
static struct program_ops lossy_ops;

/* Puts of rank 0 never tell that they are complete. */
static void lossy_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *out)
{
    sound_ops->task(p, rank, queue, index, out);
    if (rank != 0 || out->op != OP_PUT)
        return;
    for (uint32_t i = 0; i < out->signal_count; i++)
        if (out->signals[i].rank != rank)
            out->signals[0] = out->signals[i];
    out->signal_count = 1;
}

static enum status lossy_emit(const struct problem *problem, struct world world, const struct machine *machine,
                              enum form form, const void *params, struct program *out, struct complaint *complaint)
{
    TRY(ag_gemm_kernel.emit(problem, world, machine, form, params, out, complaint));
    sound_ops = out->ops;
    lossy_ops = *sound_ops;
    lossy_ops.task = lossy_task;
    out->ops = &lossy_ops;
    return ST_OK;
}

/* The one says what it waits for, the other whom. */
START_TEST(a_hang_on_one_node_is_told_on_both)
{
    struct kernel lossy = ag_gemm_kernel;
    struct pair_outcome outcomes[2];

    if (!can_run("transport=ofi"))
        return;
    lossy.emit = lossy_emit;
    pair_run(&(struct pair_trial){.backend = &cuda_backend,
                                  .kernel = &lossy,
                                  .problem = kernel_rows[0].problem,
                                  .gpus = 1,
                                  .timing = {.mode = TIMING_ISOLATED, .iterations = 3},
                                  .params = kernel_rows[0].params,
                                  .options = "transport=ofi timeout=2s"},
             outcomes);
    for (int node = 0; node < 2; node++) {
        ck_assert_msg(status_exit_code(outcomes[node].status) == 4, "node %d: %s", node, outcomes[node].report);
        ck_assert_msg(strstr(outcomes[node].report, "entry wait: sent[0]"), "node %d: %s", node, outcomes[node].report);
        ck_assert_msg(strstr(outcomes[node].report, "has failed"), "node %d: %s", node, outcomes[node].report);
    }
}
END_TEST

/* ---- puts that nobody waits for ---- */

START_TEST(a_node_stays_until_its_peers_puts_have_come)
{
    struct pair_outcome outcomes[2];

    if (!can_run("transport=ofi"))
        return;
    pair_run(&(struct pair_trial){.backend = &cuda_backend,
                                  .kernel = &late_puts_kernel,
                                  .gpus = 1,
                                  .timing = {.mode = TIMING_ISOLATED, .iterations = 1},
                                  .params = "",
                                  .options = "transport=ofi"},
             outcomes);
    for (int node = 0; node < 2; node++) {
        ck_assert_msg(outcomes[node].status == ST_OK, "node %d: %s", node, outcomes[node].report);
        ck_assert_uint_eq(outcomes[node].puts, LATE_PUTS);
        ck_assert_uint_eq(outcomes[node].puts_completed, LATE_PUTS);
    }
}
END_TEST

static void add_tests(TCase *c)
{
    int ways = getenv("MKERNEL_TEST_FEW") ? 2 : COUNT(way_rows);

    tcase_add_loop_test(c, two_processes_are_exact, 0, COUNT(kernel_rows) * ways);
    tcase_add_loop_test(c, what_cannot_be_is_refused, 0, COUNT(refusals));
    tcase_add_loop_test(c, one_process_is_exact, 0, COUNT(kernel_rows) * COUNT(one_process_rows));
    tcase_add_test(c, a_node_stays_until_its_peers_puts_have_come);
    tcase_add_test(c, a_dead_node_ends_the_run_on_both);
    tcase_add_test(c, a_hang_on_one_node_is_told_on_both);
}

int main(int argc, char **argv)
{
    Suite *s = suite_create("nodes of GPUs");
    TCase *c = tcase_create("all");
    char why[256];

#ifdef FAKE_CUDA
    fake_cuda.computes = true;
#endif
    if (cuda_backend.available(why, sizeof why) < 0) {
        fprintf(stderr, "test_nodes: skipped: %s\n", why);
        return 77;
    }
    tcase_set_timeout(c, 120);
#ifdef FAKE_CUDA
    given.options = argc > 1 ? argv[1] : NULL;
    if (given.options)
        tcase_add_loop_test(c, two_processes_by_the_given_way, 0, COUNT(order_rows));
    else
#endif
        add_tests(c);
    (void)argc, (void)argv;
    suite_add_tcase(s, c);
    return suite_run(s);
}
