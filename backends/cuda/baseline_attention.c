/* Of ring_attention: NCCL gathers all keys and values, then the interpreter's attention, the backend's own, works on
 * them.
 *
 * A rank has the stripes that `layout: zigzag` of the kernel gives it, one from the front of the sequence and one from
 * its end, so that with a causal mask all have as much to do.  KV has the ranks' parts one behind the other, as the
 * collective leaves them; segment tables find the stripes there. */
#include "backends/cuda/baseline.h"

#include <assert.h>

#include "core/attention.h"
#include "core/check.h"
#include "core/kernel.h"

#define SLOTS 2 /* stripes of a rank; slot 0 is the earlier one */

static uint32_t stripe_of(const struct baseline_rig *b, uint32_t rank, uint32_t slot)
{
    return slot == 0 ? rank : SLOTS * b->ranks - 1 - rank;
}

static uint64_t slot_size(const struct baseline_rig *b, uint32_t rank, uint32_t slot)
{
    return attention_stripe_size(&b->attention.problem, stripe_of(b, rank, slot));
}

static uint64_t key_rows(const struct baseline_rig *b, uint32_t rank)
{
    return attention_key_rows(&b->attention.problem) * (slot_size(b, rank, 0) + slot_size(b, rank, 1));
}

/* In KV, of a rank's slot. */
static uint64_t first_key_row(const struct baseline_rig *b, uint32_t rank, uint32_t slot)
{
    uint64_t row = slot ? attention_key_rows(&b->attention.problem) * slot_size(b, rank, 0) : 0;

    for (uint32_t i = 0; i < rank; i++)
        row += key_rows(b, i);
    return row;
}

/* ---- the program: tiles of queries ---- */

struct tile {
    uint64_t head, row, rows; /* of the head's share of the stripe */
    uint32_t slot;
};

static uint64_t tiles_of(const struct baseline_rig *b, uint32_t rank, uint32_t slot)
{
    return ceil_div(slot_size(b, rank, slot), GPU_TILE_M);
}

static uint64_t queue_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    const struct baseline_rig *b = p->state;

    (void)queue;
    return attention_query_rows(&b->attention.problem) * (tiles_of(b, rank, 0) + tiles_of(b, rank, 1));
}

/* Head by head; within a head the latest queries first, which with a causal mask have most to do. */
static struct tile tile_at(const struct baseline_rig *b, uint32_t rank, uint64_t i)
{
    uint64_t early = tiles_of(b, rank, 0), all = early + tiles_of(b, rank, 1), tile = all - 1 - i % all;
    struct tile t = {.head = i / all, .slot = tile >= early};

    t.row = (t.slot ? tile - early : tile) * GPU_TILE_M;
    t.rows = min_u64(GPU_TILE_M, slot_size(b, rank, t.slot) - t.row);
    return t;
}

static struct operand rows_of(const struct baseline_rig *b, uint32_t rank, uint32_t buffer, uint64_t row)
{
    uint64_t cols = b->attention.problem.head_dim;

    return (struct operand){rank, buffer, row * cols, cols};
}

static void task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *t)
{
    const struct baseline_rig *b = p->state;
    const struct attention_problem *a = &b->attention.problem;
    struct tile tile = tile_at(b, rank, index);
    uint32_t stripe = stripe_of(b, rank, tile.slot);
    uint64_t begin = tile.slot ? attention_query_rows(a) * slot_size(b, rank, 0) : 0;
    uint64_t row = begin + tile.head * slot_size(b, rank, tile.slot) + tile.row;

    (void)queue;
    t->op = OP_ATTENTION;
    t->m = tile.rows;
    t->n = a->head_dim;
    t->a = t->b = rows_of(b, rank, b->attention.kv, 0);
    t->segment_table = (uint32_t)attention_key_head(a, tile.head);
    t->segment_count = a->causal ? stripe + 1 : (uint32_t)a->stripes;
    t->attention.q = rows_of(b, rank, b->attention.q, row);
    t->attention.position = attention_stripe_begin(a, stripe) + tile.row;
    t->attention.causal = a->causal;
    task_store_to(t, rows_of(b, rank, b->attention.o, row));
}

/* One table per head of keys and values; a segment per stripe, in the order of the sequence. */
static uint32_t segment_table_size(const struct program *p, uint32_t rank, uint32_t table)
{
    const struct baseline_rig *b = p->state;

    (void)rank, (void)table;
    return (uint32_t)b->attention.problem.stripes;
}

static void segment(const struct program *p, uint32_t rank, uint32_t table, uint32_t stripe, struct segment *out)
{
    const struct baseline_rig *b = p->state;
    const struct attention_problem *a = &b->attention.problem;
    uint32_t slot = stripe >= b->ranks, owner = slot ? SLOTS * b->ranks - 1 - stripe : stripe;
    uint64_t size = attention_stripe_size(a, stripe);

    (void)rank;
    out->k = size;
    out->a_offset = (first_key_row(b, owner, slot) + 2 * table * size) * a->head_dim;
    out->b_offset = out->a_offset + size * a->head_dim;
    out->position = attention_stripe_begin(a, stripe);
}

/* Of each slot the queries, the keys and values, and the results. */
static uint32_t io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    const struct baseline_rig *b = p->state;
    const struct baseline_attention *x = &b->attention;
    uint64_t begin = 0, dim = x->problem.head_dim;
    uint32_t count = 0;

    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        uint32_t stripe = stripe_of(b, rank, slot);
        uint64_t queries = attention_query_rows(&x->problem) * slot_size(b, rank, slot);
        uint64_t keys = attention_key_rows(&x->problem) * slot_size(b, rank, slot);
        uint64_t from = attention_row_of_queries(&x->problem, stripe, 0);

        out[count++] = (struct io_slice){IO_INPUT, x->q, begin, queries, dim, TENSOR_Q, from, 0};
        out[count++] = (struct io_slice){IO_INPUT,
                                         x->kv,
                                         first_key_row(b, rank, slot),
                                         keys,
                                         dim,
                                         TENSOR_KV,
                                         attention_row_of_keys(&x->problem, stripe, 0),
                                         0};
        out[count++] = (struct io_slice){IO_OUTPUT, x->o, begin, queries, dim, TENSOR_O, from, 0};
        begin += queries;
    }
    return count;
}

static const struct program_ops ops = {
    .queue_length = queue_length,
    .task = task,
    .io = io,
    .segment_table_size = segment_table_size,
    .segment = segment,
};

static void add_program(struct baseline_rig *b, enum baseline which)
{
    struct baseline_attention *x = &b->attention;
    const struct attention_problem *a = &x->problem;
    uint64_t queries;

    (void)which;
    x->problem = b->job.kernel->global(b->job.problem, b->job.world).attention;
    assert(a->stripes == SLOTS * b->ranks);
    queries = attention_query_rows(a) * SLOTS * ceil_div(a->seq, a->stripes);
    baseline_start_program(b, &ops);
    x->q = baseline_add(b, "Q", DTYPE_BF16, queries, a->head_dim);
    x->kv = baseline_add(b, "KV", DTYPE_BF16, attention_key_rows(a) * a->seq, a->head_dim);
    x->o = baseline_add(b, "O", DTYPE_BF16, queries, a->head_dim);
    program_crew_drains(&b->program, program_add_crew(&b->program, "attend", (uint32_t)b->job.machine->gpu.sms),
                        program_add_queue(&b->program, "attend"));
}

/* ---- an epoch ---- */

static enum status collect(struct rig *r)
{
    struct baseline_rig *b = (struct baseline_rig *)r;
    uint32_t kv = b->attention.kv;
    struct nccl_rank ranks[NCCL_RANKS_MAX];
    uint64_t counts[NCCL_RANKS_MAX];

    for (uint32_t i = 0; i < b->ranks; i++) {
        ranks[i] = baseline_nccl_rank(b, i, kv, first_key_row(b, i, 0), kv, 0);
        counts[i] = key_rows(b, i) * b->attention.problem.head_dim;
    }
    return baseline_nccl_called(b, nccl_gather_parts(&b->nccl, ranks, counts));
}

static enum status enqueue(struct rig *r)
{
    struct baseline_rig *b = (struct baseline_rig *)r;

    if (b->ranks > 1)
        TRY(collect(r));
    b->calls += r->device_count;
    return rig_launch(r);
}

const struct baseline_kind baseline_attention = {
    .family = &problem_attention,
    .detail = "own attention",
    .add_program = add_program,
    .enqueue = enqueue,
    .collect = collect,
};
