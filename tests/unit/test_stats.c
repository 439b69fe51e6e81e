/* Order statistics, the formulas of the table, and the comparison of contestants. */
#include <check.h>
#include <stdlib.h>

#include "core/results/compare.h"
#include "core/run/metrics.h"
#include "core/statistics/stats.h"

#include "../suite.h"

struct row {
    uint64_t samples[24];
    size_t count;
    uint64_t min, median, p95, max;
};

static const struct row rows[] = {
    {{7}, 1, 7, 7, 7, 7},
    {{9, 1}, 2, 1, 5, 9, 9},
    {{3, 1, 2}, 3, 1, 2, 3, 3},
    {{4, 1, 3, 2}, 4, 1, 2, 4, 4},
    {{UINT64_MAX, UINT64_MAX - 2}, 2, UINT64_MAX - 2, UINT64_MAX - 1, UINT64_MAX, UINT64_MAX},
    {{20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 20, 1, 10, 19, 20},
    {{0}, 0, 0, 0, 0, 0},
};

START_TEST(order_statistics)
{
    const struct row *r = &rows[_i];
    struct stats s = stats_of(r->samples, r->count);

    ck_assert_uint_eq(s.min, r->min);
    ck_assert_uint_eq(s.median, r->median);
    ck_assert_uint_eq(s.p95, r->p95);
    ck_assert_uint_eq(s.max, r->max);
}
END_TEST

static const struct kernel gather = {.name = "gather", .family = &problem_gemm, .collective = COLLECTIVE_ALL_GATHER};
static const struct kernel scatter = {
    .name = "scatter", .family = &problem_gemm, .collective = COLLECTIVE_REDUCE_SCATTER};
static const struct kernel all_reduce = {
    .name = "reduce", .family = &problem_gemm, .collective = COLLECTIVE_ALL_REDUCE};

/* 4096 x 4096 x 256 in 100 us: 8.59 GFLOP; A has 33.6 MB, C has 2.1 MB. */
START_TEST(formulas_as_nccl_tests_define_them)
{
    struct problem p = {.m = 4096, .n = 256, .k = 4096};
    struct world w = {2, 8};
    uint64_t time_ps = 100 * 1000000;

    ck_assert_double_eq_tol(metrics_tflops(&gather, &p, w, time_ps), 85.899, 0.001);
    ck_assert_double_eq_tol(metrics_busbw(&gather, &p, w, time_ps), 335.544 * 15 / 16, 0.001);
    ck_assert_double_eq_tol(metrics_busbw(&scatter, &p, w, time_ps), 20.972 * 15 / 16, 0.001);
    ck_assert_double_eq_tol(metrics_busbw(&all_reduce, &p, w, time_ps), 2 * 20.972 * 15 / 16, 0.001);
    ck_assert_double_eq(metrics_busbw(&gather, &p, (struct world){1, 1}, time_ps), 0);
    ck_assert_double_eq(metrics_tflops(&gather, &p, w, 0), 0);
    ck_assert_double_eq(metrics_busbw(&gather, &p, w, 0), 0);
}
END_TEST

static enum status no_baseline(const struct job *job, enum baseline which, struct run_result *r)
{
    (void)job, (void)which, (void)r;
    return ST_OK;
}

static const struct backend backend = {.name = "fake", .baseline = no_baseline};

/* Two problems; the second has no nccl row and a failed fused one. */
START_TEST(contestants_of_one_problem_are_compared)
{
    struct point points[6] = {
        {.program = PROGRAM_FUSED, .problem.m = 1}, {.program = PROGRAM_FUSED, .problem.m = 1},
        {.program = PROGRAM_NCCL, .problem.m = 1},  {.program = PROGRAM_STREAMS, .problem.m = 1},
        {.program = PROGRAM_FUSED, .problem.m = 2}, {.program = PROGRAM_UNFUSED, .problem.m = 2},
    };
    uint64_t times[6] = {80, 125, 100, 50, 10, 40};
    struct run_unit units[6] = {0};
    struct run_result results[6] = {0};
    struct compare c;

    for (int i = 0; i < 6; i++) {
        points[i].kernel = &gather;
        points[i].world = (struct world){1, 2};
        results[i].sample_count = 1;
        results[i].sample_ps[0] = times[i];
        units[i] = (struct run_unit){.point = &points[i], .backend = &backend, .result = &results[i]};
    }
    results[4].status = ST_HANG;
    compare_create(units, 6, &c);
    ck_assert_uint_eq(c.group_count, 2);
    ck_assert_uint_eq(c.groups[0].fused, 0);
    ck_assert_uint_eq(c.groups[0].best, 3);
    ck_assert_uint_eq(c.groups[1].fused, COMPARE_NONE);
    ck_assert_double_eq_tol(compare_speedup(&c, 0), 1.25, 1e-12);
    ck_assert_double_eq(compare_speedup(&c, 5), 0);
    ck_assert_str_eq(compare_verdict(&c, 0), "ok");
    ck_assert_str_eq(compare_verdict(&c, 1), "slower");
    ck_assert_str_eq(compare_verdict(&c, 3), "best");
    ck_assert_str_eq(compare_verdict(&c, 4), "hang");
    ck_assert_str_eq(compare_verdict(&c, 5), "best");
    compare_destroy(&c);
}
END_TEST

START_TEST(a_baseline_that_cannot_be_here_is_skipped)
{
    struct point point = {.program = PROGRAM_NCCL, .kernel = &gather};
    struct run_result result = {.status = ST_UNSUPPORTED};
    struct run_unit unit = {.point = &point, .backend = &backend};

    ck_assert(!run_unit_skipped(&unit)); /* it has not been asked */
    unit.result = &result;
    ck_assert(run_unit_skipped(&unit));
    result.status = ST_ENVIRONMENT;
    ck_assert(!run_unit_skipped(&unit));
    result.status = ST_UNSUPPORTED;
    point.program = PROGRAM_FUSED;
    ck_assert(!run_unit_skipped(&unit)); /* a program that cannot run is a failure */
}
END_TEST

/* In both orders of every pair, the one documented to go first wins. */
START_TEST(the_worst_failure_decides)
{
    static const enum status order[] = {ST_INTERRUPTED, ST_WRONG, ST_HANG, ST_INPUT, ST_ENVIRONMENT, ST_SLOW, ST_OK};
    size_t n = sizeof(order) / sizeof(order[0]);

    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++) {
            ck_assert_int_eq(status_worse(order[i], order[j]), order[i]);
            ck_assert_int_eq(status_worse(order[j], order[i]), order[i]);
        }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("stats");
    TCase *tc = tcase_create("stats");

    tcase_add_loop_test(tc, order_statistics, 0, sizeof(rows) / sizeof(rows[0]));
    tcase_add_test(tc, formulas_as_nccl_tests_define_them);
    tcase_add_test(tc, contestants_of_one_problem_are_compared);
    tcase_add_test(tc, a_baseline_that_cannot_be_here_is_skipped);
    tcase_add_test(tc, the_worst_failure_decides);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
