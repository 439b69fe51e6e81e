/* Which row of an expanded exchange goes where, found out by the host. */
#include "backends/cuda/baseline.h"

#include <stdlib.h>
#include <string.h>

#include "backends/ops/route.h"
#include "core/kernel.h"
#include "core/route.h"

static uint64_t items(uint64_t count)
{
    return count + 1; /* memory for none is memory, too */
}

static enum status allocate(struct baseline_rig *b)
{
    struct baseline_routing *x = &b->experts.routing;
    const struct moe_problem *s = &b->job.problem->moe;
    uint64_t ranks = b->ranks;

    if (x->table)
        return ST_OK;
    x->table = malloc(items(s->tokens * s->top_k) * sizeof *x->table);
    x->send_index = malloc(items(ranks * b->experts.outgoing) * sizeof *x->send_index);
    x->row_index = malloc(items(ranks * b->experts.capacity) * sizeof *x->row_index);
    x->back_index = malloc(items(ranks * b->experts.capacity) * sizeof *x->back_index);
    x->sum_index = malloc(items(ranks * b->experts.shard * s->top_k) * sizeof *x->sum_index);
    x->expert_rows = malloc(items(s->experts) * sizeof *x->expert_rows);
    x->next_row = malloc(items(s->experts) * sizeof *x->next_row);
    if (x->table && x->send_index && x->row_index && x->back_index && x->sum_index && x->expert_rows && x->next_row)
        return ST_OK;
    return rig_fail(&b->rig, ST_MEMORY, "cuda: no memory for the routing of %llu tokens",
                    (unsigned long long)s->tokens);
}

void baseline_routing_free(struct baseline_routing *x)
{
    free(x->table);
    free(x->send_index);
    free(x->row_index);
    free(x->back_index);
    free(x->sum_index);
    free(x->expert_rows);
    free(x->next_row);
}

static uint32_t owner_of(const struct baseline_rig *b, int32_t expert)
{
    return part_of(b->job.problem->moe.experts, b->ranks, (uint64_t)expert);
}

/* In the order in which there is room; what there is none for is taken out of the table. */
static void count(struct baseline_rig *b)
{
    struct baseline_routing *x = &b->experts.routing;
    const struct moe_problem *s = &b->job.problem->moe;

    memset(x->expert_rows, 0, s->experts * sizeof *x->expert_rows);
    memset(x->sent, 0, sizeof x->sent);
    memset(x->kept, 0, sizeof x->kept);
    memset(x->dropped, 0, sizeof x->dropped);
    for (uint64_t i = 0; i < s->tokens * s->top_k; i++) {
        uint32_t from = part_of(s->tokens, b->ranks, i / s->top_k), to = owner_of(b, x->table[i]);

        if (x->kept[to] == b->experts.capacity) {
            x->dropped[to]++;
            x->table[i] = INDEX_DROPPED;
            continue;
        }
        x->kept[to]++;
        x->expert_rows[x->table[i]]++;
        x->sent[from * b->ranks + to] += from != to;
    }
}

/* Where the rows of each expert, and what travels between two ranks, begin. */
struct places {
    uint64_t out[NCCL_RANKS_MAX * NCCL_RANKS_MAX]; /* from, to: the next row of the outbox */
    uint64_t in[NCCL_RANKS_MAX * NCCL_RANKS_MAX];  /* from, to: the next row of `tokens` */
};

static void find_places(struct baseline_rig *b, struct places *p)
{
    struct baseline_routing *x = &b->experts.routing;
    uint64_t experts = b->job.problem->moe.experts, out = 0, in = 0, row = 0;
    uint32_t ranks = b->ranks;

    for (uint32_t here = 0; here < ranks; here++) {
        out = 0;
        in = b->experts.shard;
        row = 0;
        for (uint32_t other = 0; other < ranks; other++) {
            p->out[here * ranks + other] = out;
            p->in[other * ranks + here] = in;
            out += x->sent[here * ranks + other];
            in += x->sent[other * ranks + here];
        }
        for (uint64_t e = part_begin(experts, ranks, here); e < part_begin(experts, ranks, here + 1); e++) {
            x->next_row[e] = row;
            row += x->expert_rows[e];
        }
    }
}

/* The token at `place` of a rank's shard, for an expert.  Returns where its result will be. */
static int32_t place_pair(struct baseline_rig *b, struct places *p, uint32_t from, uint64_t place, int32_t expert)
{
    struct baseline_routing *x = &b->experts.routing;
    uint32_t to = owner_of(b, expert), pair = from * b->ranks + to;
    uint64_t row = x->next_row[expert]++, out, in;

    if (from == to) {
        x->row_index[to * b->experts.capacity + row] = (int32_t)place;
        return (int32_t)row;
    }
    out = p->out[pair]++;
    in = p->in[pair]++;
    x->send_index[from * b->experts.outgoing + out] = (int32_t)place;
    x->row_index[to * b->experts.capacity + row] = (int32_t)in;
    x->back_index[to * b->experts.capacity + in - b->experts.shard] = (int32_t)row;
    return (int32_t)(b->experts.capacity + out);
}

/* Within an expert by place in the shard, then by rank, as ROUTE_RECEIVE has them. */
static void place_all(struct baseline_rig *b, struct places *p)
{
    const struct moe_problem *s = &b->job.problem->moe;

    for (uint64_t place = 0; place < b->experts.shard; place++)
        for (uint32_t from = 0; from < b->ranks; from++) {
            const int32_t *choices =
                b->experts.routing.table + (part_begin(s->tokens, b->ranks, from) + place) * s->top_k;
            int32_t *sums = b->experts.routing.sum_index + (from * b->experts.shard + place) * s->top_k;

            for (uint64_t j = 0; j < s->top_k && place < part_size(s->tokens, b->ranks, from); j++)
                sums[j] = choices[j] == INDEX_DROPPED ? INDEX_DROPPED : place_pair(b, p, from, place, choices[j]);
        }
}

static enum status check_room(struct baseline_rig *b, uint64_t epoch)
{
    const struct baseline_routing *x = &b->experts.routing;
    struct route route = {.capacity = b->experts.capacity};
    struct task task = {.route = &route};

    for (uint32_t i = 0; i < b->ranks && b->job.problem->moe.overflow == MOE_OVERFLOW_ERROR; i++)
        if (x->dropped[i] > 0) {
            tile_route_refusal(&task, i, epoch, x->dropped[i], b->rig.why, sizeof b->rig.why);
            return ST_INPUT;
        }
    return ST_OK;
}

enum status baseline_route(struct baseline_rig *b, uint64_t epoch)
{
    struct baseline_routing *x = &b->experts.routing;
    const struct moe_problem *s = &b->job.problem->moe;
    struct places places = {0};

    if (b->experts.capacity + max_u64(b->experts.shard, b->experts.outgoing) > INT32_MAX)
        return rig_fail(&b->rig, ST_INPUT, "cuda: rows of %llu tokens do not fit 32-bit index lists",
                        (unsigned long long)s->tokens);
    TRY(allocate(b));
    b->job.kernel->control(b->job.problem, b->job.seed, epoch, 0, s->tokens, x->table);
    count(b);
    TRY(check_room(b, epoch));
    memset(x->send_index, 0, b->ranks * b->experts.outgoing * sizeof *x->send_index);
    memset(x->row_index, 0, b->ranks * b->experts.capacity * sizeof *x->row_index);
    memset(x->back_index, 0, b->ranks * b->experts.capacity * sizeof *x->back_index);
    memset(x->sum_index, 0, b->ranks * b->experts.shard * s->top_k * sizeof *x->sum_index);
    find_places(b, &places);
    place_all(b, &places);
    return ST_OK;
}
