/* The search: on a landscape whose lowest point is known, and the search space of every kernel there is. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/tune/tune.h"
#include "kernels/kernels.h"

#include "../suite.h"

#define SECOND 1000000000ull

/* ---- a kernel whose parameters are the numbers of workers of its crews, which the backend sees ---- */

struct params {
    uint64_t left, right, fixed;
};

#define AT(member) offsetof(struct params, member)

static const struct option params[] = {
    {"left", OPTION_COUNT, AT(left), "1", 1, 1024, "1|2|4|8|16|32|64", ""},
    {"right", OPTION_COUNT, AT(right), "1", 1, 1024, "1|3|5|7|9", ""},
    {"fixed", OPTION_COUNT, AT(fixed), "4", 1, 1024, NULL, ""},
    {0},
};

static uint64_t no_tasks(const struct program *p, uint32_t rank, uint32_t queue)
{
    (void)p, (void)rank, (void)queue;
    return 0;
}

static const struct program_ops ops = {.queue_length = no_tasks};

static enum status emit(const struct problem *problem, struct world w, const struct machine *m, enum form form,
                        const void *given, struct program *p, struct complaint *c)
{
    const struct params *x = given;

    (void)problem, (void)m, (void)form;
    *p = (struct program){.world = w, .ops = &ops, .variant = form == FORM_FUSED ? "fused" : "unfused"};
    if (x->left == 64)
        return complain(c, "left", "too many");
    program_add_crew(p, "left", (uint32_t)x->left);
    program_add_crew(p, "right", (uint32_t)x->right);
    program_add_crew(p, "fixed", (uint32_t)x->fixed);
    return ST_OK;
}

static const struct kernel valley = {
    .name = "valley",
    .family = &problem_gemm,
    .options = params,
    .params_size = sizeof(struct params),
    .emit = emit,
};

/* ---- backends: the distance from (16, 7), and a worse one for the unfused form ---- */

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static enum status run(const struct job *job, struct run_result *r)
{
    const struct program *p = job->program;

    r->sample_count = 1;
    r->sample_ps[0] = 1000 + 10 * distance(p->crews[0].workers, 16) + 7 * distance(p->crews[1].workers, 7) +
                      (strcmp(p->variant, "unfused") == 0 ? 5 : 0);
    return r->status = p->crews[0].workers == 3 ? ST_HANG : ST_OK;
}

static enum status baseline(const struct job *job, enum baseline which, struct run_result *r)
{
    r->sample_count = 1;
    r->sample_ps[0] = job->problem->m;
    return r->status = which == BASELINE_NCCL ? ST_OK : ST_UNSUPPORTED;
}

static uint64_t memory(const struct job *job)
{
    (void)job;
    return 1;
}

static const struct backend ground = {.name = "ground", .memory_bytes = memory, .run = run, .baseline = baseline};

/* Unfused, nothing matters, and all is nearly as fast as the one best fused program. */
static enum status run_plain(const struct job *job, struct run_result *r)
{
    run(job, r);
    if (strcmp(job->program->variant, "unfused") == 0)
        r->sample_ps[0] = 1003;
    return r->status;
}

static const struct backend plain = {.name = "plain", .memory_bytes = memory, .run = run_plain, .baseline = baseline};

static volatile sig_atomic_t interrupted;

static struct tune_config config(uint64_t points, uint64_t seed, uint32_t jobs)
{
    return (struct tune_config){
        .points = points,
        .seed = seed,
        .run = {.jobs = jobs, .timeout_ns = 60 * SECOND, .memory_bytes = 1000, .interrupted = &interrupted}};
}

static struct params own;
static const struct machine machine = {.gpu = {.memory_bytes = 1}};
static struct point points[2];

/* One problem with one program of its own and a baseline that takes `nccl_ps`. */
static struct scenario make_scenario(uint64_t left, uint64_t nccl_ps)
{
    own = (struct params){.left = left, .right = 1, .fixed = 4};
    points[0] = (struct point){.kernel = &valley,
                               .machine = &machine,
                               .world = {1, 1},
                               .variant = "fused",
                               .params = &own,
                               .problem = {.m = nccl_ps, .n = 1, .k = 1},
                               .timing = {.iterations = 1}};
    points[1] = points[0];
    points[1].program = PROGRAM_NCCL;
    return (struct scenario){.path = "test", .backend = &ground, .points = points, .point_count = 2};
}

START_TEST(the_lowest_point_is_found)
{
    struct scenario s = make_scenario(1, 5000);
    struct tune_config c = config(0, (uint64_t)_i, 2);
    struct tune t;
    const struct params *best;

    c.points = 60;
    ck_assert_int_eq(tune_run(&s, &c, &t), ST_OK);
    ck_assert_uint_eq(t.problem_count, 1);
    ck_assert_int_eq(t.problems[0].end, TUNE_SETTLED);
    ck_assert_uint_eq(tune_time_ps(&t.units[t.problems[0].best]), 1000);
    best = t.units[t.problems[0].program].point->params;
    ck_assert_uint_eq(best->left, 16);
    ck_assert_uint_eq(best->right, 7);
    ck_assert_uint_eq(best->fixed, 4);
    ck_assert_uint_le(t.problems[0].timed, 60);
    ck_assert_uint_gt(t.problems[0].refused, 0);
    ck_assert_uint_eq(t.problems[0].streams, TUNE_NONE);
    tune_destroy(&t);
}
END_TEST

START_TEST(each_form_descends_to_its_own_best)
{
    struct scenario s = make_scenario(1, 5000);
    struct tune_config c = config(40, (uint64_t)_i, 2);
    struct tune t;

    s.backend = &plain;
    ck_assert_int_eq(tune_run(&s, &c, &t), ST_OK);
    ck_assert_int_eq(t.problems[0].end, TUNE_SETTLED);
    ck_assert_uint_eq(tune_time_ps(&t.units[t.problems[0].program]), 1000);
    ck_assert_int_eq(t.units[t.problems[0].program].point->program, PROGRAM_FUSED);
    tune_destroy(&t);
}
END_TEST

START_TEST(jobs_and_repetition_change_nothing)
{
    struct scenario s = make_scenario(8, 5000);
    struct tune_config c = config(30, 7, 1);
    struct tune one, many;

    ck_assert_int_eq(tune_run(&s, &c, &one), ST_OK);
    c.run.jobs = 5;
    ck_assert_int_eq(tune_run(&s, &c, &many), ST_OK);
    ck_assert_uint_eq(one.unit_count, many.unit_count);
    for (uint64_t i = 0; i < one.unit_count; i++)
        ck_assert_mem_eq(one.units[i].point->params, many.units[i].point->params, sizeof(struct params));
    tune_destroy(&one);
    tune_destroy(&many);
}
END_TEST

START_TEST(the_budget_is_kept)
{
    struct scenario s = make_scenario(1, 5000);
    struct tune_config c = config((uint64_t)_i, 1, 2);
    struct tune t;

    ck_assert_int_eq(tune_run(&s, &c, &t), ST_OK);
    ck_assert_uint_eq(t.problems[0].timed, (uint64_t)_i);
    ck_assert_int_eq(t.problems[0].end, TUNE_POINTS);
    ck_assert_uint_le(tune_time_ps(&t.units[t.problems[0].program]), tune_time_ps(&t.units[t.problems[0].start]));
    tune_destroy(&t);
}
END_TEST

START_TEST(a_faster_baseline_is_the_answer)
{
    struct scenario s = make_scenario(1, 900);
    struct tune_config c = config(40, 1, 2);
    struct tune t;

    ck_assert_int_eq(tune_run(&s, &c, &t), ST_OK);
    ck_assert_uint_eq(t.problems[0].best, t.problems[0].nccl);
    tune_destroy(&t);
}
END_TEST

START_TEST(the_scenarios_own_values_join_and_may_fail)
{
    struct scenario s = make_scenario(3, 5000);
    struct tune_config c = config(40, 1, 2);
    struct tune t;

    ck_assert_int_eq(tune_run(&s, &c, &t), ST_HANG);
    tune_destroy(&t);
    s = make_scenario(17, 5000);
    ck_assert_int_eq(tune_run(&s, &c, &t), ST_OK);
    ck_assert_uint_eq(t.problems[0].space.axes[1].count, 8);
    tune_destroy(&t);
}
END_TEST

/* ---- every kernel's own table ---- */

START_TEST(every_value_of_every_kernel_can_be_set)
{
    const struct kernel *k = kernels[_i];
    struct point p = {.kernel = k, .params = calloc(1, k->params_size + 1)};
    const struct point *only = &p;
    struct tune_space s;

    option_defaults(k->options, p.params);
    ck_assert(tune_space_create(&only, 1, &s));
    ck_assert_uint_gt(s.axis_count, 3);
    for (uint32_t axis = 0; axis < s.axis_count; axis++)
        for (uint8_t v = 0; v < s.axes[axis].count; v++) {
            struct tune_place place = tune_space_place(&s, &p), again;

            place.at[axis] = v;
            tune_space_apply(&s, place, &p);
            again = tune_space_place(&s, &p);
            ck_assert_mem_eq(&place, &again, sizeof place);
        }
    free(p.params);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tune");
    TCase *t = tcase_create("search"), *k = tcase_create("kernels");
    int kernel_count = 0;

    while (kernels[kernel_count])
        kernel_count++;
    tcase_add_loop_test(t, the_lowest_point_is_found, 0, 4);
    tcase_add_loop_test(t, each_form_descends_to_its_own_best, 0, 4);
    tcase_add_test(t, jobs_and_repetition_change_nothing);
    tcase_add_loop_test(t, the_budget_is_kept, 1, 5);
    tcase_add_test(t, a_faster_baseline_is_the_answer);
    tcase_add_test(t, the_scenarios_own_values_join_and_may_fail);
    tcase_add_loop_test(k, every_value_of_every_kernel_can_be_set, 0, kernel_count);
    suite_add_tcase(suite, t);
    suite_add_tcase(suite, k);
    return suite_run(suite);
}
