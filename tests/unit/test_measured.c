/* Tables that constants of h200-nvlink2 are fitted to, predicted by the shipped machine file: copies of one CTA after
 * another over NVLink, both directions at once, and plain GEMMs (results/reference/h200). */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/sim/sim.h"
#include "core/measured/measured.h"
#include "kernels/kernels.h"

#include "../suite.h"

static const struct {
    const char *path;
    double tolerance;
} tables[] = {
    {"results/reference/h200/copies-2gpu.csv", 0.10},
    {"results/reference/h200/gemm-2gpu.csv", 0.037},
};

START_TEST(fitted_rows_take_what_was_measured)
{
    const struct backend *const backends[] = {&sim_backend, NULL};
    const struct registry registry = {.kernels = kernels, .backends = backends};
    struct measured_rows rows = {0};
    struct measured_model model;
    struct machine m;
    int wrong = 0;

    ck_assert_int_eq(machine_load("h200-nvlink2", &m), ST_OK);
    ck_assert_int_eq(measured_read(tables[_i].path, &m, &rows), ST_OK);
    measured_model_open(&registry, &model);
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct measured *r = &rows.rows[i];
        double error = measured_predict(&model, r, &m) / r->value - 1;

        if (!r->fitted || fabs(error) <= tables[_i].tolerance)
            continue;
        printf("%s, %s: %+.1f %%\n", r->what, r->detail, 100 * error);
        wrong++;
    }
    ck_assert_uint_gt(rows.count, 10);
    ck_assert_int_eq(wrong, 0);
    measured_model_close(&model);
    measured_free(&rows);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("measured");
    TCase *t = tcase_create("tables");

    tcase_add_loop_test(t, fitted_rows_take_what_was_measured, 0, sizeof tables / sizeof tables[0]);
    suite_add_tcase(suite, t);
    return suite_run(suite);
}
