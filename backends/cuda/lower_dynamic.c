/* Dynamic work: selections, gathers by index, routes. */
#include <inttypes.h>

#include "backends/cuda/lower_task.h"
#include "core/route.h"

/* ---- selections ---- */

static enum status add_select(struct lowering *l)
{
    const struct task *t = l->task;
    const struct selection *s = &t->select;
    union gpu_link link = {.select = {0}};

    if (s->mode != SELECT_ALL) {
        uint64_t width = l->out->program->buffers[s->buffer].cols;
        struct operand row = {l->rank, s->buffer, s->entry * width, width};
        struct gpu_matrix m;

        if (t->op == OP_ATTENTION)
            return lower_refuse(l, "a selection, which this backend's attention does not take");
        if (t->op == OP_PUT && s->mode != SELECT_COUNT)
            return lower_refuse(l, "a put by an entry of a work list, this backend's are by count");
        if (t->op == OP_GEMM && s->b_step % t->b.ld != 0)
            return lower_refuse(l, "groups of b that are no whole rows apart");
        if (s->skip >= UINT32_MAX || (t->op == OP_GEMM && s->b_step / t->b.ld >= UINT32_MAX))
            return lower_refuse(l, "a selection beyond 32 bits");
        TRY(lower_place(l, &row, l->rank, 0, &m));
        link.select = (struct gpu_select){m.view, m.row, (uint32_t)s->skip,
                                          t->op == OP_GEMM ? (uint32_t)(s->b_step / t->b.ld) : 0};
    }
    l->word.select = (uint8_t)s->mode;
    ADD(l->out, links, union gpu_link, &link);
    return ST_OK;
}

/* Where rows come from. */
static enum status add_sources(struct lowering *l)
{
    uint32_t first, count = program_target_ranks(l->out->program, l->rank, l->task->a.rank, &first);

    for (uint32_t i = 0; i < count; i++) {
        union gpu_link link;

        TRY(lower_place(l, &l->task->a, first + i, 0, &link.matrix));
        ADD(l->out, links, union gpu_link, &link);
    }
    return ST_OK;
}

static enum status add_index(struct lowering *l)
{
    const struct task *t = l->task;
    bool stacked = t->a.rank == RANK_NODE;
    union gpu_link index, flags = {.indexed = {.rows_per_flag = 1}}, weight = {.matrix = {.view = NO_VIEW}};
    union gpu_link rows = {
        .rows = {
            .terms = (uint32_t)program_index_terms(t),
            .limit = (uint32_t)t->index_limit,
            .source_rows = stacked ? (uint32_t)l->out->program->buffers[t->a.buffer].rows : UINT32_MAX,
        }};

    if (t->op == OP_GATHER_ROWS && t->index.ld != 1)
        return lower_refuse(l, "an index list with gaps");
    TRY(lower_place(l, &t->index, l->rank, 0, &index.matrix));
    if (t->indexed.rows_per_flag > UINT32_MAX)
        return lower_refuse(l, "%" PRIu64 " rows a flag are more than 32 bits hold", t->indexed.rows_per_flag);
    if (t->indexed.count > 0)
        flags.indexed = (struct gpu_indexed){t->indexed.first, t->indexed.count, (uint32_t)t->indexed.rows_per_flag, 0};
    if (t->op == OP_COMBINE_ROWS && t->combine.weighted)
        TRY(lower_place(l, &t->combine.weight, l->rank, 0, &weight.matrix));
    l->word.by_index = true;
    l->out->by_index++;
    ADD(l->out, links, union gpu_link, &index);
    ADD(l->out, links, union gpu_link, &rows);
    ADD(l->out, links, union gpu_link, &flags);
    ADD(l->out, links, union gpu_link, &weight);
    return add_sources(l);
}

enum status lower_dynamic(struct lowering *l)
{
    bool indexes = task_indexes(l->task);

    if (l->word.kind == GPU_SIGNAL || (l->task->select.mode == SELECT_ALL && !indexes))
        return ST_OK;
    TRY(add_select(l));
    return indexes ? add_index(l) : ST_OK;
}

/* ---- rows by index ---- */

enum status lower_check_index(struct lowering *l)
{
    const struct task *t = l->task;

    if (t->index_limit > INT32_MAX || l->out->program->buffers[t->a.buffer].rows >= UINT32_MAX ||
        program_index_terms(t) > INT32_MAX)
        return lower_refuse(l, "index values beyond 31 bits");
    return ST_OK;
}

enum status lower_indexed(struct lowering *l)
{
    const struct task *t = l->task;
    const struct program *p = l->out->program;

    if (t->out_count != 1 || t->out[0].rank == RANK_NODE)
        return lower_refuse(l, "rows by index go to one target");
    if (t->op == OP_GATHER_ROWS && p->buffers[t->a.buffer].dtype != p->buffers[t->out[0].buffer].dtype)
        return lower_refuse(l, "rows are gathered as they are, to the same type");
    l->word.kind = (uint8_t)lower_move_kind(l);
    return lower_check_index(l);
}

/* ---- routes ---- */

static enum status control_view(struct lowering *l, uint32_t buffer, uint32_t *view_out)
{
    struct operand o = {l->rank, buffer, 0, l->out->program->buffers[buffer].cols};
    struct gpu_matrix m;

    TRY(lower_place(l, &o, l->rank, 0, &m));
    *view_out = m.view;
    return ST_OK;
}

/* What is counted in 32 bits, the largest numbers being `back`'s words and slots of whole tiles. */
static bool route_fits(const struct route *r, uint64_t list_rows)
{
    uint64_t pairs, rows, slots;

    return !__builtin_mul_overflow(r->tokens + 1, r->top_k, &pairs) && pairs < INT32_MAX &&
           !__builtin_mul_overflow(r->slot_rows, world_ranks(r->world), &rows) && rows < INT32_MAX &&
           !__builtin_mul_overflow(rows, r->top_k, &rows) && rows < INT32_MAX &&
           !__builtin_mul_overflow(list_rows, r->tile_rows, &slots) &&
           !__builtin_mul_overflow(slots, r->world.gpus_per_node, &slots) && slots < INT32_MAX &&
           r->experts < INT32_MAX && r->capacity < INT32_MAX && world_ranks(r->world) <= INT16_MAX;
}

enum status lower_route(struct lowering *l)
{
    const struct route *r = l->task->route;
    struct lowered_route x = {.route = r};
    struct gpu_route *g = &x.word;

    if (!route_fits(r, r->kind == ROUTE_RECEIVE ? l->out->program->buffers[r->list].rows : 0))
        return lower_refuse(l, "a routing table beyond 31 bits");
    *g = (struct gpu_route){.kind = r->kind,
                            .tokens = (uint32_t)r->tokens,
                            .experts = (uint32_t)r->experts,
                            .top_k = (uint32_t)r->top_k,
                            .nodes = r->world.nodes,
                            .gpus = r->world.gpus_per_node,
                            .rank = l->rank,
                            .slot_rows = (uint32_t)r->slot_rows,
                            .capacity = (uint32_t)r->capacity,
                            .tile_rows = (uint32_t)r->tile_rows,
                            .aligned = r->aligned,
                            .returns = r->back != NO_BUFFER,
                            .lists_pulls = r->kind == ROUTE_RECEIVE && r->pulls != NO_BUFFER,
                            .stack_rows = (uint32_t)route_rows_max(r)};
    TRY(control_view(l, r->table, &g->table));
    TRY(control_view(l, r->index, &g->index));
    if (r->kind == ROUTE_RECEIVE) {
        TRY(control_view(l, r->list, &g->list));
        g->list_rows = (uint32_t)l->out->program->buffers[r->list].rows;
    }
    if (g->lists_pulls) {
        TRY(control_view(l, r->pulls, &g->pulls));
        TRY(control_view(l, r->pull_count, &g->pull_count));
    }
    if (g->returns)
        TRY(control_view(l, r->back, &g->back));
    if (g->returns || r->kind == ROUTE_SEND)
        TRY(control_view(l, r->counts, &g->counts));
    l->word.kind = GPU_ROUTE;
    l->word.k = (uint32_t)l->out->routes.count;
    ADD(l->out, routes, struct lowered_route, &x);
    return ST_OK;
}
