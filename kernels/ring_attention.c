/* Ring attention: O = softmax(Q K^T / sqrt(D)) V with the sequence dealt to all ranks, bf16 in and out, f32
 * sums.  Rank r starts with the queries, keys and values of its two stripes of the sequence, all heads, and
 * keeps the results of its queries.
 *
 *   ring      passes pieces of keys and values to the next GPU of the node, the own ones first, then what has
 *             come from the GPU behind or from the rail; each raises ready[stripe, piece] there
 *   send      puts the own pieces to the other nodes of the rail, which raises the same flags there
 *   compute   tiles of queries, each of which walks the stripes in the order of their arrival and waits for
 *             the pieces that hold its head
 *
 * A stripe goes no further than somebody needs it: no piece returns to its owner, and with a causal mask no
 * piece goes to ranks whose queries all stand before it.  Keys and values of all ranks find room in the
 * window: tiles start at different times, so a stripe is needed until the last of them has met it.
 *
 * With `split` a tile is a chain of tasks, each of which walks so many stripes and leaves its result and
 * log-sum-exp in f32 to the next; all tiles' first tasks come before all second ones, so that computing
 * begins on what is there.  The unfused form is the same program in which compute starts behind a barrier. */
#include "kernels/kernels.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/check.h"
#include "kernels/gate.h"
#include "kernels/gather.h"
#include "kernels/reference.h"
#include "kernels/ring.h"

enum piece_order { PIECES_OF_OWNER, PIECES_OF_HEAD }; /* in the order of the choices below */

struct ra_params {
    struct gather_params gather;
    uint64_t tile_m, split;
    uint32_t layout, order;
};

static const struct option ra_options[] = {
    GATHER_OPTIONS("keys and values"),
    {"tile_m", OPTION_COUNT, offsetof(struct ra_params, tile_m), "128", 8, 1024, NULL, "queries of a tile"},
    {"split", OPTION_COUNT, offsetof(struct ra_params, split), "0", 0, 65536, "0|4|8|16|32",
     "stripes that one task of a tile walks before it leaves the rest to the next; 0: all"},
    {"layout", OPTION_CHOICE, offsetof(struct ra_params, layout), "run", 0, 0, RING_LAYOUTS,
     "a rank owns a run of the sequence; or one stripe from its front and one from its end"},
    {"order", OPTION_CHOICE, offsetof(struct ra_params, order), "owner", 0, 0, "owner|head",
     "pieces travel owner by owner; or the first piece of each owner first"},
    GATHER_LAST_OPTIONS("keys and values"),
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL},
};

struct ring_attention {
    struct ring ring;
    struct gate gate;
    enum piece_order order;
    uint64_t piece_rows, pieces; /* of a stripe of keys and values; the last ones may be empty */
    uint64_t tile_m, tiles_max;  /* of one head's share of a stripe */
    uint64_t split;              /* stripes per task */
    uint32_t links_max;          /* tasks of a tile, less one */
    uint32_t depth;
    bool barrier; /* unfused */

    uint32_t q, kv, o, part, lse; /* buffers */
    uint32_t ready, linked, go;   /* flags; linked[tile, i]: the tile's task i is complete */
    struct gather_queues queues;
};

static const struct attention_problem *problem_of(const struct ring_attention *g)
{
    return &g->ring.problem;
}

static uint32_t ready_flag(const struct ring_attention *g, uint32_t stripe, uint64_t piece)
{
    return g->ready + (uint32_t)(stripe * g->pieces + piece);
}

/* First row of a piece, and its number of rows. */
static uint64_t piece_row(const struct ring_attention *g, uint32_t stripe, uint64_t piece, uint64_t *rows_out)
{
    const struct attention_problem *a = problem_of(g);
    uint64_t all = attention_key_rows(a) * attention_stripe_size(a, stripe);
    uint64_t begin = min_u64(piece * g->piece_rows, all);

    *rows_out = min_u64(g->piece_rows, all - begin);
    return attention_row_of_keys(a, stripe, 0) + begin;
}

static struct operand rows_of(const struct ring_attention *g, uint32_t rank, uint32_t buffer, uint64_t row)
{
    uint64_t cols = problem_of(g)->head_dim;

    return (struct operand){rank, buffer, row * cols, cols};
}

/* ---- ring and send: credits, then pieces lane by lane, or of all lanes piece by piece ---- */

static const struct ring_lane *lane_at(const struct ring_attention *g, const struct ring_lanes *lanes, uint64_t i,
                                       uint64_t *piece_out)
{
    if (g->order == PIECES_OF_OWNER) {
        *piece_out = i % g->pieces;
        return &lanes->list[i / g->pieces];
    }
    *piece_out = i / lanes->count;
    return &lanes->list[i % lanes->count];
}

static uint64_t ring_length(const struct ring_attention *g, uint32_t rank)
{
    return gate_node_tasks(&g->gate) + g->ring.copies[rank].count * g->pieces;
}

static void move(const struct ring_attention *g, uint32_t rank, const struct ring_lane *lane, uint64_t piece,
                 struct task *t)
{
    uint64_t row = piece_row(g, lane->stripe, piece, &t->m);

    t->n = problem_of(g)->head_dim;
    t->a = rows_of(g, rank, g->kv, row);
    if (ring_owner(&g->ring, lane->stripe) != rank)
        task_wait(t, ready_flag(g, lane->stripe, piece), 1, FLAG_TOTAL);
    task_store_to(t, rows_of(g, lane->to, g->kv, row));
    task_signal(t, lane->to, ready_flag(g, lane->stripe, piece), 1);
}

static void ring_task(const struct ring_attention *g, uint32_t rank, uint64_t i, struct task *t)
{
    uint64_t opens = gate_node_tasks(&g->gate), piece;
    const struct ring_lane *lane;

    if (i < opens) {
        gate_node_task(&g->gate, rank, t);
        return;
    }
    lane = lane_at(g, &g->ring.copies[rank], i - opens, &piece);
    t->op = OP_COPY;
    gate_wait_peer(&g->gate, t, world_gpu(g->ring.world, lane->to), g->depth, WAIT_ENTRY);
    move(g, rank, lane, piece, t);
}

static uint64_t put_count(const struct ring_attention *g, uint32_t rank)
{
    return g->ring.puts[rank].count * g->pieces;
}

static uint64_t send_length(const struct ring_attention *g, uint32_t rank)
{
    return gate_rail_tasks(&g->gate) + put_count(g, rank) + 1;
}

static void send_task(const struct ring_attention *g, uint32_t rank, uint64_t i, struct task *t)
{
    uint64_t opens = gate_rail_tasks(&g->gate), piece;
    const struct ring_lane *lane;

    if (i < opens) {
        gate_rail_task(&g->gate, rank, i, t);
        return;
    }
    if (i - opens == put_count(g, rank)) {
        t->op = OP_NOP;
        gate_wait_sent(&g->gate, t);
        return;
    }
    lane = lane_at(g, &g->ring.puts[rank], i - opens, &piece);
    t->op = OP_PUT;
    gate_wait_rail(&g->gate, t, world_node(g->ring.world, lane->to), g->depth);
    move(g, rank, lane, piece, t);
    task_signal(t, rank, g->gate.sent, 1);
}

/* ---- compute: the barrier of the unfused form, then tiles ---- */

struct query_tile {
    uint32_t slot, link;             /* link: which task of the tile's chain */
    uint64_t head, index, row, rows; /* rows [row, row + rows) of the head's share of the stripe */
};

static uint64_t slot_size(const struct ring_attention *g, uint32_t rank, uint32_t slot)
{
    return attention_stripe_size(problem_of(g), ring_stripe(&g->ring, rank, slot));
}

/* Tasks of each tile of a slot. */
static uint32_t links(const struct ring_attention *g, uint32_t rank, uint32_t slot)
{
    return (uint32_t)ceil_div(ring_walk_size(&g->ring, rank, slot), g->split);
}

/* Tiles of one head in a slot that have a task number `link`. */
static uint64_t slot_tiles(const struct ring_attention *g, uint32_t rank, uint32_t slot, uint32_t link)
{
    return link < links(g, rank, slot) ? ceil_div(slot_size(g, rank, slot), g->tile_m) : 0;
}

static uint64_t link_tasks(const struct ring_attention *g, uint32_t rank, uint32_t link)
{
    return attention_query_rows(problem_of(g)) * (slot_tiles(g, rank, 0, link) + slot_tiles(g, rank, 1, link));
}

static uint64_t compute_length(const struct ring_attention *g, uint32_t rank)
{
    uint64_t length = g->barrier;

    for (uint32_t link = 0; link <= g->links_max; link++)
        length += link_tasks(g, rank, link);
    return length;
}

/* Head by head; within a head the latest queries first, which with a causal mask have most to do. */
static void tile_at(const struct ring_attention *g, uint32_t rank, uint64_t i, struct query_tile *out)
{
    uint64_t early, all, tile;

    out->link = 0;
    while (i >= link_tasks(g, rank, out->link))
        i -= link_tasks(g, rank, out->link++);
    early = slot_tiles(g, rank, 0, out->link);
    all = early + slot_tiles(g, rank, 1, out->link);
    out->head = i / all;
    tile = all - 1 - i % all;
    out->slot = tile >= early;
    out->index = out->slot ? tile - early : tile;
    out->row = out->index * g->tile_m;
    out->rows = min_u64(g->tile_m, slot_size(g, rank, out->slot) - out->row);
}

static uint32_t linked_flag(const struct ring_attention *g, const struct query_tile *tile, uint32_t link)
{
    uint64_t number = (tile->head * RING_SLOTS + tile->slot) * g->tiles_max + tile->index;

    return g->linked + (uint32_t)(number * g->links_max + link);
}

/* Row of a rank's buffers of queries and results. */
static uint64_t local_row(const struct ring_attention *g, uint32_t rank, const struct query_tile *tile)
{
    uint64_t heads = attention_query_rows(problem_of(g));
    uint64_t begin = tile->slot ? heads * slot_size(g, rank, 0) : 0;

    return begin + tile->head * slot_size(g, rank, tile->slot) + tile->row;
}

/* What the chain of a tile hands on. */
static void link_task(const struct ring_attention *g, uint32_t rank, const struct query_tile *tile, bool last,
                      struct task *t)
{
    uint64_t row = local_row(g, rank, tile);

    t->attention.lse = (struct operand){rank, g->lse, row, 1};
    if (tile->link > 0) {
        t->addend = rows_of(g, rank, g->part, row);
        t->addend_count = 1;
        task_wait(t, linked_flag(g, tile, tile->link - 1), 1, FLAG_TOTAL);
    }
    task_store_to(t, rows_of(g, rank, last ? g->o : g->part, row));
    if (last)
        return;
    t->attention.leaves = true;
    task_signal(t, rank, linked_flag(g, tile, tile->link), 1);
}

static void tile_task(const struct ring_attention *g, uint32_t rank, uint64_t i, struct task *t)
{
    const struct attention_problem *a = problem_of(g);
    uint32_t stripes, stripe;
    struct query_tile tile;

    tile_at(g, rank, i, &tile);
    stripe = ring_stripe(&g->ring, rank, tile.slot);
    stripes = ring_walk_size(&g->ring, rank, tile.slot);
    t->op = OP_ATTENTION;
    t->m = tile.rows;
    t->n = a->head_dim;
    t->a = t->b = rows_of(g, rank, g->kv, 0);
    t->segment_table = (uint32_t)(tile.slot * a->batch * a->kv_heads + attention_key_head(a, tile.head));
    t->segment_first = (uint32_t)(tile.link * g->split);
    t->segment_count = (uint32_t)min_u64(g->split, stripes - t->segment_first);
    t->attention.q = rows_of(g, rank, g->q, local_row(g, rank, &tile));
    t->attention.position = attention_stripe_begin(a, stripe) + tile.row;
    t->attention.causal = a->causal;
    if (g->barrier)
        task_wait(t, g->go, 1, FLAG_TOTAL);
    link_task(g, rank, &tile, tile.link + 1 == links(g, rank, tile.slot), t);
}

static void compute_task(const struct ring_attention *g, uint32_t rank, uint64_t i, struct task *t)
{
    if (i >= g->barrier) {
        tile_task(g, rank, i - g->barrier, t);
        return;
    }
    t->op = OP_NOP;
    task_wait(t, g->ready, (uint32_t)(problem_of(g)->stripes * g->pieces), FLAG_TOTAL);
    task_signal(t, rank, g->go, 1);
}

/* ---- the program ---- */

static uint64_t ra_queue_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    const struct ring_attention *g = p->state;

    if (queue == g->queues.compute)
        return compute_length(g, rank);
    return queue == g->queues.copy ? ring_length(g, rank) : send_length(g, rank);
}

static void ra_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *t)
{
    const struct ring_attention *g = p->state;

    if (queue == g->queues.compute)
        compute_task(g, rank, index, t);
    else if (queue == g->queues.copy)
        ring_task(g, rank, index, t);
    else
        send_task(g, rank, index, t);
}

static uint64_t linked_total(const struct ring_attention *g, uint32_t rank, uint32_t flag)
{
    uint64_t number = (flag - g->linked) / g->links_max, link = (flag - g->linked) % g->links_max;
    uint32_t slot = (uint32_t)(number / g->tiles_max % RING_SLOTS);

    return number % g->tiles_max < slot_tiles(g, rank, slot, (uint32_t)link) && link + 1 < links(g, rank, slot);
}

static uint64_t ra_flag_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    const struct ring_attention *g = p->state;
    uint64_t total;

    if (gate_flag_total(&g->gate, rank, flag, &total))
        return total;
    if (flag == g->gate.sent)
        return gate_rail_tasks(&g->gate) + put_count(g, rank);
    if (flag == g->go)
        return g->barrier;
    if (flag >= g->linked)
        return linked_total(g, rank, flag);
    return ring_arrives(&g->ring, rank, (uint32_t)((flag - g->ready) / g->pieces));
}

/* Of each slot the queries, the keys and values, and the results. */
static uint32_t ra_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    const struct ring_attention *g = p->state;
    const struct attention_problem *a = problem_of(g);
    uint64_t begin = 0;
    uint32_t count = 0;

    for (uint32_t slot = 0; slot < RING_SLOTS; slot++) {
        uint64_t stripe = ring_stripe(&g->ring, rank, slot), size = attention_stripe_size(a, stripe);
        uint64_t queries = attention_query_rows(a) * size, from = attention_row_of_queries(a, stripe, 0);
        uint64_t keys = attention_row_of_keys(a, stripe, 0);

        out[count++] = (struct io_slice){IO_INPUT, g->q, begin, queries, a->head_dim, TENSOR_Q, from, 0};
        out[count++] =
            (struct io_slice){IO_INPUT, g->kv, keys, attention_key_rows(a) * size, a->head_dim, TENSOR_KV, keys, 0};
        out[count++] = (struct io_slice){IO_OUTPUT, g->o, begin, queries, a->head_dim, TENSOR_O, from, 0};
        begin += queries;
    }
    return count;
}

static uint32_t ra_segment_table_size(const struct program *p, uint32_t rank, uint32_t table)
{
    const struct ring_attention *g = p->state;
    const struct attention_problem *a = problem_of(g);

    return ring_walk_size(&g->ring, rank, (uint32_t)(table / (a->batch * a->kv_heads)));
}

/* One table per slot and head of keys and values; a segment per stripe. */
static void ra_segment(const struct program *p, uint32_t rank, uint32_t table, uint32_t index, struct segment *out)
{
    const struct ring_attention *g = p->state;
    const struct attention_problem *a = problem_of(g);
    uint64_t heads = a->batch * a->kv_heads, head = table % heads;
    uint32_t stripe = ring_walk(&g->ring, rank, (uint32_t)(table / heads), index);
    uint64_t size = attention_stripe_size(a, stripe);
    uint64_t first = 2 * head * size / g->piece_rows, last = (2 * (head + 1) * size - 1) / g->piece_rows;

    out->k = size;
    out->a_offset = attention_row_of_keys(a, stripe, head) * a->head_dim;
    out->b_offset = out->a_offset + size * a->head_dim;
    out->position = attention_stripe_begin(a, stripe);
    if (!g->barrier && ring_owner(&g->ring, stripe) != rank)
        out->wait = (struct wait){
            .flag = ready_flag(g, stripe, first), .count = (uint32_t)(last - first + 1), .value = FLAG_TOTAL};
}

static void ra_fini(struct program *p)
{
    struct ring_attention *g = p->state;

    ring_destroy(&g->ring);
    free(g);
}

static const struct program_ops ra_program_ops = {
    .queue_length = ra_queue_length,
    .task = ra_task,
    .flag_total = ra_flag_total,
    .io = ra_io,
    .segment_table_size = ra_segment_table_size,
    .segment = ra_segment,
    .fini = ra_fini,
};

static void plan_sizes(struct ring_attention *g, const struct ra_params *params)
{
    const struct attention_problem *a = problem_of(g);
    uint64_t stripe = ceil_div(a->seq, a->stripes), rows = attention_key_rows(a) * stripe;

    g->piece_rows = min_u64(max_u64(1, params->gather.chunk_bytes / (a->head_dim * 2)), rows);
    g->pieces = ceil_div(rows, g->piece_rows);
    g->tile_m = params->tile_m;
    g->tiles_max = ceil_div(stripe, g->tile_m);
    g->split = params->split ? min_u64(params->split, a->stripes) : a->stripes;
    g->links_max = (uint32_t)(ceil_div(a->stripes, g->split) - 1);
}

static uint64_t link_flags(const struct ring_attention *g)
{
    return attention_query_rows(problem_of(g)) * RING_SLOTS * g->tiles_max * g->links_max;
}

static enum status check_sizes(const struct ring_attention *g, const struct ra_params *params,
                               const struct machine *machine, struct complaint *c)
{
    const struct attention_problem *a = problem_of(g);
    uint32_t ranks = world_ranks(g->ring.world);

    if (a->stripes * g->pieces + link_flags(g) + ranks + 8 > PROGRAM_FLAGS_MAX)
        return complain(c, g->links_max ? "split" : "chunk",
                        "%" PRIu64 " pieces of keys and %" PRIu64 " tasks of chains need more flags than "
                        "the %u there are",
                        a->stripes * g->pieces, link_flags(g), PROGRAM_FLAGS_MAX);
    return gather_check_crews(&params->gather, g->ring.world, machine, c);
}

static void add_buffers_and_flags(struct ring_attention *g, struct program *p)
{
    const struct attention_problem *a = problem_of(g);
    uint64_t queries = attention_query_rows(a) * RING_SLOTS * ceil_div(a->seq, a->stripes);
    uint64_t keys = attention_key_rows(a) * a->seq;

    g->q = program_add_buffer(p, (struct buffer){"Q", DTYPE_BF16, queries, a->head_dim, 1});
    g->kv = program_add_buffer(p, (struct buffer){"KV", DTYPE_BF16, keys, a->head_dim, g->depth});
    g->o = program_add_buffer(p, (struct buffer){"O", DTYPE_BF16, queries, a->head_dim, 1});
    if (g->links_max) {
        g->part = program_add_buffer(p, (struct buffer){"part", DTYPE_F32, queries, a->head_dim, 1});
        g->lse = program_add_buffer(p, (struct buffer){"lse", DTYPE_F32, queries, 1, 1});
    }
    gate_init(&g->gate, p, true);
    g->ready = program_add_flags(p, "ready", a->stripes * g->pieces);
    g->linked = program_add_flags(p, "linked", link_flags(g));
    g->go = program_add_flags(p, "go", g->barrier);
}

static struct problem ra_global(const struct problem *problem, struct world world)
{
    struct problem global = *problem;

    global.attention.stripes = (uint64_t)RING_SLOTS * world_ranks(world);
    return global;
}

static enum status ra_emit(const struct problem *problem, struct world world, const struct machine *machine,
                           enum form form, const void *params_in, struct program *p, struct complaint *c)
{
    const struct ra_params *params = params_in;
    struct problem global = ra_global(problem, world);
    struct ring_attention *g = calloc(1, sizeof *g);
    enum status st = ST_MEMORY;

    if (!g)
        return ST_MEMORY;
    *p = (struct program){.kernel = "ring_attention",
                          .variant = form == FORM_FUSED ? "fused" : "unfused",
                          .world = world,
                          .ops = &ra_program_ops,
                          .state = g};
    g->depth = (uint32_t)params->gather.depth;
    g->order = (enum piece_order)params->order;
    g->barrier = form == FORM_UNFUSED;
    if (ring_create(&g->ring, world, &global.attention, (enum ring_layout)params->layout)) {
        plan_sizes(g, params);
        st = check_sizes(g, params, machine, c);
    }
    if (st < 0) {
        program_fini(p);
        return st;
    }
    add_buffers_and_flags(g, p);
    gather_add_crews(&params->gather, world, g->barrier, (uint32_t)machine->gpu.sms, "ring", p, &g->queues);
    return ST_OK;
}

const struct kernel ring_attention_kernel = {
    .name = "ring_attention",
    .title = "sequence-parallel attention: keys and values go round while the ones before are used",
    .shape = "O[batch, heads, seq, head_dim]; seq / ranks positions per rank, in two stripes",
    .family = &problem_attention,
    .collective = COLLECTIVE_ALL_GATHER,
    .options = ra_options,
    .params_size = sizeof(struct ra_params),
    .emit = ra_emit,
    .global = ra_global,
    .bounded = &reference_attention,
};
