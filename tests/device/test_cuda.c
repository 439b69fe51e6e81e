/* The cuda backend on a GPU: inputs as the host would write them, stories, every kernel and form
 * over worlds that share the device, odd shapes, prefetch of one and of four tasks, a FIFO of one
 * command, and the same as if there were several devices. */
#include <check.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../moe_like.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/gpu.h"
#include "core/check.h"
#include "cuda_attention.h"
#include "cuda_baseline.h"
#include "cuda_mixed.h"
#include "cuda_moe.h"
#include "cuda_trace.h"
#include "harness.h"
#include "kernels/kernels.h"
#include "kernels/reference.h"
#include "script.h"
#include "stories.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

#define SKIPPED 77

/* ---- inputs ---- */

enum { INPUT_ROWS = 5, INPUT_COLS = 77 };

static void compare_row(const struct gpu_input *in, uint64_t row, const float *got)
{
    int8_t want[INPUT_COLS];

    tensor_row(in->seed, in->epoch, in->tensor, in->depth, in->tensor_row + row, in->tensor_col, INPUT_COLS, want);
    for (int j = 0; j < INPUT_COLS; j++)
        ck_assert_float_eq(got[j], want[j]);
}

START_TEST(inputs_are_those_of_the_host)
{
    static const uint64_t depths[] = {1, 64, 65, 1000, 8192, 1 << 20};
    struct gpu_input in = {.ld = INPUT_COLS,
                           .rows = INPUT_ROWS,
                           .cols = INPUT_COLS,
                           .seed = 3,
                           .epoch = 9,
                           .depth = depths[_i],
                           .tensor_row = 1000,
                           .tensor_col = 13,
                           .tensor = TENSOR_B,
                           .is_f32 = 1};
    float got[INPUT_ROWS][INPUT_COLS];
    void *memory;

    ck_assert_int_eq(cudaMalloc(&memory, sizeof got), cudaSuccess);
    in.address = (uintptr_t)memory;
    ck_assert_int_eq(gpu_write_input(&in, NULL), cudaSuccess);
    ck_assert_int_eq(cudaMemcpy(got, memory, sizeof got, cudaMemcpyDeviceToHost), cudaSuccess);
    for (uint64_t i = 0; i < INPUT_ROWS; i++)
        compare_row(&in, i, got[i]);
    cudaFree(memory);
}
END_TEST

/* ---- stories ---- */

static const struct setting {
    struct timing timing;
    const char *options;
} settings[] = {
    {{.mode = TIMING_ISOLATED, .warmup = 1, .iterations = 4}, "timeout=2s"},
    {{.mode = TIMING_ISOLATED, .warmup = 0, .iterations = 5}, "fifo=1 prefetch=1 timeout=2s"},
    {{.mode = TIMING_ISOLATED, .warmup = 1, .iterations = 4}, "shares=3 timeout=2s"},
};

static struct problem same_problem(const struct problem *problem, struct world world)
{
    (void)world;
    return *problem;
}

static void run_story(const struct story *s, const struct setting *setting, const char *options, struct run_result *r)
{
    struct kernel kernel = {.name = s->name, .global = same_problem, .reference = s->reference};
    struct program program = {0};

    script_init(&program, s->world);
    s->build(&program);
    harness_run(&(struct trial){.backend = &cuda_backend,
                                .kernel = &kernel,
                                .program = &program,
                                .problem = s->problem,
                                .timing = setting->timing,
                                .options = options},
                r);
    program_fini(&program);
}

START_TEST(story_comes_out_right)
{
    const struct story *s = &stories[_i % story_count];
    const struct setting *setting = &settings[_i / story_count];
    struct run_result *r = calloc(1, sizeof *r);

    run_story(s, setting, setting->options, r);
    ck_assert_msg(r->status == ST_OK, "%s (%s): %s\n%s", s->name, setting->options, status_text(r->status), r->report);
    ck_assert_uint_gt(r->elements_checked, 0);
    ck_assert_uint_eq(r->elements_wrong, 0);
    free(r);
}
END_TEST

START_TEST(story_fails_as_it_must)
{
    const struct story *s = &failing_stories[_i % failing_story_count];
    struct run_result *r = calloc(1, sizeof *r);

    run_story(s, &settings[0], _i < failing_story_count ? "timeout=1s" : "shares=2 timeout=1s", r);
    if (getenv("MKERNEL_TEST_SHOW"))
        fprintf(stderr, "%s: %s\n%s\n", s->name, status_text(r->status), r->report);
    ck_assert_msg(r->status == s->status, "%s: %s\n%s", s->name, status_text(r->status), r->report);
    ck_assert_msg(strstr(r->report, s->mentions), "%s: no \"%s\" in\n%s", s->name, s->mentions, r->report);
    free(r);
}
END_TEST

/* ---- f32 results ---- */

/* A tile cut off on both sides, bf16 in, f32 out. */
static void build_f32(struct program *p)
{
    uint32_t a = script_buffer(p, "a", 100, 128, 1), b = script_buffer(p, "b", 200, 128, 1);
    uint32_t c = script_buffer(p, "c", 100, 200, 1), queue = script_queue_and_crew(p, "main");
    struct task *t = script_task(p, 0, queue, OP_GEMM, 100, 200);

    p->buffers[c].dtype = DTYPE_F32;
    script_input(p, 0, a, TENSOR_A, 0, 0);
    script_input(p, 0, b, TENSOR_B, 0, 0);
    script_output(p, 0, c, 0, 0);
    t->k = 128;
    t->segment_table = NO_TABLE;
    t->a = script_rows(p, 0, a, 0);
    t->b = script_rows(p, 0, b, 0);
    task_store_to(t, script_rows(p, 0, c, 0));
}

START_TEST(f32_results_come_out_right)
{
    static const struct story s = {"f32",          {1, 1}, build_f32, {.m = 100, .n = 200, .k = 128},
                                   reference_gemm, NULL,   ST_OK};
    struct run_result *r = calloc(1, sizeof *r);

    run_story(&s, &settings[0], "", r);
    ck_assert_msg(r->status == ST_OK && r->elements_checked > 0, "%s", r->report);
    free(r);
}
END_TEST

/* ---- kernels ---- */

static const struct variant {
    const char *kernel, *params;
} variants[] = {
    {"ag_gemm", "comm_sms=16"},
    {"ag_gemm", "comm_sms=16 chunk=1KiB panels=3 tile_m=16 tile_n=32 inter=direct order=arrival "
                "join=false depth=1"},
    {"ag_gemm", "comm_sms=16 chunk=512B panels=2 tile_m=32 tile_n=16 inter=ring order=rank group=2 depth=3"},
    {"gemm_rs", ""},
    {"gemm_rs", "reduce=crew chunk=2KiB tile_m=16 tile_n=16 order=rotate depth=1 join=false"},
    {"gemm_rs", "reduce=epilogue chunk=512B tile_m=32 tile_n=64 order=rank group=1 depth=1"},
    {"gemm_ar", ""},
    {"gemm_ar", "reduce=crew chunk=2KiB tile_m=16 tile_n=16 order=rotate inter=ring depth=1 join=false"},
    {"gemm_ar", "reduce=epilogue chunk=512B tile_m=32 tile_n=64 order=rank inter=direct group=1 depth=1"},
    {"gemm_ar", "reduce=switch chunk=2KiB tile_m=32 tile_n=16 order=rotate depth=2 join=false"},
    {"ring_attention", "comm_sms=16"},
    {"ring_attention", "comm_sms=16 chunk=2KiB tile_m=16 split=1 layout=zigzag order=head depth=1 join=false"},
    {"ring_attention", "comm_sms=8 chunk=64KiB split=3 layout=run order=owner depth=3"},
    {"ring_attention", "comm_sms=16 split=2 layout=zigzag order=head"},
    {"moe_dispatch_gemm", "comm_sms=16"},
    {"moe_dispatch_gemm", "comm_sms=16 chunk=1KiB gather_rows=8 tile_m=16 tile_n=32 join=false"},
    {"moe_dispatch_gemm", "chunk=64B gather_rows=7 tile_m=24 tile_n=16 depth=3 send_sms=2 comm_sms=2"},
    {"moe_dispatch_gemm", "comm_sms=16 chunk=1KiB gather_rows=5 rows=once"},
    {"moe_dispatch_gemm", "comm_sms=16 chunk=2KiB rows=in_place"},
    {"moe_dispatch_ffn_combine", "comm_sms=16"},
    {"moe_dispatch_ffn_combine", "comm_sms=16 chunk=2KiB tile_m=32 rows=expanded"},
    {"moe_dispatch_ffn_combine", "comm_sms=16 chunk=1KiB rows=in_place"},
    {"moe_dispatch_ffn_combine",
     "comm_sms=16 chunk=1KiB gather_rows=8 tile_m=16 tile_n=32 combine_rows=5 ahead=1 join=false"},
    {"moe_dispatch_ffn_combine",
     "chunk=64B gather_rows=7 tile_m=24 tile_n=48 depth=3 send_sms=2 comm_sms=2 combine_rows=3"},
};

static const struct world worlds[] = {{1, 1}, {1, 2}, {1, 4}, {2, 2}, {2, 3}, {4, 1}};

static const struct problem shapes[] = {
    {.m = 512, .n = 512, .k = 256},                              /* whole tiles */
    {.m = 600, .n = 520, .k = 304},                              /* tiles cut off, rows still in steps of 16 bytes */
    {.m = 256, .n = 64, .k = 64},   {.m = 37, .n = 65, .k = 70}, /* multiples of nothing */
    {.m = 3, .n = 24, .k = 16},                                  /* fewer rows than ranks: empty shards */
};

static const struct problem attentions[] = {
    {.attention = {.seq = 512, .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 128}},
    {.attention = {.seq = 600, .batch = 1, .heads = 2, .kv_heads = 2, .head_dim = 64, .causal = true}},
    {.attention = {.seq = 300, .batch = 2, .heads = 2, .kv_heads = 1, .head_dim = 128, .causal = true}},
    {.attention = {.seq = 301, .batch = 1, .heads = 3, .kv_heads = 1, .head_dim = 64}},
    {.attention = {.seq = 3, .batch = 1, .heads = 3, .kv_heads = 1, .head_dim = 128, .causal = true}},
};
_Static_assert(COUNT(attentions) == COUNT(shapes), "problems are counted once");

static const char *const runs[] = {"prefetch=4 timeout=2s", "prefetch=1 fifo=1 timeout=2s", "shares=2 timeout=2s"};

static const struct kernel *kernel_named(const char *name)
{
    for (int i = 0; kernels[i]; i++)
        if (strcmp(kernels[i]->name, name) == 0)
            return kernels[i];
    ck_abort_msg("no kernel %s", name);
    return NULL;
}

static struct problem problem_of(const struct kernel *k, int i)
{
    if (k->family == &problem_attention)
        return attentions[i];
    return is_moe(k) ? moe_like(shapes[i]) : shapes[i];
}

static void run_exactly(const struct variant *v, enum form form, struct world world, struct problem problem,
                        const char *options)
{
    const struct kernel *kernel = kernel_named(v->kernel);
    struct run_result *r = calloc(1, sizeof *r);
    void *params = calloc(1, kernel->params_size);
    struct complaint complaint = {.text = ""};
    struct program program = {0};
    char text[PROBLEM_TEXT_BYTES];

    harness_options(kernel->options, params, v->params);
    ck_assert_msg(kernel->emit(&problem, world, harness_machine(), form, params, &program, &complaint) == ST_OK,
                  "%s (%s): %s", v->kernel, v->params, complaint.text);
    harness_run(&(struct trial){.backend = &cuda_backend,
                                .kernel = kernel,
                                .program = &program,
                                .problem = problem,
                                .timing = {.mode = TIMING_ISOLATED, .warmup = 1, .iterations = 2},
                                .options = options},
                r);
    ck_assert_msg(r->status == ST_OK && r->elements_wrong == 0 && r->elements_checked > 0,
                  "%s (%s) %s, %u x %u ranks, %s, %s: %s, %llu elements checked\n%s", v->kernel, v->params,
                  form == FORM_FUSED ? "fused" : "unfused", world.nodes, world.gpus_per_node,
                  problem_text(kernel->family, &problem, text), options, status_text(r->status),
                  (unsigned long long)r->elements_checked, r->report);
    program_fini(&program);
    free(params);
    free(r);
}

/* Of all combinations every seventh: no number of choices is a multiple of it, so every pair still
 * meets. */
#define STRIDE 7
_Static_assert(COUNT(variants) % STRIDE && COUNT(worlds) % STRIDE && COUNT(shapes) % STRIDE, "pairs meet");

static int stride(void)
{
    return getenv("MKERNEL_TEST_ALL") ? 1 : STRIDE;
}

START_TEST(kernel_is_exact)
{
    int i = _i * stride();
    struct world world = worlds[harness_digit(&i, COUNT(worlds))];
    int shape = harness_digit(&i, COUNT(shapes));
    enum form form = harness_digit(&i, 2) ? FORM_UNFUSED : FORM_FUSED;
    const char *options = runs[harness_digit(&i, COUNT(runs))], *only = getenv("MKERNEL_TEST_KERNEL");

    if (only && strcmp(only, variants[i].kernel) != 0)
        return;
    if (getenv("MKERNEL_TEST_SHOW"))
        fprintf(stderr, "%ld %s %s, %u x %u, problem %d, %s\n", (long)clock() * 1000 / CLOCKS_PER_SEC,
                variants[i].kernel, form == FORM_FUSED ? "fused" : "unfused", world.nodes, world.gpus_per_node, shape,
                options);
    run_exactly(&variants[i], form, world, problem_of(kernel_named(variants[i].kernel), shape), options);
}
END_TEST

/* Under a slow checker a few have to do. */
static int kernel_tests(void)
{
    int all = COUNT(worlds) * COUNT(shapes) * 2 * COUNT(runs) * COUNT(variants);

    return getenv("MKERNEL_TEST_FEW") ? 30 : all / stride();
}

static bool device_is_here(void)
{
    char why[256];

    if (cuda_backend.available(why, sizeof why) == ST_OK)
        return true;
    fprintf(stderr, "test_cuda: skipped: %s\n", why);
    return false;
}

int main(void)
{
    Suite *suite = suite_create("cuda");
    TCase *inputs = tcase_create("inputs"), *right = tcase_create("right"), *exact = tcase_create("exact"),
          *failing = tcase_create("failing");
    SRunner *runner = srunner_create(suite);
    int failed;

    if (!device_is_here()) {
        srunner_free(runner);
        return SKIPPED;
    }
    tcase_add_loop_test(inputs, inputs_are_those_of_the_host, 0, 6);
    tcase_add_loop_test(right, story_comes_out_right, 0, COUNT(settings) * story_count);
    tcase_add_test(right, f32_results_come_out_right);
    tcase_add_loop_test(exact, kernel_is_exact, 0, kernel_tests());
    tcase_add_loop_test(failing, story_fails_as_it_must, 0, 2 * failing_story_count);
    suite_add_tcase(suite, inputs);
    suite_add_tcase(suite, right);
    suite_add_tcase(suite, exact);
    suite_add_tcase(suite, cuda_attention_tests());
    suite_add_tcase(suite, cuda_index_tests());
    suite_add_tcase(suite, cuda_moe_tests());
    suite_add_tcase(suite, cuda_mixed_tests());
    suite_add_tcase(suite, cuda_trace_tests());
    suite_add_tcase(suite, cuda_baseline_tests(1, NULL));
    suite_add_tcase(suite, failing);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
