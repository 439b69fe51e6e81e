/* Dynamic work: routings of every kind, several seeds and epochs, on every backend; what does not fit; and how
 * many bytes cross between nodes. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backends.h"
#include "harness.h"
#include "kernels/kernels.h"
#include "kernels/moe_routing.h"
#include "../moe_like.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const struct world worlds[] = {{1, 1}, {1, 4}, {2, 2}, {2, 4}, {3, 2}};

static const char *const params[] = {
    "tile_m=16 tile_n=32 chunk=1KiB gather_rows=8 comm_sms=8",
    "tile_m=8 tile_n=16 chunk=64B gather_rows=3 comm_sms=4 depth=3 join=false",
};

static const uint64_t seeds[] = {1, 2, 3};

struct outcome {
    struct run_result result;
    struct problem    problem;
};

static struct outcome *run(const struct backend *b, const struct moe_problem *moe, struct world world,
                           const char *text, enum form form, uint64_t seed, const char *options)
{
    const struct kernel *k = &moe_dispatch_gemm_kernel;
    struct outcome  *o = calloc(1, sizeof *o);
    void            *values = calloc(1, k->params_size);
    struct complaint complaint = {.text = ""};
    struct program   program = {0};

    o->problem.moe = *moe;
    harness_options(k->options, values, text);
    ck_assert_msg(k->emit(&o->problem, world, harness_machine(), form, values, &program, &complaint) ==
                      ST_OK, "%s", complaint.text);
    harness_run(&(struct trial){.backend = b,
                                .kernel = k,
                                .program = &program,
                                .problem = o->problem,
                                .timing = {.mode = TIMING_PIPELINED, .warmup = 1, .iterations = 3},
                                .options = options,
                                .seed = seed},
                &o->result);
    program_fini(&program);
    free(values);
    return o;
}

static const struct backend *backend_named(const char *name)
{
    for (int i = 0; backends[i]; i++)
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    ck_abort_msg("no backend %s", name);
}

static int backend_count(void)
{
    int count = 0;

    while (backends[count])
        count++;
    return count;
}

START_TEST(routings_are_exact)
{
    int i = _i * harness_stride();
    int seed = harness_digit(&i, COUNT(seeds)), w = harness_digit(&i, COUNT(worlds)), p = harness_digit(&i, MOE_PROBLEMS);
    int text = harness_digit(&i, COUNT(params));
    enum form form = harness_digit(&i, 2) ? FORM_UNFUSED : FORM_FUSED;
    struct moe_problem moe = moe_problems[p];
    struct outcome *o;

    if (!harness_can_run(backends[i]))
        return;
    moe.capacity = 1e3; /* as many as there can be */
    o = run(backends[i], &moe, worlds[w], params[text], form, seeds[seed], "fifo=3 jitter=0.3");
    ck_assert_msg(o->result.status == ST_OK && o->result.elements_wrong == 0 &&
                      o->result.elements_checked > 0 && o->result.rows_dropped == 0,
                  "%s, problem %d, %u x %u, seed %d: %s\n%s", backends[i]->name, p, worlds[w].nodes,
                  worlds[w].gpus_per_node, seed, status_text(o->result.status), o->result.report);
    free(o);
}
END_TEST

/* Room for half of the balanced load: every backend must drop the same pairs. */
START_TEST(overflow_drops_what_it_says)
{
    struct moe_problem moe = moe_problems[_i % MOE_PROBLEMS];
    uint64_t dropped = UINT64_MAX;

    moe.capacity = 0.5;
    moe.overflow = MOE_OVERFLOW_DROP;
    for (int b = 0; backends[b]; b++) {
        struct outcome *o;

        if (!harness_can_run(backends[b]))
            continue;
        o = run(backends[b], &moe, worlds[_i / MOE_PROBLEMS], params[0], FORM_FUSED, 5, "");

        ck_assert_msg(o->result.status == ST_OK, "%s", o->result.report);
        ck_assert(o->result.rows_dropped > 0);
        ck_assert(dropped == UINT64_MAX || dropped == o->result.rows_dropped);
        dropped = o->result.rows_dropped;
        free(o);
    }
}
END_TEST

START_TEST(overflow_is_an_error_otherwise)
{
    struct moe_problem moe = moe_problems[0];
    struct outcome *o;

    if (!harness_can_run(backends[_i]))
        return;
    moe.capacity = 0.5;
    o = run(backends[_i], &moe, (struct world){2, 2}, params[0], FORM_FUSED, 5, "");
    ck_assert_int_eq(o->result.status, ST_INPUT);
    ck_assert_msg(strstr(o->result.report, "raise the capacity") != NULL, "%s", o->result.report);
    free(o);
}
END_TEST

/* Each token once to each node that hosts one of its experts, and never to another. */
START_TEST(traffic_between_nodes_is_sparse)
{
    static const uint32_t nodes[] = {2, 4, 8};
    struct world world = {nodes[_i % COUNT(nodes)], 2};
    struct moe_problem moe = {.tokens = 400, .hidden = 32, .inter = 16, .experts = 64, .top_k = 4,
                              .routing = _i / COUNT(nodes), .capacity = 1e3};
    struct outcome *o = run(backend_named("sim"), &moe, world, params[0], FORM_FUSED, 9, "");
    uint64_t sparse = 0, dense = 0;

    ck_assert_msg(o->result.status == ST_OK, "%s", o->result.report);
    for (uint64_t epoch = 1; epoch <= o->result.epochs; epoch++) {
        struct traffic t;

        moe_traffic(&o->problem, world, 9, epoch, 1, &t);
        sparse += t.sparse_bytes;
        dense += t.dense_bytes;
    }
    ck_assert_uint_eq(o->result.put_bytes, sparse);
    ck_assert(nodes[_i % COUNT(nodes)] == 2 || sparse < dense);
    free(o);
}
END_TEST

/* What tables say on their own, counted in the most obvious way. */
START_TEST(choices_differ_and_change)
{
    struct moe_problem moe = moe_problems[_i];
    int32_t a[MOE_TOP_K_MAX], b[MOE_TOP_K_MAX];
    bool    changes = false;

    for (uint64_t token = 0; token < moe.tokens; token++) {
        moe_choices(&moe, 1, 1, token, a);
        moe_choices(&moe, 1, 2, token, b);
        changes |= memcmp(a, b, moe.top_k * sizeof *a) != 0;
        for (uint64_t i = 0; i < moe.top_k; i++) {
            ck_assert(a[i] >= 0 && (uint64_t)a[i] < moe.experts);
            for (uint64_t j = 0; j < i; j++)
                ck_assert_int_ne(a[i], a[j]);
        }
    }
    ck_assert(changes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("moe");
    TCase *tc = tcase_create("moe");
    SRunner *runner = srunner_create(suite);
    int failed, routings = backend_count() * COUNT(seeds) * COUNT(worlds) * MOE_PROBLEMS * COUNT(params) * 2;

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, routings_are_exact, 0, routings / harness_stride());
    tcase_add_loop_test(tc, overflow_drops_what_it_says, 0, COUNT(worlds) * MOE_PROBLEMS);
    tcase_add_loop_test(tc, overflow_is_an_error_otherwise, 0, backend_count());
    tcase_add_loop_test(tc, traffic_between_nodes_is_sparse, 0, 12);
    tcase_add_loop_test(tc, choices_differ_and_change, 0, MOE_PROBLEMS);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
