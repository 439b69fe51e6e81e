/* How well rows determine constants, and what becomes of those that they do not. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/calibrate/calibrate.h"

#include "../suite.h"

/* ---- spreads ---- */

#define ROWS 10

/* a + b x; the third parameter is nowhere. */
static void line(void *arg, const double *p, double *residuals_out)
{
    const double *noise = arg;

    for (uint32_t i = 0; i < ROWS; i++)
        residuals_out[i] = log((p[0] + p[1] * i) / (2 + 3.0 * i)) + (i % 2 ? *noise : -*noise);
}

START_TEST(spreads_grow_with_what_is_left)
{
    double noise = 0.02, parameters[] = {2, 3, 1};
    struct fit fit = {.fn = line, .arg = &noise, .parameter_count = 3, .residual_count = ROWS, .knee = 1};
    struct fit_spread little, much;

    fit_spread(&fit, parameters, &little);
    noise = 0.04;
    fit_spread(&fit, parameters, &much);
    ck_assert(isinf(little.relative[2]) && little.count[2] == 0);
    for (int i = 0; i < 2; i++) {
        ck_assert(little.relative[i] > 0.005 && little.relative[i] < 0.1);
        ck_assert(fabs(much.relative[i] / little.relative[i] - 2) < 0.01);
    }
    ck_assert_uint_eq(little.count[1], ROWS - 1); /* not where x is 0 */
}
END_TEST

/* ---- a part ---- */

/* Rows of dispatch + local and of dispatch alone, of a machine with other values; local and peer are only seen
 * together. */
static double ratio(void *arg, uint32_t row, const struct machine *m)
{
    const struct machine *truth = arg;
    uint64_t now = m->flag.dispatch_ps, then = truth->flag.dispatch_ps;

    if (row % 2) {
        now += m->flag.local_ps + m->flag.peer_ps;
        then += truth->flag.local_ps + truth->flag.peer_ps;
    }
    return (double)now / (double)then * (row % 4 < 2 ? 1.003 : 0.997);
}

static struct machine make_machine(uint64_t dispatch_ps, uint64_t local_ps, uint64_t peer_ps)
{
    struct machine m = {.name = "test"};

    m.flag.dispatch_ps = dispatch_ps;
    m.flag.local_ps = local_ps;
    m.flag.peer_ps = peer_ps;
    m.host.event_ps = 5000000;
    return m;
}

static void fit_keys(const char *const *keys, uint32_t count, struct machine *truth, struct calibration *c)
{
    struct constant constants[FIT_PARAMETERS_MAX];
    struct constants_fit fit = {.constants = constants,
                                .count = count,
                                .ratio = ratio,
                                .arg = truth,
                                .row_count = 8,
                                .rounds = 30,
                                .knee = 0.1};

    for (uint32_t i = 0; i < count; i++)
        constants[i] = constant_of_key(keys[i], 0);
    calibrate_fit(c, &fit, false);
}

START_TEST(values_are_found_kept_or_left_open)
{
    static const char *const keys[] = {"flag.dispatch", "flag.local", "host.event"};
    struct machine truth = make_machine(400000, 600000, 1000000);
    static struct calibration c;

    c = (struct calibration){.machine = make_machine(401000, 800000, 1000000)};
    fit_keys(keys, 3, &truth, &c);
    ck_assert_uint_eq(c.value_count, 3);
    ck_assert_int_eq(c.values[0].state, CALIBRATED_KEPT); /* 0.25 % beside it */
    ck_assert_uint_eq(c.machine.flag.dispatch_ps, 401000);
    ck_assert_int_eq(c.values[1].state, CALIBRATED_REPLACED);
    ck_assert(fabs((double)c.machine.flag.local_ps / 600000 - 1) < 0.02);
    ck_assert_int_eq(c.values[2].state, CALIBRATED_OPEN);
    ck_assert(isinf(c.values[2].spread));
    ck_assert_uint_eq(c.machine.host.event_ps, 5000000);
    ck_assert_uint_eq(calibrate_fitted_count(&c), 2);
}
END_TEST

/* Neither can be told from the other: one stays as it is, and the other makes up for it. */
START_TEST(what_only_a_sum_says_is_not_told_apart)
{
    static const char *const keys[] = {"flag.local", "flag.peer"};
    struct machine truth = make_machine(400000, 600000, 1000000);
    static struct calibration c;

    c = (struct calibration){.machine = make_machine(400000, 300000, 1000000)};
    fit_keys(keys, 2, &truth, &c);
    ck_assert_uint_eq(calibrate_fitted_count(&c), 1);
    ck_assert(fabs((double)(c.machine.flag.local_ps + c.machine.flag.peer_ps) / 1600000 - 1) < 0.01);
}
END_TEST

START_TEST(values_are_written_as_by_hand)
{
    struct constant time = constant_of_key("flag.local", 0), rate = constant_of_key("copy.push_rate", 0);
    struct machine m = make_machine(1, 698731, 1);
    char text[32];

    ck_assert_str_eq(constant_print(&time, constant_get(&time, &m), text, sizeof text), "0.6987us");
    ck_assert(constant_round(&time, 698731) == 698700);
    ck_assert_str_eq(constant_print(&rate, 37.512e9, text, sizeof text), "37.51GB/s");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("calibrate");
    TCase *tc = tcase_create("calibrate");

    tcase_add_test(tc, spreads_grow_with_what_is_left);
    tcase_add_test(tc, values_are_found_kept_or_left_open);
    tcase_add_test(tc, what_only_a_sum_says_is_not_told_apart);
    tcase_add_test(tc, values_are_written_as_by_hand);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
