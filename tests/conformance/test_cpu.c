/* What only the cpu backend promises: time-outs, memory limits, accounts of its threads. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backends.h"
#include "harness.h"
#include "kernels/reference.h"
#include "script.h"
#include "stories.h"

#include "../suite.h"

static struct problem same_problem(const struct problem *problem, struct world world)
{
    (void)world;
    return *problem;
}

static const struct backend *cpu(void)
{
    for (int i = 0; backends[i]; i++)
        if (strcmp(backends[i]->name, "cpu") == 0)
            return backends[i];
    ck_abort_msg("no cpu backend");
    return NULL;
}

static struct program program;
static struct run_result *result;
static struct kernel kernel;

static void open_story(void)
{
    const struct story *s = &stories[1]; /* two ranks, one crew */

    script_init(&program, s->world);
    s->build(&program);
    kernel = (struct kernel){.global = same_problem, .reference = s->reference};
    result = calloc(1, sizeof *result);
}

static void close_story(void)
{
    program_fini(&program);
    free(result);
}

static enum status run(struct timing timing, const char *options)
{
    return harness_run(&(struct trial){.backend = cpu(),
                                       .kernel = &kernel,
                                       .program = &program,
                                       .problem = stories[1].problem,
                                       .timing = timing,
                                       .options = options},
                       result);
}

START_TEST(samples_are_the_last_iterations)
{
    struct timing timing = {.mode = _i ? TIMING_ISOLATED : TIMING_PIPELINED, .iterations = 300};

    ck_assert_int_eq(run(timing, ""), ST_OK);
    ck_assert_uint_eq(result->sample_count, RESULT_SAMPLES_MAX);
    ck_assert_uint_eq(result->epochs, 300);
    ck_assert_uint_eq(result->tasks, 300 * 2 * 3);
    ck_assert_uint_eq(result->elements_checked, 300 * 2 * SHARD_ROWS * SHARD_COLS);
    for (uint32_t i = 0; i < result->sample_count; i++)
        ck_assert_uint_gt(result->sample_ps[i], 0);
}
END_TEST

START_TEST(crews_account_for_their_time)
{
    const struct crew_result *crew = &result->crews[0];

    ck_assert_int_eq(run((struct timing){.warmup = 1, .iterations = 50}, ""), ST_OK);
    ck_assert_uint_eq(result->crew_count, 1);
    ck_assert_str_eq(crew->name, "main");
    ck_assert_uint_eq(crew->workers, 2);
    ck_assert_uint_eq(result->cause_count, 3);
    ck_assert_str_eq(result->causes[0], "ready");
    ck_assert_str_eq(result->causes[2], BACKEND_CAUSE_PUTS);
    ck_assert_uint_gt(crew->busy_ps, 0);
    ck_assert_uint_gt(crew->idle_ps, 0);
    ck_assert_uint_eq(crew->waiting_ps[2], 0);
}
END_TEST

/* One task of many milliseconds, during which no flag moves. */
START_TEST(time_out_ends_a_run)
{
    const struct problem problem = {.m = 1536, .n = 1536, .k = 4096};
    struct run_result *r = calloc(1, sizeof *r);
    struct kernel gemm = {.global = same_problem, .reference = reference_gemm};
    struct program p = {0};
    struct task *t;

    script_init(&p, (struct world){1, 1});
    script_buffer(&p, "in", 1536, 4096, 1);
    script_buffer(&p, "out", 1536, 1536, 1);
    program_add_flags(&p, "late", 1);
    script_queue_and_crew(&p, "main");
    t = script_task(&p, 0, 0, OP_GEMM, 1536, 1536);
    t->k = 4096;
    t->a = t->b = script_rows(&p, 0, 0, 0);
    task_store_to(t, script_rows(&p, 0, 1, 0));
    task_signal(t, 0, 0, 1);
    t = script_task(&p, 0, 0, OP_NOP, 0, 0);
    task_wait(t, 0, 1, FLAG_TOTAL);
    harness_run(&(struct trial){.backend = cpu(),
                                .kernel = &gemm,
                                .program = &p,
                                .problem = problem,
                                .timing = {.iterations = 1},
                                .options = "timeout=1ms"},
                r);
    ck_assert_int_eq(r->status, ST_HANG);
    ck_assert_msg(strstr(r->report, "time-out") && strstr(r->report, "late[0] is 0, wanted 1"), "%s", r->report);
    program_fini(&p);
    free(r);
}
END_TEST

START_TEST(memory_limit_is_kept)
{
    void *options = calloc(1, cpu()->options_size);
    struct timing timing = {.iterations = 1};
    struct job job = {.program = &program,
                      .world = program.world,
                      .kernel = &kernel,
                      .problem = &stories[1].problem,
                      .machine = harness_machine(),
                      .timing = timing,
                      .options = options};
    uint64_t needed;

    harness_options(cpu()->options, options, "");
    needed = cpu()->memory_bytes(&job);
    ck_assert_uint_gt(needed, 2 * program_window_bytes(&program));
    job.memory_limit_bytes = needed - 1;
    ck_assert_int_eq(cpu()->run(&job, result), ST_MEMORY);
    ck_assert_ptr_nonnull(strstr(result->report, "the limit is"));
    job.memory_limit_bytes = needed;
    ck_assert_int_eq(cpu()->run(&job, result), ST_OK);
    free(options);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu");
    TCase *tc = tcase_create("cpu");

    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, open_story, close_story);
    tcase_add_loop_test(tc, samples_are_the_last_iterations, 0, 2);
    tcase_add_test(tc, crews_account_for_their_time);
    tcase_add_test(tc, time_out_ends_a_run);
    tcase_add_test(tc, memory_limit_is_kept);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
