/* Backends x kernels x forms x parameters x worlds x shapes, three epochs back to back, every
 * element exact, or within its bound where the kernel's check has one. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backends.h"
#include "harness.h"
#include "kernels/kernels.h"

#include "../moe_like.h"
#include "../shard.h"
#include "../suite.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* Beside each kernel's defaults.  Every value of every choice stands here. */
static const struct variant {
    const char *kernel, *params;
} variants[] = {
    {"ag_gemm", "chunk=1KiB panels=3 tile_m=16 tile_n=32 inter=direct order=arrival join=false depth=1"},
    {"ag_gemm",
     "chunk=512B panels=2 tile_m=32 tile_n=16 inter=ring order=rank group=2 send_sms=2 depth=3 fan_out=each"},
    {"ag_gemm", "chunk=64B tile_m=8 tile_n=64 inter=ring order=local group=1 depth=2 comm_sms=2"},
    {"gemm_rs", "reduce=switch chunk=2KiB tile_m=16 tile_n=16 order=rotate depth=1 join=false"},
    {"gemm_rs", "reduce=epilogue chunk=512B tile_m=32 tile_n=64 order=rank group=1 depth=1 send_sms=2"},
    {"gemm_rs", "reduce=crew chunk=64B tile_m=8 tile_n=32 order=interleave group=2 depth=3 join=true replicate=true"},
    {"gemm_ar", "reduce=crew chunk=2KiB tile_m=16 tile_n=16 order=rotate inter=ring depth=1 join=false"},
    {"gemm_ar", "reduce=epilogue chunk=512B tile_m=32 tile_n=64 order=rank inter=direct group=1 depth=1"},
    {"gemm_ar", "reduce=switch chunk=64B tile_m=8 tile_n=32 order=interleave inter=ring depth=3 join=true"},
    {"ring_attention", "chunk=2KiB tile_m=16 split=1 layout=zigzag order=head depth=1 join=false"},
    {"ring_attention", "chunk=512B tile_m=32 split=3 layout=run order=owner depth=3 send_sms=2"},
    {"ring_attention", "chunk=64KiB tile_m=8 split=0 layout=zigzag order=owner join=true"},
    {"moe_dispatch_gemm", "chunk=1KiB gather_rows=8 tile_m=16 tile_n=32 group=3 lead=2 join=false "
                          "rows=expanded"},
    {"moe_dispatch_gemm", "chunk=64B gather_rows=7 tile_m=24 tile_n=16 depth=3 send_sms=2 comm_sms=2 rows=in_place"},
    {"moe_dispatch_gemm", "chunk=512B gather_rows=40 tile_m=16 tile_n=64 group=2 lead=3 rows=once"},
    {"moe_dispatch_ffn_combine", "chunk=1KiB gather_rows=8 tile_m=16 tile_n=32 combine_rows=5 ahead=1 join=false "
                                 "rows=expanded"},
    {"moe_dispatch_ffn_combine",
     "chunk=64B gather_rows=7 tile_m=24 tile_n=16 combine_rows=3 ahead=3 depth=3 send_sms=2 comm_sms=2 "
     "rows=in_place"},
    {"moe_dispatch_ffn_combine", "chunk=512B gather_rows=3 tile_m=16 tile_n=64 combine_rows=2 ahead=2 rows=once"},
};

static const struct world worlds[] = {{1, 1}, {1, 8}, {2, 2}, {3, 4}, {2, 3}, {1, 3}, {5, 1}};

static const struct problem shapes[] = {
    {.m = 256, .n = 64, .k = 64}, /* multiples of tiles and ranks */
    {.m = 37, .n = 65, .k = 70},  /* of nothing */
    {.m = 3, .n = 24, .k = 16},   /* fewer rows than ranks: empty shards */
    {.m = 8, .n = 8, .k = 8},     /* one tile */
};

static const struct world attention_worlds[] = {{1, 1}, {1, 4}, {2, 2}, {2, 4}, {3, 2}, {1, 3}, {5, 1}};

static const struct problem attentions[] = {
    {.attention = {.seq = 128, .batch = 1, .heads = 2, .kv_heads = 2, .head_dim = 64}},
    {.attention = {.seq = 101, .batch = 2, .heads = 4, .kv_heads = 2, .head_dim = 64, .causal = true}},
    {.attention = {.seq = 3, .batch = 1, .heads = 3, .kv_heads = 1, .head_dim = 128, .causal = true}},
    {.attention = {.seq = 61, .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 128}},
};
_Static_assert(sizeof attention_worlds == sizeof worlds && COUNT(attentions) == COUNT(shapes),
               "setups count one pair of lists");

/* All worlds with all shapes, and one of 64 ranks, which takes long. */
#define SETUP_COUNT (COUNT(worlds) * COUNT(shapes) + 1)

struct setup {
    struct world world;
    struct problem problem;
};

static struct setup setup_of(int i, const struct kernel *k)
{
    bool gemm = k->family != &problem_attention;
    const struct problem *problems = gemm ? shapes : attentions;

    if (i == SETUP_COUNT - 1)
        return (struct setup){{8, 8}, problems[1]};
    return (struct setup){(gemm ? worlds : attention_worlds)[i / COUNT(shapes)], problems[i % COUNT(shapes)]};
}

static int kernel_count(void)
{
    int count = 0;

    while (kernels[count])
        count++;
    return count;
}

/* The defaults of every kernel that is listed, then the table. */
static struct variant variant_at(int i)
{
    return i < kernel_count() ? (struct variant){kernels[i]->name, ""} : variants[i - kernel_count()];
}

static int variant_count(void)
{
    return kernel_count() + COUNT(variants);
}

static const struct kernel *kernel_named(const char *name)
{
    for (int i = 0; kernels[i]; i++)
        if (strcmp(kernels[i]->name, name) == 0)
            return kernels[i];
    ck_abort_msg("no kernel %s", name);
    return NULL;
}

static int backend_count(void)
{
    int count = 0;

    while (backends[count])
        count++;
    return count;
}

static void run_exactly(const struct backend *b, const struct variant *v, enum form form, struct world world,
                        struct problem shape)
{
    struct problem problem = is_moe(kernel_named(v->kernel)) ? moe_like(shape) : shape;
    const struct kernel *kernel = kernel_named(v->kernel);
    struct run_result *r = calloc(1, sizeof *r);
    struct program program = {0};
    char text[PROBLEM_TEXT_BYTES];

    if (!harness_can_run(b)) {
        free(r);
        return;
    }
    harness_emit(kernel, &problem, world, form, v->params, &program);
    harness_run(&(struct trial){.backend = b,
                                .kernel = kernel,
                                .program = &program,
                                .problem = problem,
                                .timing = {.mode = TIMING_PIPELINED, .warmup = 1, .iterations = 2},
                                .options = "fifo=3 jitter=0.3"},
                r);
    ck_assert_msg(r->status == ST_OK && r->elements_wrong == 0 && r->elements_checked > 0,
                  "%s: %s (%s) %s, %u x %u ranks, %s: %s, %llu elements checked\n%s", b->name, v->kernel, v->params,
                  form == FORM_FUSED ? "fused" : "unfused", world.nodes, world.gpus_per_node,
                  problem_text(kernel->family, &problem, text), status_text(r->status),
                  (unsigned long long)r->elements_checked, r->report);
    program_fini(&program);
    free(r);
}

START_TEST(kernel_is_exact)
{
    int i = _i * harness_stride();
    int number = harness_digit(&i, SETUP_COUNT);
    enum form form = harness_digit(&i, 2) ? FORM_UNFUSED : FORM_FUSED;
    struct variant variant = variant_at(harness_digit(&i, variant_count()));
    struct setup setup = setup_of(number, kernel_named(variant.kernel));

    run_exactly(backends[i], &variant, form, setup.world, setup.problem);
}
END_TEST

/* Tiles of the default size, several in every direction. */
START_TEST(large_kernel_is_exact)
{
    static const struct problem gemm = {.m = 600, .n = 520, .k = 100};
    static const struct problem attention = {
        .attention = {.seq = 600, .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 128, .causal = true}};
    const struct kernel *k = kernels[_i / backend_count()];

    run_exactly(backends[_i % backend_count()], &(struct variant){k->name, ""}, FORM_FUSED, (struct world){2, 4},
                k->family == &problem_attention ? attention : gemm);
}
END_TEST

/* Does a variant of this kernel set the option to this value, or is it the default? */
static bool is_tried(const struct kernel *k, const struct option *o, const char *value)
{
    char pair[128];

    if (strcmp(o->initial, value) == 0)
        return true;
    snprintf(pair, sizeof pair, " %s=%s ", o->name, value);
    for (int i = 0; i < COUNT(variants); i++) {
        char text[256];

        if (strcmp(variants[i].kernel, k->name) != 0)
            continue;
        snprintf(text, sizeof text, " %s ", variants[i].params);
        if (strstr(text, pair))
            return true;
    }
    return false;
}

START_TEST(every_choice_is_tried)
{
    for (const struct option *o = kernels[_i]->options; o->name; o++) {
        char choices[128], *rest = choices;
        const char *text = o->type == OPTION_CHOICE ? o->choices : "true|false";

        if (o->type != OPTION_CHOICE && o->type != OPTION_BOOL)
            continue;
        snprintf(choices, sizeof choices, "%s", text);
        for (char *value; (value = strsep(&rest, "|"));)
            ck_assert_msg(is_tried(kernels[_i], o, value), "%s: no variant with %s=%s", kernels[_i]->name, o->name,
                          value);
    }
}
END_TEST

int main(void)
{
    int combinations = backend_count() * variant_count() * 2 * SETUP_COUNT;
    Suite *suite = suite_create("kernels");
    TCase *table = tcase_create("table");
    TCase *small = tcase_create("small"), *large = tcase_create("large");

    tcase_set_timeout(small, 120);
    tcase_set_timeout(large, 300);
    shard_add_loop_test(small, kernel_is_exact, combinations / harness_stride());
    shard_add_loop_test(large, large_kernel_is_exact, backend_count() * kernel_count());
    tcase_add_loop_test(table, every_choice_is_tried, 0, kernel_count());
    suite_add_tcase(suite, table);
    suite_add_tcase(suite, small);
    suite_add_tcase(suite, large);
    return suite_run(suite);
}
