/* Quantities in bins: nothing is lost when they are spread, or when the bins widen. */
#include <check.h>
#include <stdlib.h>

#include "core/trace/trace_bins.h"

#include "../suite.h"

static double sum(const struct trace_bins *b, uint32_t series)
{
    double total = 0;

    for (int i = 0; i < TRACE_BINS; i++)
        total += b->values[series][i];
    return total;
}

START_TEST(an_amount_is_spread_evenly)
{
    struct trace_bins b;

    trace_bins_init(&b, 1);
    trace_bins_add(&b, 0, 100, 500, 2500); /* half a bin, one bin, half a bin of 1000 ps */
    ck_assert_double_eq_tol(b.values[0][0], 25, 1e-9);
    ck_assert_double_eq_tol(b.values[0][1], 50, 1e-9);
    ck_assert_double_eq_tol(b.values[0][2], 25, 1e-9);
    trace_bins_fini(&b);
}
END_TEST

START_TEST(nothing_is_lost_when_time_goes_on)
{
    struct trace_bins b;
    double expected[2] = {0, 0};

    trace_bins_init(&b, 2);
    for (uint64_t i = 0; i < 2000; i++) {
        uint64_t begin = i * i * 37, end = begin + i * 1000;

        trace_bins_add(&b, i % 2, (double)i, begin, end);
        expected[i % 2] += (double)i;
    }
    ck_assert_double_eq_tol(sum(&b, 0), expected[0], 1e-6);
    ck_assert_double_eq_tol(sum(&b, 1), expected[1], 1e-6);
    ck_assert_uint_le(trace_bins_used(&b, 2000ull * 2000 * 37), TRACE_BINS);
    ck_assert_uint_gt(trace_bins_used(&b, 2000ull * 2000 * 37), TRACE_BINS / 2 - 1);
    trace_bins_fini(&b);
}
END_TEST

START_TEST(what_takes_no_time_is_kept_whole)
{
    struct trace_bins b;

    trace_bins_init(&b, 1);
    trace_bins_add(&b, 0, 7, 255999, 255999);
    trace_bins_add(&b, 0, 5, 256000, 256000); /* the first time beyond the bins */
    ck_assert_double_eq_tol(sum(&b, 0), 12, 1e-9);
    ck_assert_uint_eq(b.width_ps, 2000);
    trace_bins_fini(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trace_bins");
    TCase *tc = tcase_create("bins");

    tcase_add_test(tc, an_amount_is_spread_evenly);
    tcase_add_test(tc, nothing_is_lost_when_time_goes_on);
    tcase_add_test(tc, what_takes_no_time_is_kept_whole);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
