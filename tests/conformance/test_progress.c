/* Every story on every backend: the same program must come out right, or fail in the right way. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backends.h"
#include "harness.h"
#include "script.h"
#include "stories.h"

#include "../suite.h"

/* How a story is run; backends pass over the keys they do not have. */
static const struct setting {
    struct timing timing;
    const char *options;
} settings[] = {
    {{.mode = TIMING_PIPELINED, .warmup = 2, .iterations = 5}, ""},
    {{.mode = TIMING_PIPELINED, .warmup = 0, .iterations = 6}, "fifo=1 threads_per_crew=1"},
    {{.mode = TIMING_ISOLATED, .warmup = 1, .iterations = 3}, "fifo=2 jitter=0.5"},
};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static struct problem same_problem(const struct problem *problem, struct world world)
{
    (void)world;
    return *problem;
}

static void run_story(const struct story *s, const struct backend *b, const struct setting *setting,
                      struct run_result *r)
{
    struct kernel kernel = {
        .name = s->name, .family = &problem_gemm, .global = same_problem, .reference = s->reference};
    struct program program = {0};

    script_init(&program, s->world);
    s->build(&program);
    harness_run(&(struct trial){.backend = b,
                                .kernel = &kernel,
                                .program = &program,
                                .problem = s->problem,
                                .timing = setting->timing,
                                .options = setting->options},
                r);
    program_fini(&program);
}

static int backend_count(void)
{
    int count = 0;

    while (backends[count])
        count++;
    return count;
}

/* _i walks backends x settings x stories. */
START_TEST(story_comes_out_right)
{
    const struct story *s = &stories[_i % story_count];
    const struct setting *setting = &settings[_i / story_count % COUNT(settings)];
    const struct backend *b = backends[_i / story_count / COUNT(settings)];
    struct run_result *r = calloc(1, sizeof *r);

    if (!harness_can_run(b)) {
        free(r);
        return;
    }
    run_story(s, b, setting, r);
    ck_assert_msg(r->status == ST_OK, "%s: %s: %s\n%s", b->name, s->name, status_text(r->status), r->report);
    ck_assert_uint_gt(r->elements_checked, 0);
    ck_assert_uint_eq(r->elements_wrong, 0);
    ck_assert_uint_ge(r->sample_count, 1);
    for (uint32_t i = 0; i < r->sample_count; i++)
        ck_assert_uint_gt(r->sample_ps[i], 0);
    free(r);
}
END_TEST

START_TEST(story_fails_as_it_must)
{
    const struct story *s = &failing_stories[_i % failing_story_count];
    const struct backend *b = backends[_i / failing_story_count];
    struct run_result *r = calloc(1, sizeof *r);

    if (!harness_can_run(b)) {
        free(r);
        return;
    }
    run_story(s, b, &settings[0], r);
    if (getenv("MKERNEL_TEST_SHOW"))
        fprintf(stderr, "%s: %s: %s\n%s\n", b->name, s->name, status_text(r->status), r->report);
    ck_assert_msg(r->status == s->status, "%s: %s: %s\n%s", b->name, s->name, status_text(r->status), r->report);
    ck_assert_msg(strstr(r->report, s->mentions), "%s: %s: no \"%s\" in\n%s", b->name, s->name, s->mentions, r->report);
    free(r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("progress");
    TCase *right = tcase_create("right"), *failing = tcase_create("failing");

    tcase_set_timeout(right, 120);
    tcase_set_timeout(failing, 120);
    tcase_add_loop_test(right, story_comes_out_right, 0, backend_count() * COUNT(settings) * story_count);
    tcase_add_loop_test(failing, story_fails_as_it_must, 0, backend_count() * failing_story_count);
    suite_add_tcase(suite, right);
    suite_add_tcase(suite, failing);
    return suite_run(suite);
}
