#include "backends/sim/transfer.h"

#include <assert.h>

#include "backends/ops/route.h"
#include "backends/sim/control.h"
#include "backends/sim/cost.h"
#include "core/route.h"

uint64_t transfer_bytes(const struct sim *s, const struct operand *o, uint64_t rows, uint64_t cols)
{
    return rows * cols * dtype_bytes(s->program->buffers[o->buffer].dtype);
}

uint64_t transfer_addend_bytes(const struct sim *s, const struct task *t)
{
    return t->addend_count * transfer_bytes(s, &t->addend, t->m, t->n);
}

bool transfer_is_void(const struct task *t, const struct operand *target, uint32_t target_rank)
{
    return t->op == OP_COPY && target_rank == t->a.rank && target->buffer == t->a.buffer &&
           target->offset == t->a.offset;
}

/* How many flows a store to this target is: peers, or the switch. */
static uint32_t flow_count(const struct sim *s, uint32_t rank, const struct operand *target)
{
    uint32_t peers = s->program->world.gpus_per_node - 1;

    if (target->rank == RANK_EACH)
        return peers;
    if (target->rank != RANK_NODE)
        return target->rank != rank;
    return s->machine->nvlink.multicast && peers > 0 ? 1 : peers;
}

static uint32_t store_flow_count(const struct sim *s, uint32_t rank, const struct task *t)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < t->out_count; i++)
        count += flow_count(s, rank, &t->out[i]);
    return count;
}

bool transfer_is_remote(const struct sim *s, uint32_t rank, const struct task *t)
{
    return store_flow_count(s, rank, t) > 0;
}

/* The rank that holds the row which the i-th index value names, or NO_RANK for none. */
#define NO_RANK UINT32_MAX

static uint32_t indexed_rank(const struct sim *s, const struct task_id *id, const struct task *t, uint64_t i)
{
    struct operand row;
    uint64_t value;

    if (!control_index(s, id, t, i, &value))
        return NO_RANK;
    tile_gather_source(s->program, id->rank, t, value, &row);
    return row.rank;
}

static bool reads_node(const struct sim *s, const struct task *t)
{
    return t->op == OP_REDUCE && t->addend.rank == RANK_NODE && s->program->world.gpus_per_node > 1;
}

static bool gathers(const struct task *t)
{
    return t->op == OP_GATHER_ROWS || t->op == OP_COMBINE_ROWS;
}

bool transfer_has_flows(const struct sim *s, const struct task_id *id, const struct task *t)
{
    uint32_t source = t->a.rank;

    if (t->op == OP_REDUCE)
        source = program_addend(s->program, id->rank, t, 0).rank;
    if (!gathers(t))
        return reads_node(s, t) || source != id->rank || transfer_is_remote(s, id->rank, t);
    for (uint64_t i = 0; i < t->m * program_index_terms(t); i++) {
        uint32_t from = indexed_rank(s, id, t, i);

        if (from != id->rank && from != NO_RANK)
            return true;
    }
    return false;
}

#define GPUS_PER_NODE_MAX 1024 /* as scenarios may say */

uint32_t transfer_gather(struct sim *s, const struct task_id *id, const struct task *t, engine_fn *fn, uint64_t worker)
{
    uint64_t row_bytes = transfer_bytes(s, &t->a, 1, program_index_cols(t)), bytes[GPUS_PER_NODE_MAX] = {0}, far = 0,
             all = 0;
    uint32_t first = world_rank(s->program->world, world_node(s->program->world, id->rank), 0);
    double rate = s->machine->copy.pull_rate;

    if (t->a.rank == id->rank)
        return 0;
    assert(s->program->world.gpus_per_node <= GPUS_PER_NODE_MAX);
    for (uint64_t i = 0; i < t->m * program_index_terms(t); i++) {
        uint32_t from = indexed_rank(s, id, t, i);

        if (from == NO_RANK)
            continue;
        bytes[from - first] += row_bytes;
        far += from != id->rank;
        all++;
    }
    if (far == 0)
        return 0;
    if (gathers(t))
        rate *= (double)far / (double)all;
    fabric_gather(s->fabric, id->rank, bytes, rate, fn, s, worker, sim_now(s));
    return 1;
}

uint64_t transfer_gather_ps(const struct sim *s, const struct task_id *id, const struct task *t)
{
    uint64_t rows = t->m, written = transfer_bytes(s, &t->out[0], t->m, t->n), read, value;

    if (t->op == OP_COMBINE_ROWS) {
        rows = 0;
        for (uint64_t i = 0; i < t->m * t->combine.terms; i++)
            rows += control_index(s, id, t, i, &value);
    }
    read = transfer_bytes(s, &t->a, rows, t->n);
    if (t->op == OP_GATHER_ROWS)
        return cost_bytes(read, s->machine->copy.pull_rate);
    return max_u64(cost_bytes(read, s->machine->copy.pull_rate),
                   cost_bytes(read + written, s->machine->copy.reduce_rate));
}

/* To find what is mentioned first: a mark for each index value, a look at it, and the place in its stead. */
static uint64_t pull_list_bytes(const struct program *p, const struct route *r)
{
    return (4 * buffer_elements(&p->buffers[r->index]) + buffer_elements(&p->buffers[r->pulls])) * 4;
}

uint64_t transfer_route_bytes(const struct program *p, uint32_t rank, const struct route *r)
{
    uint64_t row = r->top_k * sizeof(int32_t);

    if (r->kind == ROUTE_SEND)
        return part_size(r->tokens, world_ranks(r->world), rank) * (2 * row + r->world.nodes * 4);
    return 2 * r->tokens * row + buffer_elements(&p->buffers[r->index]) * 4 +
           buffer_elements(&p->buffers[r->list]) * 4 +
           (r->back == NO_BUFFER ? 0 : 2 * buffer_elements(&p->buffers[r->back]) * 4) +
           (r->pulls == NO_BUFFER ? 0 : pull_list_bytes(p, r));
}

static void start_store(struct sim *s, uint32_t rank, const struct operand *target, uint64_t bytes, double rate,
                        engine_fn *fn, uint64_t id)
{
    uint32_t first, count = program_target_ranks(s->program, rank, target->rank, &first);

    if (target->rank == RANK_NODE && s->machine->nvlink.multicast && count > 1) {
        fabric_multicast(s->fabric, rank, bytes, rate, fn, s, id, sim_now(s));
        return;
    }
    for (uint32_t to = first; to < first + count; to++)
        if (to != rank)
            fabric_nvlink(s->fabric, rank, to, bytes, rate, fn, s, id, sim_now(s));
}

uint32_t transfer_stores(struct sim *s, uint32_t rank, const struct task *t, engine_fn *fn, uint64_t id)
{
    uint32_t flows = store_flow_count(s, rank, t);
    double rate = op_walks(t->op) || flows == 0 ? 0 : s->machine->copy.push_rate / flows;

    for (uint32_t i = 0; i < t->out_count; i++)
        start_store(s, rank, &t->out[i], transfer_bytes(s, &t->out[i], t->m, t->n), rate, fn, id);
    return flows;
}

uint32_t transfer_pull(struct sim *s, uint32_t rank, uint32_t from, uint64_t bytes, engine_fn *fn, uint64_t id)
{
    if (from == rank || bytes == 0)
        return 0;
    fabric_nvlink(s->fabric, from, rank, bytes, s->machine->copy.pull_rate, fn, s, id, sim_now(s));
    return 1;
}

/* The tile of every GPU of the node: added by the switch, or a pull from each peer, all by one CTA. */
static uint32_t pull_node(struct sim *s, uint32_t rank, uint64_t bytes, engine_fn *fn, uint64_t id)
{
    uint32_t gpus = s->program->world.gpus_per_node, first = rank - world_gpu(s->program->world, rank);
    double rate = s->machine->copy.pull_rate;

    if (s->machine->nvlink.reduce) {
        fabric_reduce(s->fabric, rank, bytes, rate, fn, s, id, sim_now(s));
        return 1;
    }
    for (uint32_t from = first; from < first + gpus; from++)
        if (from != rank)
            fabric_nvlink(s->fabric, from, rank, bytes, rate / (gpus - 1), fn, s, id, sim_now(s));
    return gpus - 1;
}

uint32_t transfer_addends(struct sim *s, uint32_t rank, const struct task *t, engine_fn *fn, uint64_t id)
{
    if (t->addend_count == 0)
        return 0;
    if (reads_node(s, t))
        return pull_node(s, rank, transfer_bytes(s, &t->addend, t->m, t->n), fn, id);
    return transfer_pull(s, rank, program_addend(s->program, rank, t, 0).rank, transfer_addend_bytes(s, t), fn, id);
}

static bool writes_own_rank(uint32_t rank, const struct task *t)
{
    for (uint32_t i = 0; i < t->out_count; i++)
        if ((t->out[i].rank == rank || t->out[i].rank == RANK_NODE || t->out[i].rank == RANK_EACH) &&
            !transfer_is_void(t, &t->out[i], rank))
            return true;
    return false;
}

uint64_t transfer_local_ps(const struct sim *s, uint32_t rank, const struct task *t)
{
    if (reads_node(s, t) && s->machine->nvlink.reduce)
        return 0; /* the sum is written as it comes */
    if (t->op == OP_REDUCE) {
        uint64_t written = t->out_count ? transfer_bytes(s, &t->out[0], t->m, t->n) : 0;

        return cost_bytes(transfer_addend_bytes(s, t) + written, s->machine->copy.reduce_rate);
    }
    if (t->a.rank != rank || !writes_own_rank(rank, t))
        return 0; /* what comes from a peer is written as it comes */
    return cost_bytes(transfer_bytes(s, &t->a, t->m, t->n), s->machine->copy.push_rate);
}
