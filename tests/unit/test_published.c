/* Published results: which rows belong to a point, and what is wrong with a table. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../fuzz/fake_registry.h"
#include "../suite.h"
#include "core/results/published.h"
#include "stderr_capture.h"

#define HEAD "kernel,hardware,shape,system,metric,value,precision,source\n"
#define SCENARIO                                                                                                       \
    "problem:  {kernel: ag_gemm, m: [1000, 2000], n: 1000, k: 1000}\n"                                                 \
    "machine:  hgx-h200-cx7\nworld:    {gpus_per_node: 8}\n"                                                           \
    "variants: {published: {program: fused}, other: {program: fused}, nccl: {}}\n"

static char said[4096], path[] = "/tmp/mkernel-published-XXXXXX";

static void write_table(const char *rows)
{
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");

    ck_assert_ptr_nonnull(f);
    fprintf(f, HEAD "%s", rows);
    fclose(f);
}

static enum status parse(const char *published, struct scenario *s)
{
    char text[2000];
    enum status st;

    snprintf(text, sizeof text, SCENARIO "published: {table: %s, %s}\n", path, published);
    stderr_capture_begin();
    st = scenario_parse("s.yaml", text, strlen(text), &fake_registry, NULL, NULL, 0, s);
    stderr_capture_end(said, sizeof said);
    unlink(path);
    return st;
}

START_TEST(rows_are_matched_and_their_median_counts)
{
    struct scenario s;
    struct published_value v;

    write_table("ag_gemm,\"2 boxes, fast\",M=1000;K=7,Ours,ms,0.5,-,a\n"
                "ag_gemm,\"2 boxes, fast\",M=1000;K=7,Ours,TFLOPS_per_GPU,2,+-0.5,b\n"
                "ag_gemm,\"2 boxes, fast\",M=1000;K=7,Ours,ms,0.7,-,c\n"
                "ag_gemm,\"2 boxes, fast\",M=2000;K=7,Ours,TFLOPS_per_GPU,failed,-,c\n"
                "ag_gemm,\"2 boxes, slow\",M=2000;K=7,Ours,ms,9,-,c\n"
                "gemm_rs,\"2 boxes, fast\",M=2000;K=7,Ours,ms,9,-,c\n"
                "ag_gemm,\"2 boxes, fast\",M=2000;K=7,NCCL,ms,3,-,c\n");
    ck_assert_int_eq(parse("hardware: \"2 boxes, f\", system: Ours, library: NCCL", &s), ST_OK);
    ck_assert(published_find(&s, &s.points[0], &v)); /* 2e9 flop at 2 TFLOP/s: 1000 us */
    ck_assert_double_eq_tol(v.us, 700, 1e-9);
    ck_assert_double_eq_tol(v.low_us, 500, 1e-9);
    ck_assert_double_eq_tol(v.high_us, 1000, 1e-9);
    ck_assert_uint_eq(v.sets, 3);
    ck_assert(!published_find(&s, &s.points[1], &v)); /* another variant */
    ck_assert(!published_find(&s, &s.points[2], &v)); /* no row of the library */
    ck_assert(!published_find(&s, &s.points[3], &v)); /* failed, elsewhere, another kernel */
    ck_assert(published_find(&s, &s.points[5], &v));
    ck_assert_double_eq_tol(v.us, 3000, 1e-9);
    scenario_fini(&s);
}
END_TEST

START_TEST(a_table_without_such_rows_is_refused)
{
    struct scenario s;

    write_table("ag_gemm,box,M=1000,Ours,ms,0.5,-,a\n\"unfinished");
    ck_assert_int_eq(parse("hardware: bix, system: Ours, library: NCCL", &s), ST_INPUT);
    ck_assert_msg(strstr(said, "s.yaml:5:12: published: ") && strstr(said, "holds nothing of"), "%s", said);
    ck_assert_int_eq(parse("hardware: box, system: Ours, library: NCCL", &s), ST_INPUT); /* it is gone by now */
    ck_assert_msg(strstr(said, path) != NULL, "%s", said);
    ck_assert_int_eq(parse("system: Ours, library: NCCL", &s), ST_INPUT);
    ck_assert_msg(strstr(said, "published.hardware is missing") != NULL, "%s", said);
}
END_TEST

START_TEST(totals_are_medians_and_nearest_ranks)
{
    struct published_total t = {.pairs = 4, .agreed = 3};
    char text[300] = "";
    FILE *f = fmemopen(text, sizeof text, "w");

    for (int i = 1; i <= 10; i++)
        published_total_add(&t, i % 2 ? 0.01 * i : -0.01 * i);
    published_total_print(&t, "all", f);
    fclose(f);
    ck_assert_str_eq(text,
                     "all: against 10 published values: median error 5.5 %, p90 9.0 %, worst 10.0 %; who is faster "
                     "agrees at 3 of 4.\n");
    published_total_fini(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("published");
    TCase *tc = tcase_create("table");

    tcase_add_test(tc, rows_are_matched_and_their_median_counts);
    tcase_add_test(tc, a_table_without_such_rows_is_refused);
    tcase_add_test(tc, totals_are_medians_and_nearest_ranks);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
