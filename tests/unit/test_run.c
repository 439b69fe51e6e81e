/* The loop: what becomes of runs that crash, hang, vanish or are interrupted, and who may run beside whom. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/run/child.h"
#include "core/clock.h"
#include "core/run/run.h"

#include "../suite.h"

#define SECOND 1000000000ull

static volatile sig_atomic_t interrupted;

/* What the fake backend does is the problem's m. */
enum { FINE, CRASH, VANISH, SPIN, KILLED, REPORT, NAP, ANSWER, DEAF };

static enum status act(const struct job *job, enum baseline which, struct run_result *r)
{
    (void)which;
    switch (job->problem->m) {
    case CRASH:
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
        break;
    case VANISH: _exit(3);
    case SPIN:
        for (;;)
            pause();
    case ANSWER:
        while (!*child_interrupt())
            usleep(1000);
        r->status = ST_INTERRUPTED;
        strcpy(r->report, "rank 5 was under way");
        break;
    case DEAF:
        child_interrupt();
        for (;;)
            pause();
    case KILLED: raise(SIGKILL); break;
    case REPORT:
        r->status = ST_HANG;
        strcpy(r->report, "rank 3 waits");
        break;
    case NAP: usleep(500000); break;
    }
    r->sample_count = 1;
    r->sample_ps[0] = job->problem->n;
    return r->status;
}

static const struct backend beside = {.name = "beside", .baseline = act};
static const struct backend alone = {.name = "alone", .baseline = act, .exclusive = true};
static const struct backend without = {.name = "without"};

static void make_units(struct run_unit *units, struct point *points, const struct backend *b, const uint64_t *acts,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        points[i] = (struct point){.program = PROGRAM_NCCL};
        units[i] = (struct run_unit){.point = &points[i], .backend = b, .problem = {.m = acts[i], .n = 100 + i}};
    }
}

static struct run_config config(uint32_t jobs)
{
    return (struct run_config){
        .jobs = jobs, .timeout_ns = 2 * SECOND, .memory_bytes = 1000, .interrupted = &interrupted};
}

START_TEST(each_end_has_its_status)
{
    static const uint64_t acts[] = {FINE, CRASH, VANISH, SPIN, KILLED, REPORT, FINE};
    static const enum status expected[] = {ST_OK, ST_WRONG, ST_WRONG, ST_HANG, ST_MEMORY, ST_HANG, ST_OK};
    struct point points[7];
    struct run_unit units[7];
    struct run_config c = config((uint32_t)_i);

    make_units(units, points, &beside, acts, 7);
    ck_assert_int_eq(run_units(units, 7, &c), ST_OK);
    for (int i = 0; i < 7; i++) {
        ck_assert_ptr_nonnull(units[i].result);
        ck_assert_int_eq(units[i].result->status, expected[i]);
        if (expected[i] < 0)
            ck_assert_uint_gt(strlen(units[i].result->report), 10);
        else
            ck_assert_uint_eq(units[i].result->sample_ps[0], 100 + (uint64_t)i);
        free(units[i].result);
    }
}
END_TEST

static double seconds_for_four_naps(const struct backend *b, uint64_t memory_bytes)
{
    static const uint64_t acts[] = {NAP, NAP, NAP, NAP};
    struct point points[4];
    struct run_unit units[4];
    struct run_config c = config(4);
    uint64_t start = clock_now_ns();

    c.timeout_ns = 60 * SECOND;
    make_units(units, points, b, acts, 4);
    for (int i = 0; i < 4; i++)
        units[i].memory_bytes = memory_bytes;
    ck_assert_int_eq(run_units(units, 4, &c), ST_OK);
    for (int i = 0; i < 4; i++)
        free(units[i].result);
    return (double)(clock_now_ns() - start) / SECOND;
}

START_TEST(runs_share_time_where_they_may)
{
    ck_assert_double_lt(seconds_for_four_naps(&beside, 250), 1.9);
    ck_assert_double_ge(seconds_for_four_naps(&alone, 250), 2.0);   /* one at a time */
    ck_assert_double_ge(seconds_for_four_naps(&beside, 501), 2.0);  /* no room for two */
    ck_assert_double_ge(seconds_for_four_naps(&beside, 5000), 2.0); /* a giant still gets its turn */
}
END_TEST

START_TEST(a_baseline_without_a_model_is_skipped)
{
    static const uint64_t acts[] = {FINE};
    struct point point;
    struct run_unit unit;
    struct run_config c = config(1);

    make_units(&unit, &point, &without, acts, 1);
    ck_assert(run_unit_skipped(&unit));
    ck_assert_int_eq(run_units(&unit, 1, &c), ST_OK);
    ck_assert_ptr_null(unit.result);
}
END_TEST

/* A run that is out of time is asked where it stands, and does not have to answer. */
START_TEST(a_time_out_has_a_report)
{
    static const uint64_t acts[] = {ANSWER, DEAF};
    struct point points[2];
    struct run_unit units[2];
    struct run_config c = config(2);
    uint64_t start = clock_now_ns();

    make_units(units, points, &beside, acts, 2);
    c.timeout_ns = SECOND / 5;
    ck_assert_int_eq(run_units(units, 2, &c), ST_OK);
    ck_assert_uint_lt(clock_now_ns() - start, 20 * SECOND);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(units[i].result->status, ST_HANG);
        ck_assert_ptr_nonnull(strstr(units[i].result->report, "no result after 0.2 s"));
    }
    ck_assert_ptr_nonnull(strstr(units[0].result->report, "rank 5 was under way"));
    free(units[0].result);
    free(units[1].result);
}
END_TEST

static void interrupt_at_one(void *arg, uint64_t finished, uint64_t total)
{
    (void)arg, (void)total;
    interrupted = finished > 0;
}

START_TEST(what_is_complete_survives_an_interrupt)
{
    static const uint64_t acts[] = {FINE, SPIN, FINE};
    struct point points[3];
    struct run_unit units[3];
    struct run_config c = config(1);

    c.timeout_ns = 600 * SECOND;
    c.progress = interrupt_at_one;
    make_units(units, points, &beside, acts, 3);
    ck_assert_int_eq(run_units(units, 3, &c), ST_INTERRUPTED);
    ck_assert_ptr_nonnull(units[0].result);
    ck_assert_ptr_null(units[1].result);
    ck_assert_ptr_null(units[2].result);
    free(units[0].result);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("run");
    TCase *tc = tcase_create("run");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, each_end_has_its_status, 1, 3);
    tcase_add_test(tc, runs_share_time_where_they_may);
    tcase_add_test(tc, a_time_out_has_a_report);
    tcase_add_test(tc, a_baseline_without_a_model_is_skipped);
    tcase_add_test(tc, what_is_complete_survives_an_interrupt);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
