/* The layout of the dispatch: sizes, buffers, flags, queues, routes. */
#include "kernels/moe_dispatch.h"

#include <inttypes.h>

#include "core/check.h"
#include "kernels/moe_routing.h"

/* Rows that a rank gathers at most, where it gathers each once (route_pulls_max()). */
static uint64_t pulls_max(const struct moe_dispatch *g)
{
    return min_u64(g->capacity, g->problem.tokens);
}

static void plan_gathers(struct moe_dispatch *g, uint64_t rows)
{
    if (g->source == MOE_SOURCE_EXPANDED) {
        g->gather_rows = min_u64(rows, g->tile_m);
        g->parts = ceil_div(g->tile_m, g->gather_rows);
        g->gathers = g->entries * g->parts;
        g->lead *= g->parts;
    } else if (g->source == MOE_SOURCE_ONCE) {
        g->gather_rows = min_u64(rows, pulls_max(g));
        g->gathers = ceil_div(pulls_max(g), g->gather_rows);
    }
    g->lead = min_u64(g->lead, g->gathers);
}

void moe_dispatch_plan(struct moe_dispatch *g, const struct moe_params *params)
{
    const struct moe_problem *p = &g->problem;
    uint32_t ranks = world_ranks(g->world);

    g->depth = (uint32_t)params->depth;
    g->shard = ceil_div(p->tokens, ranks);
    g->chunk_rows = min_u64(g->shard, max_u64(1, params->chunk_bytes / (p->hidden * 2)));
    g->chunks = ceil_div(g->shard, g->chunk_rows);
    g->slot_rows = g->chunks * g->chunk_rows;
    g->capacity = moe_capacity_rows(p, g->world);
    g->tile_m = params->tile_m;
    g->entries = route_entries_max(g->capacity, g->tile_m, ceil_div(p->experts, ranks));
    g->source = params->source;
    plan_gathers(g, params->gather_rows);
}

enum status moe_dispatch_check(const struct moe_dispatch *g, const struct moe_params *params,
                               const struct machine *machine, uint64_t flags, struct complaint *c)
{
    uint64_t stack = g->world.gpus_per_node * g->world.nodes * g->slot_rows;
    uint64_t rows = g->returns ? g->world.gpus_per_node * g->entries * g->tile_m : g->capacity;
    uint64_t workers = params->comm_sms + params->send_sms + 1;

    if (workers >= machine->gpu.sms)
        return complain(c, "comm_sms",
                        "%" PRIu64 " workers for tokens and puts leave nothing to compute on: %s has "
                        "%" PRIu64 " SMs",
                        workers, machine->gpu.model, machine->gpu.sms);
    if (max_u64(stack, rows) > INT32_MAX)
        return complain(c, "tokens", "%" PRIu64 " rows in a node do not fit 32-bit index lists", max_u64(stack, rows));
    if (stack / g->chunk_rows + g->entries + flags > PROGRAM_FLAGS_MAX / 2)
        return complain(c, "chunk", "chunks of %" PRIu64 " rows need too many flags", g->chunk_rows);
    if (g->gathers > PROGRAM_FLAGS_MAX / 2)
        return complain(c, "gather_rows", "parts of %" PRIu64 " rows need too many flags", g->gather_rows);
    return ST_OK;
}

static uint32_t add_control(struct program *p, const char *name, uint64_t rows, uint64_t cols, uint32_t depth)
{
    return program_add_buffer(p, (struct buffer){name, DTYPE_I32, rows, cols, depth});
}

static void fill_routes(struct moe_dispatch *g)
{
    g->receive = (struct route){
        .kind = ROUTE_RECEIVE,
        .world = g->world,
        .tokens = g->problem.tokens,
        .experts = g->problem.experts,
        .top_k = g->problem.top_k,
        .slot_rows = g->slot_rows,
        .capacity = g->capacity,
        .tile_rows = g->tile_m,
        .drop = g->problem.overflow == MOE_OVERFLOW_DROP,
        .aligned = g->returns,
        .table = g->table,
        .counts = g->returns ? g->came : g->counts,
        .index = g->index,
        .list = g->list,
        .back = g->back,
        .pulls = g->pulls,
        .pull_count = g->pull_count,
    };
    g->send = g->receive;
    g->send.kind = ROUTE_SEND;
    g->send.counts = g->counts;
    g->send.index = g->send_index;
    g->send.back = g->send_back;
}

/* Whatever goes back does so because of these; NO_BUFFER where nothing does. */
static void add_way_back(struct moe_dispatch *g, struct program *p)
{
    uint64_t slots = g->world.nodes * g->slot_rows, top_k = g->problem.top_k;

    g->send_back = g->came = g->back = NO_BUFFER;
    if (!g->returns)
        return;
    if (g->world.nodes > 1)
        g->send_back = add_control(p, "send_back", g->slot_rows, g->world.nodes, 1);
    g->came = add_control(p, "came", g->world.nodes, 1, 1);
    g->back = add_control(p, "back", slots, top_k, 1);
    g->scores = program_add_buffer(p, (struct buffer){"scores", DTYPE_F32, slots, top_k, g->depth});
    g->score_outbox =
        program_add_buffer(p, (struct buffer){"score_outbox", DTYPE_F32, g->world.nodes > 1 ? slots : 0, top_k, 1});
}

static void add_pulls(struct moe_dispatch *g, struct program *p)
{
    g->pulls = g->pull_count = NO_BUFFER;
    if (g->source != MOE_SOURCE_ONCE)
        return;
    g->pulls = add_control(p, "pulls", pulls_max(g), 1, 1);
    g->pull_count = add_control(p, "pull_count", 1, 1, 1);
}

static uint64_t gathered_rows(const struct moe_dispatch *g, uint64_t rows)
{
    if (g->source == MOE_SOURCE_EXPANDED)
        return rows;
    return g->source == MOE_SOURCE_ONCE ? pulls_max(g) : 0;
}

static void add_buffers(struct moe_dispatch *g, struct program *p)
{
    const struct moe_problem *s = &g->problem;
    uint64_t slots = g->world.nodes * g->slot_rows;
    uint64_t rows = g->returns ? g->entries * g->tile_m : g->capacity;

    g->table = add_control(p, "table", s->tokens, s->top_k, g->depth);
    g->counts = add_control(p, "counts", g->world.nodes, 1, 1);
    g->send_index = add_control(p, "send_index", slots, 1, 1);
    g->index = add_control(p, "index", rows, 1, 1);
    g->list = add_control(p, "list", g->entries, 3, 1);
    add_pulls(g, p);
    add_way_back(g, p);
    g->held = program_add_buffer(p, (struct buffer){"held", DTYPE_BF16, slots, s->hidden, g->depth});
    g->outbox =
        program_add_buffer(p, (struct buffer){"outbox", DTYPE_BF16, g->world.nodes > 1 ? slots : 0, s->hidden, 1});
    g->rows = program_add_buffer(p, (struct buffer){"rows", DTYPE_BF16, gathered_rows(g, rows), s->hidden, 1});
}

static void add_flags(struct moe_dispatch *g, struct program *p)
{
    uint64_t ranks = world_ranks(g->world), scores = g->returns && g->world.nodes > 1 ? g->world.nodes : 0;

    gate_init(&g->gate, p, false);
    g->told = program_add_flags(p, "told", g->world.nodes);
    g->known = program_add_flags(p, "known", ranks);
    g->routed = program_add_flags(p, "routed", 2);
    g->packed = program_add_flags(p, "packed", g->world.nodes * g->chunks);
    g->landed = program_add_flags(p, "landed", g->world.nodes * g->chunks);
    g->ready = program_add_flags(p, "ready", g->world.gpus_per_node * g->world.nodes * g->chunks);
    g->gathered = program_add_flags(p, "gathered", moe_gathered_flags(g));
    g->pulled = program_add_flags(p, "pulled", g->world.gpus_per_node);
    g->scores_packed = program_add_flags(p, "scores_packed", scores);
    g->scores_landed = program_add_flags(p, "scores_landed", scores);
}

void moe_dispatch_add(struct moe_dispatch *g, struct program *p)
{
    add_buffers(g, p);
    add_flags(g, p);
    fill_routes(g);
    g->control_queue = program_add_queue(p, "control");
    g->pack_queue = program_add_queue(p, "pack");
    g->relay_queue = program_add_queue(p, "relay");
    g->lead_queue = g->lead > 0 ? program_add_queue(p, "lead") : UINT32_MAX;
    g->gather_queue = program_add_queue(p, "gather");
    g->send_queue = g->world.nodes > 1 ? program_add_queue(p, "send") : UINT32_MAX;
}

uint32_t moe_dispatch_inputs(const struct moe_dispatch *g, uint32_t rank, struct io_slice *out)
{
    const struct moe_problem *s = &g->problem;
    uint32_t ranks = world_ranks(g->world);
    uint64_t first = part_begin(s->tokens, ranks, rank), tokens = part_size(s->tokens, ranks, rank);
    uint64_t slot = world_node(g->world, rank) * g->slot_rows;

    out[0] = (struct io_slice){IO_INPUT, g->table, first, tokens, s->top_k, TENSOR_ROUTING, first, 0};
    out[1] = (struct io_slice){IO_INPUT, g->held, slot, tokens, s->hidden, TENSOR_A, first, 0};
    if (!g->returns)
        return 2;
    out[2] = (struct io_slice){IO_INPUT, g->scores, slot, tokens, s->top_k, TENSOR_WEIGHTS, first, 0};
    return 3;
}
