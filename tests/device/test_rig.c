/* The host's half of the cuda backend over a runtime that is none (fake_cuda.h): which epochs are
 * traced, and what happens to the other devices when one fails. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda.h"
#include "core/trace/trace.h"
#include "fake_cuda.h"
#include "harness.h"
#include "script.h"

#include "../suite.h"

/* Each Check test is a process of its own: the fake begins afresh. */

/* ---- a sink that counts ---- */

static struct {
    uint64_t begins, first, epochs, tasks;
} told;

static uint64_t see_begin(struct trace *t, uint64_t first, uint64_t epochs,
                          const uint32_t crew_workers[PROGRAM_CREWS_MAX])
{
    (void)t, (void)crew_workers;
    told.begins++;
    told.first = first;
    told.epochs = epochs;
    return epochs;
}

static void see_task(struct trace *t, const struct trace_task *x)
{
    (void)t;
    ck_assert_uint_eq(x->at.epoch, told.epochs);
    told.tasks++;
}

static void see_lost(struct trace *t, uint64_t events)
{
    (void)t;
    ck_assert_uint_eq(events, 0);
}

static const struct trace_ops counting = {.begin = see_begin, .task = see_task, .lost = see_lost};

/* ---- runs ---- */

static struct problem same_problem(const struct problem *problem, struct world world)
{
    (void)world;
    return *problem;
}

/* A rank a device, which has a task without data. */
static void run_shares(uint32_t shares, uint32_t warmup, bool traced, struct run_result *r)
{
    static const struct kernel kernel = {.name = "nothing", .global = same_problem};
    struct trace sink = {&counting};
    struct program p = {0};
    uint32_t queue;
    char options[64];

    snprintf(options, sizeof options, "timeout=300ms shares=%u", shares);
    script_init(&p, (struct world){1, (uint32_t)fake_cuda.devices * shares});
    script_buffer(&p, "none", 1, 8, 1);
    program_add_flags(&p, "flag", 1);
    queue = script_queue_and_crew(&p, "main");
    for (uint32_t rank = 0; rank < world_ranks(p.world); rank++)
        task_signal(script_task(&p, rank, queue, OP_NOP, 0, 0), 0, 0, 1);
    harness_run(&(struct trial){.backend = &cuda_backend,
                                .kernel = &kernel,
                                .program = &p,
                                .timing = {.mode = TIMING_ISOLATED, .warmup = warmup, .iterations = 3},
                                .options = options,
                                .trace = traced ? &sink : NULL},
                r);
    program_fini(&p);
}

static void run(uint32_t warmup, bool traced, struct run_result *r)
{
    run_shares(1, warmup, traced, r);
}

START_TEST(what_is_timed_is_not_traced)
{
    static struct run_result r;

    run(2, true, &r);
    ck_assert_msg(r.status == ST_OK, "%s", r.report);
    ck_assert_str_eq(fake_cuda.launches, "tuuuut");
    ck_assert_uint_eq(r.sample_count, 3);
    ck_assert_uint_eq(r.epochs, 6);
    ck_assert_uint_eq(told.begins, 1);
    ck_assert_uint_eq(told.first, 6);
    ck_assert_uint_eq(told.epochs, 6);
    ck_assert_uint_eq(told.tasks, 1);
}
END_TEST

START_TEST(the_only_warm_up_is_by_what_is_timed)
{
    static struct run_result r;

    run(1, true, &r);
    ck_assert_msg(r.status == ST_OK, "%s", r.report);
    ck_assert_str_eq(fake_cuda.launches, "uuuut");
}
END_TEST

START_TEST(without_a_sink_nothing_is_traced)
{
    static struct run_result r;

    run(2, false, &r);
    ck_assert_msg(r.status == ST_OK, "%s", r.report);
    ck_assert_str_eq(fake_cuda.launches, "uuuuu");
}
END_TEST

START_TEST(a_hang_is_told_if_its_epoch_was_traced)
{
    static struct run_result r;
    uint32_t warmup = _i ? 2 : 1;

    fake_cuda.endless = true;
    run(warmup, true, &r);
    ck_assert_int_eq(r.status, ST_HANG);
    ck_assert_uint_eq(told.begins, warmup == 2);
    ck_assert_uint_eq(told.epochs, warmup == 2);
    ck_assert(fake_cuda.stopped[0]);
    ck_assert_int_eq(fake_cuda.waits_for_good, 0);
}
END_TEST

/* ---- several devices ---- */

START_TEST(devices_run_together)
{
    static struct run_result r;

    fake_cuda.devices = 3;
    run(1, true, &r);
    ck_assert_msg(r.status == ST_OK, "%s", r.report);
    ck_assert_str_eq(fake_cuda.launches, "uuuuuuuuuuuuttt");
    ck_assert_uint_eq(told.tasks, 3);
    ck_assert_int_eq(fake_cuda.waits_for_good, 0);
}
END_TEST

START_TEST(shares_run_as_devices_do)
{
    static struct run_result r;

    fake_cuda.devices = 2;
    run_shares(3, 1, true, &r);
    ck_assert_msg(r.status == ST_OK, "%s", r.report);
    ck_assert_str_eq(fake_cuda.launches, "uuuuuuuuuuuuuuuuuuuuuuuutttttt");
    ck_assert_uint_eq(told.tasks, 6);
    ck_assert_msg(strncmp(r.model, "6 x 1/3 ", 8) == 0, "%s", r.model);
}
END_TEST

START_TEST(shares_need_no_links)
{
    static struct run_result r;

    fake_cuda.devices = 1;
    fake_cuda.links_add = false;
    run_shares(2, 1, false, &r);
    ck_assert_msg(r.status == ST_OK, "%s", r.report);
}
END_TEST

/* The others wait for it, and nothing could be freed before they have ended. */
START_TEST(one_that_traps_stops_all)
{
    static struct run_result r;

    fake_cuda.devices = 3;
    fake_cuda.endless = true;
    fake_cuda.traps = _i;
    run(1, false, &r);
    ck_assert_int_eq(r.status, ST_ENVIRONMENT);
    ck_assert_msg(strstr(r.report, "a kernel failed"), "%s", r.report);
    for (int i = 0; i < 3; i++)
        ck_assert(fake_cuda.stopped[i] == (i != _i));
    ck_assert_int_eq(fake_cuda.waits_for_good, 0);
}
END_TEST

START_TEST(a_refused_launch_stops_all)
{
    static struct run_result r;

    fake_cuda.devices = 3;
    fake_cuda.endless = true;
    fake_cuda.refuses = _i;
    run(1, false, &r);
    ck_assert_int_eq(r.status, ST_ENVIRONMENT);
    ck_assert_msg(strstr(r.report, "refused"), "%s", r.report);
    ck_assert_uint_eq(strlen(fake_cuda.launches), _i);
    ck_assert_int_eq(fake_cuda.waits_for_good, 0);
}
END_TEST

START_TEST(links_that_carry_no_additions_are_refused)
{
    static struct run_result r;

    fake_cuda.devices = 2;
    fake_cuda.links_add = false;
    run(1, false, &r);
    ck_assert_int_eq(r.status, ST_ENVIRONMENT);
    ck_assert_msg(strstr(r.report, "cannot add atomically") && strstr(r.report, "devices: 1"), "%s", r.report);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("rig");
    TCase *c = tcase_create("all");

    tcase_add_test(c, what_is_timed_is_not_traced);
    tcase_add_test(c, the_only_warm_up_is_by_what_is_timed);
    tcase_add_test(c, without_a_sink_nothing_is_traced);
    tcase_add_loop_test(c, a_hang_is_told_if_its_epoch_was_traced, 0, 2);
    tcase_add_test(c, devices_run_together);
    tcase_add_test(c, shares_run_as_devices_do);
    tcase_add_test(c, shares_need_no_links);
    tcase_add_loop_test(c, one_that_traps_stops_all, 0, 3);
    tcase_add_loop_test(c, a_refused_launch_stops_all, 0, 3);
    tcase_add_test(c, links_that_carry_no_additions_are_refused);
    suite_add_tcase(s, c);
    return suite_run(s);
}
