#include "cuda_baseline.h"

#include <stdlib.h>
#include <string.h>

#include "../moe_like.h"
#include "backends/cuda/cuda.h"
#include "core/backend.h"
#include "harness.h"
#include "kernels/kernels.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const uint32_t worlds[] = {1, 2, 3, 4};
/* Rows that every rank has as many of, and that not. */
static const struct problem problems[] = {{.m = 36, .n = 16, .k = 64}, {.m = 41, .n = 8, .k = 72}};

/* Of those that are listed. */
static const struct kernel *gemm_kernel(int i)
{
    const struct kernel *const *k = kernels;

    while (*k && ((*k)->family != &problem_gemm || i-- > 0))
        k++;
    return *k;
}

static int gemm_kernel_count(void)
{
    int count = 0;

    while (gemm_kernel(count))
        count++;
    return count;
}

static int variation_count;
static void (*vary_case)(int i);

static void give_each_a_device(void)
{
    if (vary_case)
        vary_case(variation_count);
}

static enum status measure_with(const char *text, const struct kernel *k, struct world world,
                                const struct problem *problem, enum baseline which, enum timing_mode mode,
                                struct run_result *r)
{
    void *options = calloc(1, cuda_backend.options_size);
    struct job job = {
        .world = world,
        .kernel = k,
        .problem = problem,
        .machine = harness_machine(),
        .timing = {.mode = mode, .warmup = 1, .iterations = 3},
        .options = options,
        .seed = 7,
        .data = true,
    };
    enum status st;

    harness_options(cuda_backend.options, options, text);
    st = cuda_backend.baseline(&job, which, r);
    ck_assert_int_eq(st, r->status);
    free(options);
    return st;
}

static enum status measure(const struct kernel *k, struct world world, const struct problem *problem,
                           enum baseline which, enum timing_mode mode, struct run_result *r)
{
    return measure_with("", k, world, problem, which, mode, r);
}

static void check_exact(const struct run_result *r, const struct kernel *k, uint32_t ranks, const struct problem *s)
{
    uint64_t rows = k->collective == COLLECTIVE_REDUCE_SCATTER ? s->m : s->m * ranks;

    ck_assert_msg(r->status == ST_OK, "%s, %u ranks: %s", k->name, ranks, r->report);
    ck_assert_uint_eq(r->elements_wrong, 0);
    ck_assert_uint_eq(r->elements_checked, rows * s->n * 4);
    ck_assert_uint_eq(r->sample_count, 3);
}

/* NCCL: too few GPUs, or it is not here. */
static bool is_left_out(const struct run_result *r, enum baseline which)
{
    if (which != BASELINE_NCCL || r->status != ST_UNSUPPORTED)
        return false;
    ck_assert_msg(strstr(r->report, "NCCL"), "%s", r->report);
    return true;
}

START_TEST(baseline_is_exact)
{
    int i = _i / variation_count;
    const struct kernel *k = gemm_kernel(harness_digit(&i, gemm_kernel_count()));
    uint32_t ranks = worlds[harness_digit(&i, COUNT(worlds))];
    const struct problem *problem = &problems[harness_digit(&i, COUNT(problems))];
    enum baseline which = harness_digit(&i, 2) ? BASELINE_STREAMS : BASELINE_NCCL;
    struct run_result *r = calloc(1, sizeof *r);

    if (vary_case)
        vary_case(_i % variation_count);
    measure(k, (struct world){1, ranks}, problem, which, TIMING_ISOLATED, r);
    if (!is_left_out(r, which))
        check_exact(r, k, ranks, problem);
    free(r);
}
END_TEST

/* A GPU's shares are devices, though not CUDA's. */
START_TEST(streams_take_shares)
{
    const struct kernel *k = gemm_kernel(_i);
    struct run_result *r = calloc(1, sizeof *r);

    if (vary_case)
        vary_case(0); /* one GPU */
    measure_with("devices=2 shares=2", k, (struct world){1, 2}, &problems[0], BASELINE_STREAMS, TIMING_ISOLATED, r);
    check_exact(r, k, 2, &problems[0]);
    free(r);
}
END_TEST

/* With stripes of whole tiles and blocks, of less than one, of different sizes; and shorter than there are stripes. */
static const struct attention_problem attentions[] = {
    {.seq = 256, .batch = 1, .heads = 1, .kv_heads = 1, .head_dim = 64},
    {.seq = 101, .batch = 2, .heads = 4, .kv_heads = 2, .head_dim = 64},
    {.seq = 135, .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 128},
    {.seq = 5, .batch = 2, .heads = 2, .kv_heads = 1, .head_dim = 64},
};

START_TEST(attention_is_right)
{
    int i = _i;
    uint32_t ranks = worlds[harness_digit(&i, COUNT(worlds))];
    struct problem problem = {.attention = attentions[harness_digit(&i, COUNT(attentions))]};
    const struct attention_problem *a = &problem.attention;
    struct run_result *r = calloc(1, sizeof *r);

    problem.attention.causal = i;
    give_each_a_device();
    measure(&ring_attention_kernel, (struct world){1, ranks}, &problem, BASELINE_NCCL, TIMING_ISOLATED, r);
    if (!is_left_out(r, BASELINE_NCCL)) {
        ck_assert_msg(r->status == ST_OK, "%u ranks, seq %llu: %s", ranks, (unsigned long long)a->seq, r->report);
        ck_assert_uint_eq(r->elements_checked, a->batch * a->heads * a->seq * a->head_dim * 4);
        ck_assert_uint_eq(r->elements_wrong, 0);
        ck_assert_int_eq(r->collective_ps > 0, ranks > 1);
        ck_assert_msg(strstr(r->choice, "own attention"), "%s", r->choice);
    }
    free(r);
}
END_TEST

static const struct kernel *const moe_kernels[] = {&moe_dispatch_gemm_kernel, &moe_dispatch_ffn_combine_kernel};

static void measure_moe(const struct kernel *k, const struct moe_problem *moe, uint32_t ranks, struct run_result *r)
{
    struct problem problem = {.moe = *moe};

    give_each_a_device();
    measure(k, (struct world){1, ranks}, &problem, BASELINE_NCCL, TIMING_ISOLATED, r);
}

/* Ranks without tokens, without experts, without rows; all to one expert. */
START_TEST(experts_are_right)
{
    int i = _i;
    struct moe_problem moe = moe_problems[harness_digit(&i, MOE_PROBLEMS)];
    uint32_t ranks = worlds[harness_digit(&i, COUNT(worlds))];
    const struct kernel *k = moe_kernels[i];
    struct run_result *r = calloc(1, sizeof *r);

    moe.capacity = 1e3; /* as many as there can be */
    measure_moe(k, &moe, ranks, r);
    if (!is_left_out(r, BASELINE_NCCL)) {
        ck_assert_msg(r->status == ST_OK, "%s, %u ranks, problem %d: %s", k->name, ranks, _i % MOE_PROBLEMS, r->report);
        if (k == &moe_dispatch_gemm_kernel)
            ck_assert_uint_ge(r->elements_checked, 4 * moe.tokens * moe.top_k * moe.inter);
        else
            ck_assert_uint_eq(r->elements_checked, 4 * moe.tokens * moe.hidden);
        ck_assert_uint_eq(r->rows_dropped, 0);
        ck_assert_int_eq(r->collective_ps > 0, ranks > 1);
    }
    free(r);
}
END_TEST

START_TEST(overflow_is_dropped_or_an_error)
{
    int i = _i;
    struct moe_problem moe = moe_problems[harness_digit(&i, 2)];
    uint32_t ranks = worlds[harness_digit(&i, COUNT(worlds))];
    const struct kernel *k = moe_kernels[i];
    struct run_result *r = calloc(1, sizeof *r);

    moe.capacity = 0.5;
    moe.overflow = MOE_OVERFLOW_DROP;
    measure_moe(k, &moe, ranks, r);
    if (!is_left_out(r, BASELINE_NCCL)) {
        ck_assert_msg(r->status == ST_OK, "%s", r->report);
        ck_assert_uint_gt(r->rows_dropped, 0);
    }
    moe.overflow = MOE_OVERFLOW_ERROR;
    measure_moe(k, &moe, ranks, r);
    if (!is_left_out(r, BASELINE_NCCL)) {
        ck_assert_int_eq(r->status, ST_INPUT);
        ck_assert_msg(strstr(r->report, "raise the capacity") != NULL, "%s", r->report);
    }
    free(r);
}
END_TEST

/* A call for each expert, all of them behind a gate. */
START_TEST(too_many_calls_are_refused)
{
    struct moe_problem moe = {
        .tokens = 1000, .hidden = 8, .inter = 8, .experts = 1200, .top_k = 4, .capacity = 1e3, .routing = MOE_UNIFORM};
    struct run_result *r = calloc(1, sizeof *r);

    measure_moe(&moe_dispatch_gemm_kernel, &moe, 2, r);
    ck_assert_int_eq(r->status, ST_UNSUPPORTED);
    ck_assert_msg(strstr(r->report, "calls for each GPU") || strstr(r->report, "NCCL"), "%s", r->report);
    free(r);
}
END_TEST

START_TEST(what_has_no_baseline_says_so)
{
    static const struct problem gemm = {.m = 64, .n = 64, .k = 64};
    static const struct problem_family unheard_of;
    struct kernel other = ag_gemm_kernel;
    struct problem attention = {.attention = attentions[0]};
    struct run_result *r = calloc(1, sizeof *r);

    other.family = &unheard_of;
    ck_assert_int_eq(measure(&other, (struct world){1, 2}, &gemm, BASELINE_NCCL, TIMING_ISOLATED, r), ST_UNSUPPORTED);
    ck_assert_str_eq(r->report, "on GPUs this kernel has no baseline");
    ck_assert_int_eq(
        measure(&ring_attention_kernel, (struct world){1, 2}, &attention, BASELINE_STREAMS, TIMING_ISOLATED, r),
        ST_UNSUPPORTED);
    ck_assert_str_eq(r->report, "on GPUs only the GEMM kernels have hand-overlapped streams");
    ck_assert_int_eq(measure(&ag_gemm_kernel, (struct world){2, 1}, &gemm, BASELINE_STREAMS, TIMING_ISOLATED, r),
                     ST_UNSUPPORTED);
    ck_assert_str_eq(r->report, "on GPUs baselines run on one node");
    free(r);
}
END_TEST

TCase *cuda_baseline_tests(int variations, void (*vary)(int i))
{
    TCase *tc = tcase_create("baselines");

    variation_count = variations;
    vary_case = vary;
    tcase_add_loop_test(tc, baseline_is_exact, 0,
                        variations * gemm_kernel_count() * COUNT(worlds) * COUNT(problems) * 2);
    tcase_add_loop_test(tc, streams_take_shares, 0, gemm_kernel_count());
    tcase_add_loop_test(tc, attention_is_right, 0, COUNT(worlds) * COUNT(attentions) * 2);
    tcase_add_loop_test(tc, experts_are_right, 0, COUNT(worlds) * MOE_PROBLEMS * COUNT(moe_kernels));
    tcase_add_loop_test(tc, overflow_is_dropped_or_an_error, 0, COUNT(worlds) * 2 * COUNT(moe_kernels));
    tcase_add_test(tc, too_many_calls_are_refused);
    tcase_add_test(tc, what_has_no_baseline_says_so);
    return tc;
}
