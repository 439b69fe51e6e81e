/* Attention: what a host backend computes lies within the derived bound, and what can go wrong with keys and
 * values on their way does not (docs/attention-bound.md). */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "backends/ops/tile_ops.h"
#include "core/attention.h"
#include "core/check.h"
#include "kernels/kernels.h"

#include "../suite.h"

static const struct machine test_machine = {.gpu = {.model = "test", .sms = 32}};

enum fault {
    FAULT_NONE,
    FAULT_MISSING, /* one stripe is skipped */
    FAULT_TWICE,   /* one is used twice */
    FAULT_STALE,   /* one is of the epoch before */
    FAULT_ZERO,    /* the result is all zero */
    FAULT_COUNT,
};

static const char *const fault_names[] = {"none", "missing", "twice", "stale", "zero"};

static const struct setting {
    struct world world;
    struct problem problem;
    const char *layout, *split;
} settings[] = {
    {{2, 8}, {.attention = {.seq = 512, .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 64}}, "run", "0"},
    {{2, 8}, {.attention = {.seq = 512, .batch = 1, .heads = 2, .kv_heads = 2, .head_dim = 128}}, "zigzag", "1"},
    {{1, 4},
     {.attention = {.seq = 200, .batch = 2, .heads = 4, .kv_heads = 2, .head_dim = 64, .causal = true}},
     "run",
     "3"},
    {{1, 2},
     {.attention = {.seq = 333, .batch = 1, .heads = 1, .kv_heads = 1, .head_dim = 128, .causal = true}},
     "run",
     "0"},
};

#define SETTINGS ((int)(sizeof settings / sizeof *settings))
#define EPOCH 2
#define FAULTY_STEP 1 /* of a tile's walk */

struct stage {
    struct job job;
    struct problem problem;
    struct program program;
    uint8_t *window, *others; /* of the rank in hand; where others' inputs are made */
    uint32_t rank;
};

static void set(const struct option *table, void *params, const char *name, const char *value)
{
    char why[200];

    ck_assert_int_eq(option_parse(option_find(table, name), params, value, NULL, why, sizeof why), ST_OK);
}

/* Keys and values of all ranks as they stand in epoch `epoch`, into the window of the rank in hand. */
static void gather(struct stage *s, uint64_t epoch)
{
    for (uint32_t r = 0; r < world_ranks(s->program.world); r++) {
        struct io_slice io[PROGRAM_IO_MAX];
        uint32_t count = program_io(&s->program, r, io);

        check_write_inputs(&s->job, r, epoch, s->others);
        for (uint32_t i = 0; i < count; i++) {
            const struct buffer *b = &s->program.buffers[io[i].buffer];
            uint64_t at = program_buffer_offset(&s->program, io[i].buffer, epoch) + io[i].row * b->cols * 2;

            if (io[i].tensor == TENSOR_KV)
                memcpy(s->window + at, s->others + at, io[i].rows * b->cols * 2);
        }
    }
}

/* One stripe of keys and values as it stood in the epoch before. */
static void spoil_stripe(struct stage *s, uint32_t stripe)
{
    struct problem global = s->job.kernel->global(&s->problem, s->program.world);
    uint64_t row_bytes = global.attention.head_dim * 2, first, size;
    uint8_t *kv = s->window + program_buffer_offset(&s->program, 1, EPOCH), *kept;

    first = attention_row_of_keys(&global.attention, stripe, 0) * row_bytes;
    size = attention_key_rows(&global.attention) * attention_stripe_size(&global.attention, stripe) * row_bytes;
    kept = malloc(size);
    ck_assert_ptr_nonnull(kept);
    gather(s, EPOCH - 1);
    memcpy(kept, kv + first, size);
    gather(s, EPOCH);
    memcpy(kv + first, kept, size);
    free(kept);
}

static void open_stage(struct stage *s, const struct setting *c)
{
    const struct kernel *k = &ring_attention_kernel;
    struct complaint complaint;
    void *params = calloc(1, k->params_size);

    option_defaults(k->options, params);
    set(k->options, params, "tile_m", "16");
    set(k->options, params, "depth", "1");
    set(k->options, params, "layout", c->layout);
    set(k->options, params, "split", c->split);
    s->problem = c->problem;
    ck_assert_int_eq(k->emit(&s->problem, c->world, &test_machine, FORM_FUSED, params, &s->program, &complaint), ST_OK);
    free(params);
    s->job = (struct job){.program = &s->program, .world = c->world, .kernel = k, .problem = &s->problem, .seed = 5};
    s->rank = world_ranks(c->world) - 1;
    s->window = calloc(1, program_window_bytes(&s->program));
    s->others = calloc(1, program_window_bytes(&s->program));
    ck_assert(s->window && s->others);
    check_poison(&s->job, s->window);
    gather(s, EPOCH);
    check_write_inputs(&s->job, s->rank, EPOCH, s->window);
}

static void close_stage(struct stage *s)
{
    program_fini(&s->program);
    free(s->window);
    free(s->others);
}

/* The rank's tiles one after the other: a chain's tasks stand in its order. */
static void compute(struct stage *s, enum fault fault)
{
    uint8_t *windows[64];
    struct memory memory = {&s->program, windows};
    struct scratch *scratch = scratch_create();

    for (uint32_t r = 0; r < 64; r++)
        windows[r] = s->window;
    for (uint64_t i = 0; i < program_queue_length(&s->program, s->rank, 0); i++) {
        struct task t;

        program_task(&s->program, s->rank, 0, i, &t);
        ck_assert_int_eq(t.op, OP_ATTENTION);
        tile_begin(scratch, &t);
        for (uint32_t step = 0; step < program_step_count(&t); step++) {
            bool faulty = t.segment_first + step == FAULTY_STEP;

            if (faulty && fault == FAULT_MISSING)
                continue;
            tile_step(scratch, &memory, s->rank, EPOCH, &t, step);
            if (faulty && fault == FAULT_TWICE)
                tile_step(scratch, &memory, s->rank, EPOCH, &t, step);
        }
        tile_finish(scratch, &memory, s->rank, EPOCH, &t);
    }
    scratch_destroy(scratch);
}

START_TEST(faults_leave_the_bound_and_nothing_else_does)
{
    enum fault fault = (enum fault)(_i % FAULT_COUNT);
    struct check_report report = {0};
    struct stage s;

    open_stage(&s, &settings[_i / FAULT_COUNT]);
    if (fault == FAULT_STALE)
        spoil_stripe(&s, 0); /* the last rank sees it, with or without a mask */
    compute(&s, fault);
    if (fault == FAULT_ZERO)
        memset(s.window + program_buffer_offset(&s.program, 2, EPOCH), 0, buffer_bytes(&s.program.buffers[2]));
    check_outputs(&s.job, s.rank, EPOCH, s.window, &report);
    ck_assert_uint_gt(report.checked, 0);
    ck_assert_msg((report.wrong > 0) == (fault != FAULT_NONE), "setting %d, fault %s: %lu of %lu wrong %s",
                  _i / FAULT_COUNT, fault_names[fault], report.wrong, report.checked, report.first);
    if (fault != FAULT_NONE) /* by far, not by chance */
        ck_assert_msg(report.wrong * 8 >= report.checked, "fault %s: only %lu of %lu elements", fault_names[fault],
                      report.wrong, report.checked);
    close_stage(&s);
}
END_TEST

/* Every row of both tensors is found again where attention_row_of_...() says it stands. */
START_TEST(rows_and_places_agree)
{
    static const struct attention_problem a = {
        .seq = 45, .batch = 2, .heads = 6, .kv_heads = 2, .head_dim = 64, .stripes = 8};

    for (uint64_t stripe = 0; stripe < a.stripes; stripe++)
        for (uint64_t head = 0; head < a.batch * a.heads; head++)
            for (uint64_t i = 0; i < attention_stripe_size(&a, stripe); i++) {
                uint64_t row = attention_row_of_queries(&a, stripe, head) + i;
                struct attention_place p = attention_query_at(&a, row);

                ck_assert_uint_eq(p.head, head);
                ck_assert_uint_eq(p.position, attention_stripe_begin(&a, stripe) + i);
                ck_assert_uint_eq(p.left, attention_stripe_size(&a, stripe) - i);
            }
    for (uint64_t row = 0; row < attention_key_rows(&a) * a.seq; row++) {
        struct attention_place p = attention_key_at(&a, row);
        uint64_t stripe = 0;

        while (p.position >= attention_stripe_begin(&a, stripe + 1))
            stripe++;
        ck_assert_uint_eq(row, attention_row_of_keys(&a, stripe, p.head) +
                                   (p.side == SIDE_VALUES ? attention_stripe_size(&a, stripe) : 0) + p.position -
                                   attention_stripe_begin(&a, stripe));
    }
    ck_assert_uint_eq(attention_key_head(&a, 0), 0);
    ck_assert_uint_eq(attention_key_head(&a, 5), 1);
    ck_assert_uint_eq(attention_key_head(&a, 6), 2);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("attention");
    TCase *tc = tcase_create("bound");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, faults_leave_the_bound_and_nothing_else_does, 0, SETTINGS * FAULT_COUNT);
    tcase_add_test(tc, rows_and_places_agree);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
