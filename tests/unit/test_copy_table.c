/* Copies of one CTA after another over NVLink, against those measured on two H200s: both directions at once, 64 MiB each
 * way, through the copy pipeline of a persistent kernel (results/reference/h200/copies-2gpu.csv). */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/sim/sim.h"
#include "core/measured.h"
#include "kernels/kernels.h"

#define TOLERANCE 0.10

START_TEST(copies_take_what_was_measured)
{
    const struct backend *const backends[] = {&sim_backend, NULL};
    const struct registry registry = {.kernels = kernels, .backends = backends};
    struct measured_rows  rows = {0};
    struct measured_model model;
    struct machine        m;
    int                   wrong = 0;

    ck_assert_int_eq(machine_load("h200-nvlink2", &m), ST_OK);
    ck_assert_int_eq(measured_read("results/reference/h200/copies-2gpu.csv", &m, &rows), ST_OK);
    measured_model_open(&registry, &model);
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct measured *r = &rows.rows[i];
        double                 error = measured_predict(&model, r, &m) / r->value - 1;

        if (fabs(error) > TOLERANCE)
            printf("%s, %s: %+.0f %%\n", r->what, r->detail, 100 * error);
        wrong += !(fabs(error) <= TOLERANCE);
    }
    ck_assert_uint_gt(rows.count, 10);
    ck_assert_int_eq(wrong, 0);
    measured_model_close(&model);
    measured_free(&rows);
}
END_TEST

int main(void)
{
    Suite   *suite = suite_create("copies");
    TCase   *t = tcase_create("table");
    SRunner *runner = srunner_create(suite);
    int      failed;

    tcase_add_test(t, copies_take_what_was_measured);
    suite_add_tcase(suite, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
