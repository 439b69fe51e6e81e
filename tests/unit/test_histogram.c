/* Percentiles out of buckets. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/statistics/histogram.h"

#include "../suite.h"

/* A duration alone is its own percentile, to within a bucket. */
START_TEST(a_bucket_is_an_eighth_wide)
{
    for (uint64_t ns = 0; ns < UINT64_C(1) << 40; ns = ns * 9 / 8 + 1) {
        struct histogram h = {0};
        uint64_t found;

        histogram_add(&h, ns);
        found = histogram_quantile(&h, 0.5);
        ck_assert_uint_ge(found, ns);
        ck_assert_uint_le(found, ns + ns / 8);
    }
}
END_TEST

START_TEST(longer_than_all_buckets_still_counts)
{
    struct histogram h = {0};

    histogram_add(&h, UINT64_MAX);
    ck_assert_uint_eq(h.count, 1);
    ck_assert_uint_ge(histogram_quantile(&h, 1), UINT64_C(1) << 39);
}
END_TEST

START_TEST(quantiles_of_a_hundred)
{
    struct histogram even = {0}, odd = {0};

    ck_assert_uint_eq(histogram_quantile(&even, 0.5), 0);
    for (uint64_t ns = 1; ns <= 100; ns++)
        histogram_add(ns % 2 ? &odd : &even, ns * 1000);
    histogram_merge(&even, &odd);
    ck_assert_uint_eq(even.count, 100);
    ck_assert_uint_ge(histogram_quantile(&even, 0.5), 50000);
    ck_assert_uint_le(histogram_quantile(&even, 0.5), 50000 * 9 / 8);
    ck_assert_uint_ge(histogram_quantile(&even, 0.99), 99000);
    ck_assert_uint_le(histogram_quantile(&even, 0), 1000 * 9 / 8);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("histogram");
    TCase *tc = tcase_create("histogram");

    tcase_add_test(tc, a_bucket_is_an_eighth_wide);
    tcase_add_test(tc, longer_than_all_buckets_still_counts);
    tcase_add_test(tc, quantiles_of_a_hundred);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
