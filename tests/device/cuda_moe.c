#include "cuda_moe.h"

#include <stdlib.h>
#include <string.h>

#include "../moe_like.h"
#include "backends/cuda/cuda.h"
#include "harness.h"
#include "index_story.h"
#include "kernels/kernels.h"
#include "kernels/moe_routing.h"
#include "script.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const struct world worlds[] = {{1, 1}, {1, 2}, {1, 4}, {2, 2}, {2, 3}};

/* Beside the small ones: rows that tensor maps can describe, experts with whole tiles and a rest,
 * more choices than one look takes, more experts on a rank than a warp has lanes. */
static const struct moe_problem larger[] = {
    {.tokens = 700, .hidden = 192, .inter = 320, .experts = 12, .top_k = 4, .routing = MOE_UNIFORM},
    {.tokens = 900, .hidden = 64, .inter = 256, .experts = 10, .top_k = 3, .routing = MOE_SKEWED},
    {.tokens = 515, .hidden = 128, .inter = 264, .experts = 16, .top_k = 1, .routing = MOE_HOT},
    {.tokens = 640, .hidden = 256, .inter = 128, .experts = 8, .top_k = 2, .routing = MOE_HALF},
    {.tokens = 384, .hidden = 64, .inter = 64, .experts = 90, .top_k = 9, .routing = MOE_UNIFORM},
};

#define PROBLEMS (MOE_PROBLEMS + COUNT(larger))

/* Keys that a kernel does not have are passed over. */
static const char *const params[] = {
    "comm_sms=16 group=3 lead=2 ahead=2",
    "tile_m=16 tile_n=32 chunk=1KiB gather_rows=8 comm_sms=8 combine_rows=5",
    "tile_m=8 tile_n=16 chunk=64B gather_rows=3 comm_sms=4 depth=3 join=false",
    "comm_sms=16 group=3 gather_rows=50 rows=once",
    "comm_sms=16 group=2 lead=3 ahead=1 rows=expanded",
    "comm_sms=16 group=4 chunk=4KiB rows=in_place",
};

static const struct kernel *const moe_kernels[] = {&moe_dispatch_gemm_kernel, &moe_dispatch_ffn_combine_kernel};

static const char *const runs[] = {"prefetch=4 timeout=2s", "prefetch=1 fifo=1 timeout=2s"};

struct outcome {
    struct run_result result;
    struct problem problem;
};

static struct outcome *run(const struct kernel *k, const struct moe_problem *moe, struct world world, const char *text,
                           enum form form, uint64_t seed, const char *options)
{
    struct outcome *o = calloc(1, sizeof *o);
    struct program program = {0};

    o->problem.moe = *moe;
    harness_emit(k, &o->problem, world, form, text, &program);
    harness_run(&(struct trial){.backend = &cuda_backend,
                                .kernel = k,
                                .program = &program,
                                .problem = o->problem,
                                .timing = {.mode = TIMING_ISOLATED, .warmup = 1, .iterations = 3},
                                .options = options,
                                .seed = seed},
                &o->result);
    program_fini(&program);
    return o;
}

static const struct moe_problem *problem_at(int i)
{
    return i < MOE_PROBLEMS ? &moe_problems[i] : &larger[i - MOE_PROBLEMS];
}

/* Each token goes once to each node that hosts one of its experts, and to no other. */
static uint64_t sparse_bytes(const struct outcome *o, struct world world, uint64_t seed)
{
    uint64_t sum = 0;

    for (uint64_t epoch = 1; epoch <= o->result.epochs; epoch++) {
        struct traffic t;

        moe_traffic(&o->problem, world, seed, epoch, 1, &t);
        sum += t.sparse_bytes;
    }
    return sum;
}

/* No number of choices is a multiple of it, so every pair still meets. */
static int stride(void)
{
    return getenv("MKERNEL_TEST_ALL") ? 1 : 7;
}

START_TEST(routings_are_exact)
{
    int i = _i * stride();
    int p = harness_digit(&i, PROBLEMS), w = harness_digit(&i, COUNT(worlds));
    int text = harness_digit(&i, COUNT(params));
    const struct kernel *k = moe_kernels[harness_digit(&i, COUNT(moe_kernels))];
    enum form form = harness_digit(&i, 2) ? FORM_UNFUSED : FORM_FUSED;
    uint64_t seed = 1 + (uint64_t)_i % 3;
    struct moe_problem moe = *problem_at(p);
    struct outcome *o;

    moe.capacity = 1e3; /* as many as there can be */
    o = run(k, &moe, worlds[w], params[text], form, seed, runs[_i % 2]);
    ck_assert_msg(o->result.status == ST_OK && o->result.elements_wrong == 0 && o->result.elements_checked > 0 &&
                      o->result.rows_dropped == 0,
                  "%s, problem %d, %u x %u, %s, %s: %s\n%s", k->name, p, worlds[w].nodes, worlds[w].gpus_per_node,
                  params[text], form == FORM_FUSED ? "fused" : "unfused", status_text(o->result.status),
                  o->result.report);
    if (k == &moe_dispatch_gemm_kernel)
        ck_assert_uint_eq(o->result.put_bytes, sparse_bytes(o, worlds[w], seed));
    free(o);
}
END_TEST

/* Room for half of the balanced load: what the host's route would drop, for results say which rows
 * are there. */
START_TEST(overflow_drops_what_it_says)
{
    struct moe_problem moe = *problem_at(_i % PROBLEMS);
    struct outcome *o;

    moe.capacity = 0.5;
    moe.overflow = MOE_OVERFLOW_DROP;
    o = run(moe_kernels[_i % 2], &moe, worlds[_i / PROBLEMS], params[1], FORM_FUSED, 5, runs[0]);
    ck_assert_msg(o->result.status == ST_OK, "%s", o->result.report);
    ck_assert_uint_gt(o->result.rows_dropped, 0);
    free(o);
}
END_TEST

START_TEST(overflow_is_an_error_otherwise)
{
    struct moe_problem moe = moe_problems[0];
    struct outcome *o;

    moe.capacity = 0.5;
    o = run(moe_kernels[_i], &moe, (struct world){2, 2}, params[1], FORM_FUSED, 5, runs[0]);
    ck_assert_int_eq(o->result.status, ST_INPUT);
    ck_assert_msg(strstr(o->result.report, "raise the capacity") != NULL, "%s", o->result.report);
    free(o);
}
END_TEST

/* Rows of whole blocks of k, with a rest, and such as no copy of 16 bytes can take. */
START_TEST(rows_by_index_come_out_right)
{
    static const struct {
        uint64_t n, k;
    } shapes[] = {{256, 128}, {200, 200}, {65, 70}};
    struct problem problem = index_story_problem(shapes[_i / 2].n, shapes[_i / 2].k);
    struct run_result *r = calloc(1, sizeof *r);
    struct program program = {0};

    script_init(&program, (struct world){1, 2});
    index_story_build(&program, &problem);
    harness_run(&(struct trial){.backend = &cuda_backend,
                                .kernel = &index_story_kernel,
                                .program = &program,
                                .problem = problem,
                                .timing = {.mode = TIMING_ISOLATED, .warmup = 1, .iterations = 3},
                                .options = runs[_i % 2]},
                r);
    ck_assert_msg(r->status == ST_OK && r->elements_checked > 0 && r->elements_wrong == 0, "%llu x %llu: %s\n%s",
                  (unsigned long long)problem.n, (unsigned long long)problem.k, status_text(r->status), r->report);
    program_fini(&program);
    free(r);
}
END_TEST

TCase *cuda_index_tests(void)
{
    TCase *tc = tcase_create("index");

    tcase_add_loop_test(tc, rows_by_index_come_out_right, 0, 6);
    return tc;
}

TCase *cuda_moe_tests(void)
{
    TCase *tc = tcase_create("moe");
    bool few = getenv("MKERNEL_TEST_FEW") != NULL;

    tcase_add_loop_test(tc, routings_are_exact, 0,
                        (few ? 140 : PROBLEMS * COUNT(worlds) * COUNT(params) * COUNT(moe_kernels) * 2) / stride());
    tcase_add_loop_test(tc, overflow_drops_what_it_says, 0, few ? 3 : PROBLEMS * COUNT(worlds));
    tcase_add_loop_test(tc, overflow_is_an_error_otherwise, 0, COUNT(moe_kernels));
    return tc;
}
