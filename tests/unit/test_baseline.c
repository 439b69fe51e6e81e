/* The baselines against two H200s (times in ms, launch excluded, both GPUs aligned, median of 15),
 * and their rules. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_machines.h"
#include "sim/baseline.h"
#include "sim/gemm_cost.h"
#include "sim/nccl.h"
#include "sim/attention_cost.h"
#include "sim/streams.h"

#include "../suite.h"

#define AG COLLECTIVE_ALL_GATHER
#define RS COLLECTIVE_REDUCE_SCATTER
#define AR COLLECTIVE_ALL_REDUCE
#define COUNT(x) ((int)(sizeof(x) / sizeof((x)[0])))

enum column { BOUND, NCCL, SEQUENCE, STREAMS, COLUMNS };

static const char *const column_names[COLUMNS] = {"bound", "NCCL", "seq", "2 streams"};

/* bound: the machine file's table is fitted to another GEMM's times on the same box; cuBLAS itself
 * took 3 % more in the RS runs than in the AR runs of the same shape.  NCCL alone: its curve comes
 * from nccl-tests style runs, which are up to 17 % faster than NCCL beside GEMMs under the power
 * cap; it is kept, because it favours the baseline. */
static const double tolerances[COLUMNS] = {0.07, 0.17, 0.08, 0.07};

static const struct {
    enum collective what;
    struct problem p;
    double ms[COLUMNS];
} rows[] = {
    {AG, {.m = 4096, .n = 2048, .k = 4096}, {0.0927, 0.0874, 0.1780, 0.1093}},
    {AG, {.m = 8192, .n = 4096, .k = 8192}, {0.8326, 0.3066, 1.1323, 0.8428}},
    {AG, {.m = 16384, .n = 8192, .k = 16384}, {6.910, 1.134, 8.217, 6.936}},
    {AG, {.m = 8192, .n = 14336, .k = 8192}, {2.931, 0.314, 3.277, 2.979}},
    {RS, {.m = 4096, .n = 4096, .k = 2048}, {0.0978, 0.0948, 0.1901, 0.1165}},
    {RS, {.m = 8192, .n = 8192, .k = 4096}, {0.8692, 0.3320, 1.2018, 0.9104}},
    {RS, {.m = 16384, .n = 16384, .k = 8192}, {7.240, 1.263, 8.265, 7.470}},
    {RS, {.m = 8192, .n = 8192, .k = 14336}, {3.094, 0.341, 3.414, 3.084}},
    {AR, {.m = 4096, .n = 4096, .k = 2048}, {0.0996, 0.1387, 0.2376, 0.1747}},
    {AR, {.m = 8192, .n = 8192, .k = 4096}, {0.8416, 0.5014, 1.3462, 1.0435}},
    {AR, {.m = 16384, .n = 16384, .k = 8192}, {7.170, 1.949, 8.832, 7.369}},
    {AR, {.m = 8192, .n = 8192, .k = 14336}, {3.041, 0.513, 3.558, 3.163}},
};

static struct run_result result; /* too large for a stack frame's taste */

static double baseline_ms(const struct machine *m, struct world w, enum collective what, struct problem p,
                          struct timing timing, enum baseline which)
{
    struct kernel kernel = {.family = &problem_gemm, .collective = what};
    struct job job = {.world = w, .kernel = &kernel, .problem = &p, .machine = m, .timing = timing};

    ck_assert_int_eq(baseline_run(&job, which, (struct streams_pieces){0}, &result), ST_OK);
    ck_assert_int_eq(result.status, ST_OK);
    ck_assert_uint_eq(result.sample_count, 1);
    ck_assert_uint_eq(result.epochs, 1);
    ck_assert(strlen(result.model) > 0 && strlen(result.choice) > 0);
    return (double)result.sample_ps[0] / 1e9;
}

/* The measured program used one copy and halves; for AR the better of one and four own pieces. */
static double two_streams_ms(const struct machine *m, enum collective what, struct problem p)
{
    struct streams_setup setup = {.machine = m, .world = {1, 2}, .problem = p, .collective = what};
    double one = streams_time(&setup, (struct streams_cut){.local = 1, .own = 1}).time_ps;
    double four = streams_time(&setup, (struct streams_cut){.local = 1, .own = 4}).time_ps;

    return (what == AR && four < one ? four : one) / 1e9;
}

START_TEST(two_gpus_are_met)
{
    struct machine m;
    struct world w = {1, 2};
    struct timing timing = {.mode = TIMING_ISOLATED};
    enum collective what = rows[_i].what;
    struct problem p = rows[_i].p;
    struct nccl_comm comm;
    double ms[COLUMNS];

    ck_assert_int_eq(machine_load("h200-nvlink2", &m), ST_OK);
    nccl_comm_init(&comm, &m, w);
    ms[BOUND] = (double)gemm_ps(&m, p) / 1e9;
    ms[NCCL] = (double)nccl_corrected(&comm, what, p.m * (what == AG ? p.k : p.n) * 2).time_ps / 1e9;
    ms[SEQUENCE] = baseline_ms(&m, w, what, p, timing, BASELINE_NCCL);
    ms[STREAMS] = two_streams_ms(&m, what, p);

    printf("%s %5lu x %5lu x %5lu", (const char *[]){"AG", "RS", "AR"}[what], p.m, p.n, p.k);
    for (int i = 0; i < COLUMNS; i++)
        printf("  %s %.4f (%+5.1f %%)", column_names[i], ms[i], 100 * (ms[i] / rows[_i].ms[i] - 1));
    double best = baseline_ms(&m, w, what, p, timing, BASELINE_STREAMS);
    printf("  best cut %.4f: %s\n", best, result.choice);
    fflush(stdout);

    ck_assert(best <= ms[STREAMS] + 1e-9);
    for (int i = 0; i < COLUMNS; i++)
        ck_assert_msg(ms[i] <= rows[_i].ms[i] * (1 + tolerances[i]) && ms[i] >= rows[_i].ms[i] * (1 - tolerances[i]),
                      "row %d, %s: %.4f ms, measured %.4f", _i, column_names[i], ms[i], rows[_i].ms[i]);
}
END_TEST

START_TEST(launch_costs_what_it_should)
{
    struct machine m = model_machine_nvlink2();
    struct world w = {1, 2};
    struct problem p = {.m = 4096, .n = 2048, .k = 4096}, tiny = {.m = 256, .n = 256, .k = 64};
    struct timing off = {.mode = TIMING_ISOLATED}, on = {.mode = TIMING_ISOLATED, .launch = true};
    struct timing steady = {.mode = TIMING_PIPELINED, .launch = true};
    double launch = (double)m.host.launch_ps / 1e9, issue = (double)m.host.issue_ps / 1e9;

    /* Long kernels: the first launch shows, and nothing in steady state. */
    double bare = baseline_ms(&m, w, AG, p, off, BASELINE_NCCL);
    ck_assert_double_eq_tol(baseline_ms(&m, w, AG, p, on, BASELINE_NCCL), bare + launch, 1e-9);
    ck_assert_double_eq_tol(baseline_ms(&m, w, AG, p, steady, BASELINE_NCCL), bare, 1e-9);
    /* A GEMM shorter than the host needs to issue what follows. */
    m.host.issue_ps = 100000000;
    issue = 0.1;
    double moves = baseline_ms(&m, w, RS, tiny, off, BASELINE_NCCL) - (double)gemm_ps(&m, tiny) / 1e9;
    ck_assert_double_eq_tol(baseline_ms(&m, w, RS, tiny, on, BASELINE_NCCL), launch + issue + moves, 1e-9);
    ck_assert_double_eq_tol(baseline_ms(&m, w, RS, tiny, steady, BASELINE_NCCL), 2 * issue, 1e-9);
    /* Streams issue more calls, so they suffer more. */
    double streams = baseline_ms(&m, w, RS, tiny, steady, BASELINE_STREAMS);
    ck_assert_double_ge(streams, 3 * issue - 1e-9);
}
END_TEST

START_TEST(every_world_has_a_time)
{
    struct machine m = model_machine_hgx();
    struct timing timing = {.mode = TIMING_PIPELINED, .launch = true};
    static const struct world worlds[] = {{1, 1}, {1, 3}, {1, 8}, {2, 1}, {2, 8}, {3, 5}, {16, 8}, {128, 8}};
    static const struct problem problems[] = {{.m = 1, .n = 1, .k = 1},
                                              {.m = 100, .n = 300, .k = 77},
                                              {.m = 8192, .n = 512, .k = 8192},
                                              {.m = 16384, .n = 16384, .k = 2048}};

    for (int w = 0; w < COUNT(worlds); w++)
        for (int p = 0; p < COUNT(problems); p++)
            for (int what = AG; what <= AR; what++) {
                double gemm = (double)gemm_ps(&m, problems[p]) / 1e9;
                double nccl = baseline_ms(&m, worlds[w], what, problems[p], timing, BASELINE_NCCL);
                double streams = baseline_ms(&m, worlds[w], what, problems[p], timing, BASELINE_STREAMS);
                ck_assert_double_ge(nccl, gemm * 0.999);
                ck_assert_double_ge(streams, gemm * 0.999);
            }
}
END_TEST

/* A machine on which nothing but the links takes time. */
static struct machine links_only(double nvlink, double nic)
{
    struct machine m = model_machine_hgx();

    m.nvlink.rate = m.nvlink.engine_rate = nvlink;
    m.nic.rate = nic;
    m.gpu.memory_rate = 0;
    m.copy.reduce_rate = 1e15;
    m.gemm.fixed_ps = 0;
    m.gemm.steps[0].step_ps = m.gemm.steps[1].step_ps = m.gemm.steps[2].step_ps = 1;
    return m;
}

/* Every rank takes from its peers their share of all rows, and over its NIC one shard of each other
 * node: once to gather or reduce, twice for both. */
START_TEST(streams_move_each_row_once)
{
    struct world w = {4, 8};
    struct timing timing = {.mode = TIMING_ISOLATED};
    struct problem p = {.m = 32768, .n = 8, .k = 65536}, q = {.m = 32768, .n = 65536, .k = 8};
    double shard = 1024.0 * 65536 * 2;
    bool nic = _i == 1;
    struct machine m = nic ? links_only(1e15, 48e9) : links_only(364e9, 1e15);
    double once_ms = nic ? 3 * shard / 48e9 * 1e3 : 4 * 7 * shard / 364e9 * 1e3;
    double gather = baseline_ms(&m, w, AG, p, timing, BASELINE_STREAMS);
    double reduce = baseline_ms(&m, w, RS, q, timing, BASELINE_STREAMS);
    double both = baseline_ms(&m, w, AR, q, timing, BASELINE_STREAMS);

    ck_assert(gather >= once_ms && gather <= 1.1 * once_ms);
    ck_assert(reduce >= once_ms && reduce <= 1.1 * once_ms);
    ck_assert(both >= 2 * once_ms && both <= 2.1 * once_ms);
}
END_TEST

static double attention_ms(const struct machine *m, struct world w, const struct problem *p, enum baseline which)
{
    struct kernel kernel = {.family = &problem_attention, .collective = AG};
    struct job job = {.world = w, .kernel = &kernel, .problem = p, .machine = m, .timing = {.mode = TIMING_ISOLATED}};

    ck_assert_int_eq(baseline_run(&job, which, (struct streams_pieces){0}, &result), ST_OK);
    return (double)result.sample_ps[0] / 1e9;
}

/* Keys and values of all ranks travel once, or, where that costs nothing, attention takes as long as in one call but
 * for the channels that NCCL keeps and for merging. */
START_TEST(attention_overlaps_its_pieces)
{
    struct world w = {2, 8};
    struct problem p = {
        .attention = {.seq = 65536, .batch = 1, .heads = 16, .kv_heads = 16, .head_dim = 128, .causal = _i == 1}};
    struct machine slow = links_only(364e9, 1e15), fast = links_only(1e15, 1e15), real = model_machine_hgx();
    double shard = 4096.0 * 2 * 16 * 128 * 2, once_ms = 2 * 7 * shard / 364e9 * 1e3;
    double moves, computes, whole;

    slow.attention.step_128_ps = 1;
    moves = attention_ms(&slow, w, &p, BASELINE_STREAMS);
    ck_assert(moves >= once_ms && moves <= 1.15 * once_ms);
    computes = attention_ms(&fast, w, &p, BASELINE_STREAMS);
    whole = (double)attention_ps(&fast, &p, w) / 1e9;
    ck_assert(computes >= whole && computes <= 1.15 * whole);
    ck_assert_double_lt(attention_ms(&real, w, &p, BASELINE_STREAMS), attention_ms(&real, w, &p, BASELINE_NCCL));
    ck_assert_ptr_nonnull(strstr(result.model, "attention table"));
}
END_TEST

START_TEST(what_cannot_be_timed_says_so)
{
    struct machine m = model_machine_hgx();
    struct kernel kernel = {.family = &problem_gemm, .collective = AR};
    struct problem huge = {.m = UINT64_MAX, .n = 2, .k = 2};
    struct problem slow = {.m = 1u << 22, .n = 1u << 22, .k = 1u << 22};
    struct problem normal = {.m = 4096, .n = 4096, .k = 4096};
    struct job job = {.world = {2, 8}, .kernel = &kernel, .problem = &huge, .machine = &m};

    for (int which = BASELINE_NCCL; which <= BASELINE_STREAMS; which++) {
        job.problem = &huge;
        ck_assert_int_eq(baseline_run(&job, which, (struct streams_pieces){0}, &result), ST_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(result.report, "2^44"));
        ck_assert_uint_eq(result.sample_count, 0);
        job.problem = &slow;
        ck_assert_int_eq(baseline_run(&job, which, (struct streams_pieces){0}, &result), ST_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(result.report, "thousand seconds"));
    }
    job.problem = &normal;
    m.nccl.ring_channels = 0;
    m.nccl.nvls = false;
    ck_assert_int_eq(baseline_run(&job, BASELINE_NCCL, (struct streams_pieces){0}, &result), ST_INPUT);
    ck_assert_ptr_nonnull(strstr(result.report, "nccl section"));
}
END_TEST

START_TEST(record_names_its_model)
{
    struct machine m = model_machine_nvlink2();
    struct timing timing = {.mode = TIMING_ISOLATED};
    struct problem p = {.m = 4096, .n = 2048, .k = 4096};

    baseline_ms(&m, (struct world){1, 2}, AG, p, timing, BASELINE_NCCL);
    ck_assert_str_eq(result.model, "NCCL model 2.30.7, corrected; GEMM table");
    ck_assert_str_eq(result.choice, "ring/simple, 24 channels");
    baseline_ms(&m, (struct world){1, 1}, AG, p, timing, BASELINE_STREAMS);
    ck_assert_str_eq(result.choice, "one GPU");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("baseline");
    TCase *tc = tcase_create("baseline");

    tcase_add_loop_test(tc, two_gpus_are_met, 0, COUNT(rows));
    tcase_add_test(tc, launch_costs_what_it_should);
    tcase_add_test(tc, every_world_has_a_time);
    tcase_add_loop_test(tc, streams_move_each_row_once, 0, 2);
    tcase_add_loop_test(tc, attention_overlaps_its_pieces, 0, 2);
    tcase_add_test(tc, what_cannot_be_timed_says_so);
    tcase_add_test(tc, record_names_its_model);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
