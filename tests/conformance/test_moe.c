/* Dynamic work: routings of every kind, several seeds and epochs, on every backend; what does not fit; and how
 * many bytes cross between nodes. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backends.h"
#include "core/check.h"
#include "core/route.h"
#include "harness.h"
#include "kernels/kernels.h"
#include "kernels/moe_routing.h"

#include "../moe_like.h"
#include "../shard.h"
#include "../suite.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const struct world worlds[] = {{1, 1}, {1, 4}, {2, 2}, {2, 4}, {3, 2}};

static const struct kernel *const layers[] = {&moe_dispatch_gemm_kernel, &moe_dispatch_ffn_combine_kernel};

/* Those of them that a kernel has. */
static const char *const params[] = {
    "tile_m=16 tile_n=32 chunk=1KiB gather_rows=8 comm_sms=8 combine_rows=4",
    "tile_m=8 tile_n=16 chunk=64B gather_rows=3 comm_sms=4 depth=3 combine_rows=3 ahead=2 join=false rows=once",
    "tile_m=16 tile_n=16 chunk=256B gather_rows=5 comm_sms=4 combine_rows=3 ahead=3 rows=in_place",
};

static const uint64_t seeds[] = {1, 2, 3};

struct outcome {
    struct run_result result;
    struct problem problem;
};

static struct outcome *run(const struct kernel *k, const struct backend *b, const struct moe_problem *moe,
                           struct world world, const char *text, enum form form, uint64_t seed, const char *options)
{
    struct outcome *o = calloc(1, sizeof *o);
    struct program program = {0};

    o->problem.moe = *moe;
    harness_emit(k, &o->problem, world, form, text, &program);
    harness_run(&(struct trial){.backend = b,
                                .kernel = k,
                                .program = &program,
                                .problem = o->problem,
                                .timing = {.mode = TIMING_PIPELINED, .warmup = 1, .iterations = 3},
                                .options = options,
                                .seed = seed},
                &o->result);
    program_fini(&program);
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
    int seed = harness_digit(&i, COUNT(seeds)), w = harness_digit(&i, COUNT(worlds)),
        p = harness_digit(&i, MOE_PROBLEMS);
    const struct kernel *k = layers[harness_digit(&i, COUNT(layers))];
    int text = (seed + w + p) % COUNT(params); /* all of them, and both forms, over seeds and backends */
    enum form form = (seed / 2 + w + i) % 2 ? FORM_UNFUSED : FORM_FUSED;
    struct moe_problem moe = moe_problems[p];
    struct outcome *o;

    if (!harness_can_run(backends[i]))
        return;
    moe.capacity = 1e3; /* as many as there can be */
    o = run(k, backends[i], &moe, worlds[w], params[text], form, seeds[seed], "fifo=3 jitter=0.3");
    ck_assert_msg(o->result.status == ST_OK && o->result.elements_wrong == 0 && o->result.elements_checked > 0 &&
                      o->result.rows_dropped == 0,
                  "%s, %s, problem %d, %u x %u, seed %d: %s\n%s", backends[i]->name, k->name, p, worlds[w].nodes,
                  worlds[w].gpus_per_node, seed, status_text(o->result.status), o->result.report);
    free(o);
}
END_TEST

/* Room for half of the balanced load: every backend must drop the same pairs. */
START_TEST(overflow_drops_what_it_says)
{
    int i = _i, p = harness_digit(&i, MOE_PROBLEMS), w = harness_digit(&i, COUNT(worlds));
    struct moe_problem moe = moe_problems[p];
    uint64_t dropped = UINT64_MAX;

    moe.capacity = 0.5;
    moe.overflow = MOE_OVERFLOW_DROP;
    for (int b = 0; backends[b]; b++) {
        struct outcome *o;

        if (!harness_can_run(backends[b]))
            continue;
        o = run(layers[i], backends[b], &moe, worlds[w], params[0], FORM_FUSED, 5, "");

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
    o = run(layers[0], backends[_i], &moe, (struct world){2, 2}, params[0], FORM_FUSED, 5, "");
    ck_assert_int_eq(o->result.status, ST_INPUT);
    ck_assert_msg(strstr(o->result.report, "raise the capacity") != NULL, "%s", o->result.report);
    free(o);
}
END_TEST

/* Each token once to each node that hosts one of its experts, and never to another; back, as many sums. */
START_TEST(traffic_between_nodes_is_sparse)
{
    static const uint32_t nodes[] = {2, 4, 8};
    int i = _i, n = harness_digit(&i, COUNT(nodes)), routing = harness_digit(&i, 4);
    struct world world = {nodes[n], 2};
    struct moe_problem moe = {.tokens = 400,
                              .hidden = 32,
                              .inter = 16,
                              .experts = 64,
                              .top_k = 4,
                              .routing = (uint32_t)routing,
                              .capacity = 1e3};
    uint64_t sparse = 0, dense = 0;
    struct outcome *o;

    if (!harness_can_run(backend_named("sim")))
        return;
    o = run(layers[i], backend_named("sim"), &moe, world, params[0], FORM_FUSED, 9, "");
    ck_assert_msg(o->result.status == ST_OK, "%s", o->result.report);
    for (uint64_t epoch = 1; epoch <= o->result.epochs; epoch++) {
        struct traffic t;

        layers[i]->traffic(&o->problem, world, 9, epoch, 1, &t);
        sparse += t.sparse_bytes;
        dense += t.dense_bytes;
    }
    ck_assert_uint_eq(o->result.put_bytes, sparse);
    ck_assert(nodes[n] == 2 || sparse < dense);
    free(o);
}
END_TEST

/* How many of the token's choices are experts of that rank. */
static uint64_t pairs_of(const struct moe_problem *moe, struct world world, uint64_t epoch, uint64_t token,
                         uint32_t rank)
{
    int32_t choices[MOE_TOP_K_MAX];
    uint64_t count = 0;

    moe_choices(moe, 9, epoch, token, choices);
    for (uint64_t j = 0; j < moe->top_k; j++)
        count += part_of(moe->experts, world_ranks(world), (uint64_t)choices[j]) == rank;
    return count;
}

/* Rows that come from peers over all epochs: each token to a rank that wants it, once or once a pair; it stands on the
 * GPU of its own rail. */
static uint64_t rows_of_peers(const struct moe_problem *moe, struct world world, uint64_t epochs, bool once)
{
    uint32_t ranks = world_ranks(world);
    uint64_t rows = 0;

    for (uint64_t epoch = 1; epoch <= epochs; epoch++)
        for (uint64_t token = 0; token < moe->tokens; token++)
            for (uint32_t rank = 0; rank < ranks; rank++) {
                uint64_t pairs = pairs_of(moe, world, epoch, token, rank);

                if (world_gpu(world, part_of(moe->tokens, ranks, token)) != world_gpu(world, rank))
                    rows += once ? pairs > 0 : pairs;
            }
    return rows;
}

static uint64_t nvlink_bytes(const struct moe_problem *moe, uint64_t hidden, struct world world, const char *text,
                             uint64_t *epochs_out)
{
    struct moe_problem wide = *moe;
    uint64_t bytes = UINT64_MAX;
    struct outcome *o;

    wide.hidden = hidden;
    o = run(layers[0], backend_named("sim"), &wide, world, text, FORM_FUSED, 9, "engine=alone"); /* several runs */
    ck_assert_msg(o->result.status == ST_OK, "%s", o->result.report);
    for (uint32_t i = 0; i < o->result.link_count; i++)
        if (strcmp(o->result.links[i].name, "nvlink in") == 0)
            bytes = o->result.links[i].bytes;
    *epochs_out = o->result.epochs;
    free(o);
    return bytes;
}

/* What is control does not grow with a token's width.  _i: routing, and one node or two. */
START_TEST(traffic_inside_a_node_is_each_token_once)
{
    static const struct {
        const char *text;
        bool once;
        uint64_t times;
    } sources[] = {
        {"tile_m=16 tile_n=32 gather_rows=8 comm_sms=8 chunk=1KiB rows=once", true, 1},
        {"tile_m=16 tile_n=32 gather_rows=8 comm_sms=8 chunk=1KiB rows=expanded", false, 1},
        {"tile_m=16 tile_n=32 gather_rows=8 comm_sms=8 chunk=1KiB rows=in_place", false, 2}, /* columns of tiles */
    };
    int i = _i, routing = harness_digit(&i, 4);
    struct world world = {(uint32_t)i + 1, 4};
    struct moe_problem moe = {
        .tokens = 200, .inter = 40, .experts = 32, .top_k = 4, .routing = (uint32_t)routing, .capacity = 1e3};

    if (!harness_can_run(backend_named("sim")))
        return;
    for (int k = 0; k < COUNT(sources); k++) {
        uint64_t epochs, narrow = nvlink_bytes(&moe, 16, world, sources[k].text, &epochs);
        uint64_t wide = nvlink_bytes(&moe, 48, world, sources[k].text, &epochs);
        uint64_t rows = rows_of_peers(&moe, world, epochs, sources[k].once) * sources[k].times;

        ck_assert_uint_eq(wide - narrow, rows * (48 - 16) * 2);
    }
}
END_TEST

/* ---- what docs/ffn-bound.md says that the check catches ---- */

enum fault {
    FAULT_NONE,
    FAULT_MISSING,    /* one choice of each token is left out */
    FAULT_WEIGHT,     /* each token is summed with the weights of the one before */
    FAULT_UNIT,       /* all weights are 1 */
    FAULT_ZERO,       /* the result is all zero */
    FAULT_STALE,      /* tokens are those of the epoch before */
    FAULT_STALE_DOWN, /* one matrix of all experts is */
    FAULT_PLACE,      /* neighbours sum the rows that the other should */
    FAULT_SOURCE,     /* the first GEMM reads its weights one row off */
    FAULT_COUNT,
};

static struct program sound;
static enum fault fault;

static void swap_places(uint32_t rank, uint32_t queue, uint64_t index, struct task *t)
{
    struct task other;

    if ((index ^ 1) >= program_queue_length(&sound, rank, queue))
        return;
    program_task(&sound, rank, queue, index ^ 1, &other);
    if (other.op == t->op && other.m == t->m)
        t->index = other.index;
}

static void faulty_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *t)
{
    struct combine *c = &t->combine;

    (void)p;
    sound.ops->task(&sound, rank, queue, index, t);
    if (fault == FAULT_PLACE && t->op == OP_COMBINE_ROWS && c->weighted)
        swap_places(rank, queue, index, t);
    if (fault == FAULT_SOURCE && t->op == OP_GEMM && t->epilogue == EPILOGUE_SWIGLU)
        t->b.offset = t->b.offset > 0 ? t->b.offset - t->b.ld : t->b.ld;
    if (t->op != OP_COMBINE_ROWS || !c->weighted)
        return;
    if (fault == FAULT_MISSING)
        c->terms--;
    if (fault == FAULT_WEIGHT && c->weight.offset > 0)
        c->weight.offset -= c->weight.ld;
    if (fault == FAULT_UNIT)
        c->weighted = false;
    if (fault == FAULT_ZERO)
        c->terms = 0;
}

static void faulty_input(const struct problem *global, uint64_t seed, uint64_t epoch, uint32_t tensor, uint64_t row,
                         uint64_t col, uint64_t count, float *out)
{
    bool stale = (fault == FAULT_STALE && tensor == TENSOR_A) || (fault == FAULT_STALE_DOWN && tensor == TENSOR_DOWN);

    moe_dispatch_ffn_combine_kernel.bounded->input(global, seed, epoch - stale, tensor, row, col, count, out);
}

static uint64_t sound_queue_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    (void)p;
    return program_queue_length(&sound, rank, queue);
}

static uint64_t sound_flag_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    (void)p;
    return program_flag_total(&sound, rank, flag);
}

static uint32_t sound_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    (void)p;
    return program_io(&sound, rank, out);
}

static const struct program_ops faulty_ops = {
    .queue_length = sound_queue_length,
    .task = faulty_task,
    .flag_total = sound_flag_total,
    .io = sound_io,
};

START_TEST(faults_leave_the_bound)
{
    struct kernel k = moe_dispatch_ffn_combine_kernel;
    struct bounded_check bounded = *k.bounded;
    struct problem problem = {
        .moe = {.tokens = 96, .hidden = 64, .inter = 48, .experts = 24, .top_k = 4, .capacity = 1e3}};
    struct world world = _i % 2 ? (struct world){1, 4} : (struct world){2, 2};
    struct run_result *r;
    struct program faulty;

    if (!harness_can_run(backend_named("sim")))
        return;
    r = calloc(1, sizeof *r);
    fault = (enum fault)(_i / 2);
    bounded.input = faulty_input;
    k.bounded = &bounded;
    harness_emit(&k, &problem, world, FORM_FUSED, params[0], &sound);
    faulty = sound;
    faulty.ops = &faulty_ops;
    harness_run(&(struct trial){.backend = backend_named("sim"),
                                .kernel = &k,
                                .program = &faulty,
                                .problem = problem,
                                .options = "",
                                .timing = {.mode = TIMING_PIPELINED, .warmup = 1, .iterations = 1}},
                r);
    ck_assert_uint_gt(r->elements_checked, 0);
    ck_assert_msg(r->status == (fault == FAULT_NONE ? ST_OK : ST_WRONG), "fault %d: %s", fault, r->report);
    if (fault != FAULT_NONE) /* by far, not by chance */
        ck_assert_msg(r->elements_wrong * 4 >= r->elements_checked, "fault %d: only %lu of %lu elements", fault,
                      (unsigned long)r->elements_wrong, (unsigned long)r->elements_checked);
    program_fini(&sound);
    free(r);
}
END_TEST

/* What tables say on their own, counted in the most obvious way. */
START_TEST(choices_differ_and_change)
{
    struct moe_problem moe = moe_problems[_i];
    int32_t a[MOE_TOP_K_MAX], b[MOE_TOP_K_MAX];
    bool changes = false;

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
    int routings = backend_count() * COUNT(seeds) * COUNT(worlds) * MOE_PROBLEMS * COUNT(layers);

    tcase_set_timeout(tc, 120);
    shard_add_loop_test(tc, routings_are_exact, routings / harness_stride());
    shard_add_loop_test(tc, overflow_drops_what_it_says, COUNT(worlds) * MOE_PROBLEMS * COUNT(layers));
    shard_add_loop_test(tc, overflow_is_an_error_otherwise, backend_count());
    shard_add_loop_test(tc, traffic_between_nodes_is_sparse, 12 * COUNT(layers));
    shard_add_loop_test(tc, traffic_inside_a_node_is_each_token_once, 8);
    shard_add_loop_test(tc, faults_leave_the_bound, 2 * FAULT_COUNT);
    shard_add_loop_test(tc, choices_differ_and_change, MOE_PROBLEMS);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
