/* CSV files, fits, and what is made of errors. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/parse/csv.h"
#include "core/statistics/fit.h"
#include "core/validate/validate.h"
#include "stderr_capture.h"

#include "../suite.h"

static char path[64], said[2048];

static enum status read_text(const char *text, struct csv *out)
{
    snprintf(path, sizeof path, "/tmp/mkernel-test-csv-%d", (int)getpid());
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    enum status st = csv_read(path, out);
    unlink(path);
    return st;
}

START_TEST(fields_are_cut)
{
    struct csv c;
    uint32_t column;
    double value;

    ck_assert_int_eq(read_text("a,b,c\r\n1,\"x, \"\"y\"\"\",\r\n2.5,,\"\"\n", &c), ST_OK);
    ck_assert_uint_eq(c.row_count, 3);
    ck_assert_str_eq(csv_field(&c, 1, 1), "x, \"y\"");
    ck_assert_str_eq(csv_field(&c, 2, 2), "");
    ck_assert_int_eq(csv_column(&c, "b", &column), ST_OK);
    ck_assert_uint_eq(column, 1);
    ck_assert_int_eq(csv_number(&c, 2, 0, &value), ST_OK);
    ck_assert(value == 2.5);
    csv_free(&c);
}
END_TEST

static const struct {
    const char *text, *says;
} bad_files[] = {
    {"", "no header"},
    {"a,b\n1\n", ":2: another number of columns"},
    {"a\n\"x\n", ":2: a quoted field does not end"},
    {"a\n\"x\"y\n", ":2: a quoted field does not end"},
    {"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25\n", "more than 24 columns"},
};

START_TEST(bad_files_are_refused)
{
    struct csv c;

    stderr_capture_begin();
    ck_assert_int_eq(read_text(bad_files[_i].text, &c), ST_INPUT);
    stderr_capture_end(said, sizeof said);
    ck_assert_ptr_nonnull(strstr(said, bad_files[_i].says));
}
END_TEST

START_TEST(what_is_no_number_is_said)
{
    struct csv c;
    uint32_t column;
    double value;

    ck_assert_int_eq(read_text("size,time\n1e9x,nan\n", &c), ST_OK);
    stderr_capture_begin();
    ck_assert_int_eq(csv_number(&c, 1, 0, &value), ST_INPUT);
    ck_assert_int_eq(csv_number(&c, 1, 1, &value), ST_INPUT);
    ck_assert_int_eq(csv_column(&c, "tme", &column), ST_INPUT);
    stderr_capture_end(said, sizeof said);
    ck_assert_ptr_nonnull(strstr(said, ":2: size: \"1e9x\" is no number"));
    ck_assert_ptr_nonnull(strstr(said, "\"time\""));
    csv_free(&c);
}
END_TEST

/* ---- fit ---- */

#define POINTS 12

/* y = a + x / b, and one point that is wrong by half. */
static void line_residuals(void *arg, const double *parameters, double *residuals_out)
{
    (void)arg;
    for (uint32_t i = 0; i < POINTS; i++) {
        double x = pow(2, i), right = 7 + x / 3, model = parameters[0] + x / parameters[1];
        residuals_out[i] = log(model / (i == 5 ? 1.5 * right : right));
    }
}

START_TEST(a_fit_finds_the_constants_beside_an_outlier)
{
    struct fit fit = {.fn = line_residuals, .parameter_count = 2, .residual_count = POINTS, .rounds = 30, .knee = 0.01};
    double parameters[] = {1, 20};

    fit_run(&fit, parameters);
    ck_assert_msg(fabs(parameters[0] - 7) < 0.1 && fabs(parameters[1] - 3) < 0.05, "%f %f", parameters[0],
                  parameters[1]);
}
END_TEST

/* ---- groups and bounds ---- */

static void add(struct validation *v, const char *what, double predicted_us)
{
    struct validate_row r = {.set = "nccl",
                             .place = "in a node",
                             .size = ">= 1 MiB",
                             .machine = "m",
                             .source = "s",
                             .measured_us = 100,
                             .predicted_us = predicted_us,
                             .held_out = true};

    snprintf(r.what, sizeof r.what, "%s", what);
    validation_add(v, &r);
}

static enum status hold_to(const struct validation *v, const char *bounds)
{
    uint32_t count;
    struct validate_group *groups = validate_groups(v, &count);

    snprintf(path, sizeof path, "/tmp/mkernel-test-bounds-%d", (int)getpid());
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(bounds, f);
    fclose(f);
    enum status st = validate_bounds(groups, count, path);
    unlink(path);
    free(groups);
    return st;
}

START_TEST(errors_are_grouped_and_held_to_bounds)
{
    struct validation v = {.rows = NULL};
    uint32_t count;

    for (int i = 1; i <= 10; i++)
        add(&v, i <= 5 ? "a" : "b", 100 + (i % 2 ? i : -i));
    struct validate_group *groups = validate_groups(&v, &count);
    ck_assert_uint_eq(count, 5); /* a class, two collectives, a machine, a source */
    ck_assert_str_eq(groups[0].name, "nccl in a node, >= 1 MiB");
    ck_assert_uint_eq(groups[0].count, 10);
    ck_assert(fabs(groups[0].median - 5) < 1e-9 && fabs(groups[0].p90 - 9) < 1e-9);
    ck_assert(fabs(groups[0].worst - 10) < 1e-9 && groups[0].bare_median < 0);
    free(groups);
    ck_assert_int_eq(hold_to(&v, "name,median,p90\n\"nccl in a node, >= 1 MiB\",5.1,9.1\n"), ST_OK);
    stderr_capture_begin();
    ck_assert_int_eq(hold_to(&v, "name,median,p90\n\"nccl in a node, >= 1 MiB\",4.9,9.1\n"), ST_WRONG);
    ck_assert_int_eq(hold_to(&v, "name,median,p90\nother,5,9\n"), ST_WRONG);
    ck_assert_int_eq(hold_to(&v, "name,median\nother,5\n"), ST_INPUT);
    stderr_capture_end(said, sizeof said);
    validation_free(&v);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("validate");
    TCase *tc = tcase_create("validate");

    tcase_add_test(tc, fields_are_cut);
    tcase_add_loop_test(tc, bad_files_are_refused, 0, sizeof(bad_files) / sizeof(bad_files[0]));
    tcase_add_test(tc, what_is_no_number_is_said);
    tcase_add_test(tc, a_fit_finds_the_constants_beside_an_outlier);
    tcase_add_test(tc, errors_are_grouped_and_held_to_bounds);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
