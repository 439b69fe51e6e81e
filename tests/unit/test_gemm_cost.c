/* The GEMM model against cuBLAS as measured on one H200 (results/reference/h200/single-gpu.txt). */
#include <check.h>
#include <stdlib.h>

#include "sim/gemm_cost.h"
#include "model_machines.h"

#include "../suite.h"

struct row {
    struct problem p;
    uint64_t sms;
    double measured_ms, tolerance;
};

/* Runs of 2 ms and more sit in the power cap, whose state moves them by 5 to 10 % between machines;
 * with half of the SMs the clock is higher. */
static const struct row rows[] = {
    {{.m = 4096, .n = 4096, .k = 4096}, 132, 0.198, 0.10},     {{.m = 8192, .n = 8192, .k = 8192}, 132, 1.411, 0.03},
    {{.m = 8192, .n = 8192, .k = 8192}, 116, 1.576, 0.03},     {{.m = 8192, .n = 8192, .k = 8192}, 100, 1.852, 0.03},
    {{.m = 8192, .n = 8192, .k = 8192}, 66, 2.584, 0.12},      {{.m = 16384, .n = 8192, .k = 4096}, 132, 1.443, 0.03},
    {{.m = 32768, .n = 3584, .k = 4096}, 132, 1.259, 0.03},    {{.m = 8192, .n = 28672, .k = 8192}, 132, 5.705, 0.10},
    {{.m = 16384, .n = 16384, .k = 16384}, 132, 12.555, 0.10}, {{.m = 2048, .n = 8192, .k = 8192}, 132, 0.363, 0.05},
    {{.m = 128, .n = 8192, .k = 8192}, 132, 0.050, 0.05},      {{.m = 8192, .n = 8192, .k = 1024}, 132, 0.209, 0.05},
};

START_TEST(cublas_is_met)
{
    const struct row *r = &rows[_i];
    struct machine m = model_machine_h200();
    double ms = (double)gemm_piece_ps(&m, r->p, r->sms, gemm_step_ps(&m, r->p, r->sms)) / 1e9;
    double error = ms / r->measured_ms - 1;

    ck_assert_msg(error <= r->tolerance && error >= -r->tolerance, "%lu x %lu x %lu on %lu SMs: %.3f ms, measured %.3f",
                  r->p.m, r->p.n, r->p.k, r->sms, ms, r->measured_ms);
}
END_TEST

START_TEST(edges_cost_what_they_should)
{
    struct machine m = model_machine_h200();
    struct problem tile = {.m = 128, .n = 256, .k = 64};
    struct problem ragged = {.m = 129, .n = 257, .k = 65};

    ck_assert_uint_eq(gemm_piece_ps(&m, (struct problem){.m = 0, .n = 256, .k = 64}, 132, 700000), 0);
    ck_assert_uint_eq(gemm_piece_ps(&m, (struct problem){.m = 128, .n = 0, .k = 64}, 132, 700000), 0);
    /* One wave, one step, half tiles: fixed + 0.55 of a step. */
    ck_assert_uint_eq(gemm_piece_ps(&m, tile, 132, 700000), m.gemm.fixed_ps + 385000);
    ck_assert_uint_eq(gemm_piece_ps(&m, ragged, 132, 700000), m.gemm.fixed_ps + 770000);
    ck_assert_uint_eq(gemm_piece_ps(&m, ragged, 1, 700000), 4 * (m.gemm.fixed_ps + 2 * 700000));
    ck_assert_uint_eq(gemm_ps(&m, (struct problem){.m = 1u << 31, .n = 1u << 31, .k = 1u << 31}), GEMM_TIME_MAX_PS);
}
END_TEST

START_TEST(long_runs_step_slower)
{
    struct machine m = model_machine_h200();

    ck_assert_uint_eq(gemm_step_ps(&m, (struct problem){.m = 128, .n = 256, .k = 64}, 132), m.gemm.steps[0].step_ps);
    ck_assert_uint_eq(gemm_step_ps(&m, (struct problem){.m = 65536, .n = 65536, .k = 65536}, 132),
                      m.gemm.steps[m.gemm.step_count - 1].step_ps);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gemm_cost");
    TCase *tc = tcase_create("gemm_cost");

    tcase_add_loop_test(tc, cublas_is_met, 0, sizeof(rows) / sizeof(rows[0]));
    tcase_add_test(tc, edges_cost_what_they_should);
    tcase_add_test(tc, long_runs_step_slower);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
