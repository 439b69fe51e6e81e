#include "backends/ops/route.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/ops/element.h"
#include "core/route.h"

#define NOT_HERE UINT32_MAX

/* All of a control buffer of the rank. */
static int32_t *control(const struct memory *m, uint32_t rank, uint64_t epoch, uint32_t buffer)
{
    const struct buffer *b = &m->program->buffers[buffer];
    struct operand o = {.rank = rank, .buffer = buffer, .ld = b->cols};

    assert(buffer_is_control(b));
    return (int32_t *)(void *)matrix_locate(m, rank, epoch, &o, b->rows, b->cols).base;
}

static void *allocate(uint64_t count, size_t size)
{
    void *p = calloc(count + 1, size);

    assert(p); /* a few bytes per token */
    return p;
}

/* ---- what tasks select ---- */

void tile_select(const struct memory *m, uint32_t rank, uint64_t epoch, struct task *task)
{
    const struct selection *s = &task->select;
    const int32_t *row;

    if (s->mode == SELECT_ALL)
        return;
    assert(s->entry < m->program->buffers[s->buffer].rows);
    row = control(m, rank, epoch, s->buffer) + s->entry * m->program->buffers[s->buffer].cols;
    if (s->mode == SELECT_COUNT) {
        assert(row[0] >= 0); /* poison is negative */
        program_select(task, 0, 0, (uint64_t)row[0]);
        return;
    }
    assert(row[0] >= 0 && row[1] >= 0 && row[2] >= 0);
    program_select(task, (uint64_t)row[0], (uint64_t)row[1], (uint64_t)row[2]);
}

uint64_t tile_index(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task,
                    uint64_t i)
{
    const int32_t *index = control(m, rank, epoch, task->index.buffer);
    uint64_t at = task->index.offset + i * task->index.ld;

    assert(at < buffer_elements(&m->program->buffers[task->index.buffer]));
    assert(index[at] >= 0 && (uint64_t)index[at] < task->k);
    return (uint64_t)index[at];
}

void tile_gather_source(const struct program *p, uint32_t rank, const struct task *task, uint64_t value,
                        struct operand *o_out)
{
    uint64_t rows = p->buffers[task->a.buffer].rows;

    *o_out = task->a;
    if (task->a.rank == RANK_NODE) {
        o_out->rank = world_rank(p->world, world_node(p->world, rank), (uint32_t)(value / rows));
        value %= rows;
    }
    o_out->offset += value * task->a.ld;
}

/* ---- count, scan, place ---- */

struct routing {
    const struct route *route;
    uint32_t            rank, node;
    const int32_t      *table;
    uint32_t           *node_of;  /* by expert */
    uint32_t           *own;      /* by expert: its number on this rank, or NOT_HERE */
    uint64_t            kept_end; /* pairs from this one on (token * top_k + choice) are dropped */
    uint64_t            rows, dropped;
    uint64_t           *begin;    /* by own expert, and one more: first row */
    uint64_t           *entry;    /* the same: first entry */
    uint32_t           *place;    /* by token: where it stands in its slot */
};

static void map_experts(struct routing *x)
{
    const struct route *r = x->route;

    for (uint32_t rank = 0; rank < world_ranks(r->world); rank++)
        for (uint64_t i = 0; i < route_expert_count(r, rank); i++) {
            uint64_t e = route_expert_begin(r, rank) + i;

            x->node_of[e] = world_node(r->world, rank);
            x->own[e] = rank == x->rank ? (uint32_t)i : NOT_HERE;
        }
}

static uint32_t expert_at(const struct routing *x, uint64_t token, uint64_t choice)
{
    int32_t e = x->table[token * x->route->top_k + choice];

    assert(e >= 0 && (uint64_t)e < x->route->experts);
    return (uint32_t)e;
}

static bool goes_to(const struct routing *x, uint64_t token, uint32_t node)
{
    for (uint64_t j = 0; j < x->route->top_k; j++)
        if (x->node_of[expert_at(x, token, j)] == node)
            return true;
    return false;
}

static void place_sends(struct routing *x, int32_t *counts, int32_t *index)
{
    const struct route *r = x->route;
    uint64_t begin = part_begin(r->tokens, world_ranks(r->world), x->rank);
    uint64_t size = part_size(r->tokens, world_ranks(r->world), x->rank);

    for (uint32_t node = 0; node < r->world.nodes; node++) {
        counts[node] = 0;
        for (uint64_t i = 0; node != x->node && i < size; i++)
            if (goes_to(x, begin + i, node))
                index[node * r->slot_rows + (uint64_t)counts[node]++] = (int32_t)i;
    }
}

/* Counts the own experts' pairs and finds every token's place among those that came with it. */
static void count_pairs(struct routing *x)
{
    const struct route *r = x->route;
    uint32_t ranks = world_ranks(r->world);

    x->kept_end = UINT64_MAX;
    for (uint32_t from = 0; from < ranks; from++) {
        uint64_t begin = part_begin(r->tokens, ranks, from), size = part_size(r->tokens, ranks, from);
        bool here = world_node(r->world, from) == x->node;
        uint32_t sent = 0;

        for (uint64_t t = begin; t < begin + size; t++) {
            bool comes = false;

            for (uint64_t j = 0; j < r->top_k; j++) {
                uint32_t e = expert_at(x, t, j);

                comes |= x->node_of[e] == x->node;
                if (x->own[e] == NOT_HERE)
                    continue;
                if (x->rows == r->capacity && x->dropped++ == 0)
                    x->kept_end = t * r->top_k + j;
                if (x->dropped > 0)
                    continue;
                x->rows++;
                x->begin[x->own[e] + 1]++;
            }
            x->place[t] = here ? (uint32_t)(t - begin) : sent;
            sent += comes;
        }
    }
}

static void scan(struct routing *x)
{
    uint64_t experts = route_expert_count(x->route, x->rank);

    for (uint64_t e = 0; e < experts; e++) {
        x->entry[e + 1] = x->entry[e] + ceil_div(x->begin[e + 1], x->route->tile_rows);
        x->begin[e + 1] += x->begin[e];
    }
}

struct placing {
    uint64_t *next;   /* by own expert: rows placed */
    uint64_t *ready;  /* by entry: when its last row can be there, in steps of the walk */
    int32_t  *index;
};

static void place_token(struct routing *x, struct placing *p, uint32_t from, uint64_t token, uint64_t step)
{
    const struct route *r = x->route;
    uint64_t slot = world_node(r->world, from) * r->slot_rows;
    uint64_t stack = world_gpu(r->world, from) * r->world.nodes * r->slot_rows;

    for (uint64_t j = 0; j < r->top_k && token * r->top_k + j < x->kept_end; j++) {
        uint32_t e = x->own[expert_at(x, token, j)];

        if (e == NOT_HERE)
            continue;
        p->index[x->begin[e] + p->next[e]] = (int32_t)(stack + slot + x->place[token]);
        p->ready[x->entry[e] + p->next[e] / r->tile_rows] = step;
        p->next[e]++;
    }
}

static void place_pairs(struct routing *x, struct placing *p)
{
    const struct route *r = x->route;
    uint32_t ranks = world_ranks(r->world);
    uint64_t shard = ceil_div(r->tokens, ranks);

    for (uint32_t back = 0; back < r->world.nodes; back++) {
        uint32_t node = (x->node + r->world.nodes - back) % r->world.nodes;

        for (uint64_t i = 0; i < shard; i++)
            for (uint32_t gpu = 0; gpu < r->world.gpus_per_node; gpu++) {
                uint32_t from = world_rank(r->world, node, gpu);

                if (i < part_size(r->tokens, ranks, from))
                    place_token(x, p, from, part_begin(r->tokens, ranks, from) + i,
                                back == 0 ? 0 : back * shard + i);
            }
    }
}

struct listed {
    uint64_t ready, group, first, rows;
};

static int by_readiness(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;

    if (x->ready != y->ready)
        return x->ready < y->ready ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

/* The own share of the axiom that the verifier relies on. */
static void assert_partition(const struct routing *x, const struct listed *list, uint64_t count)
{
    uint8_t *seen = allocate(x->rows, 1);
    uint64_t rows = 0;

    for (uint64_t i = 0; i < count; i++) {
        assert(list[i].first >= x->begin[list[i].group] && list[i].rows > 0 &&
               list[i].first + list[i].rows <= x->begin[list[i].group + 1]);
        for (uint64_t row = list[i].first; row < list[i].first + list[i].rows; row++, rows++)
            assert(!seen[row]++);
    }
    assert(rows == x->rows);
    free(seen);
}

static void write_list(const struct routing *x, const struct placing *p, uint64_t room, int32_t *out)
{
    const struct route *r = x->route;
    uint64_t experts = route_expert_count(r, x->rank), count = x->entry[experts];
    struct listed *list = allocate(count, sizeof *list);

    assert(count <= room);
    for (uint64_t e = 0; e < experts; e++)
        for (uint64_t i = x->entry[e]; i < x->entry[e + 1]; i++) {
            uint64_t first = x->begin[e] + (i - x->entry[e]) * r->tile_rows;

            list[i] = (struct listed){p->ready[i], e, first,
                                      min_u64(r->tile_rows, x->begin[e + 1] - first)};
        }
    qsort(list, count, sizeof *list, by_readiness);
    assert_partition(x, list, count);
    for (uint64_t i = 0; i < room; i++) {
        out[3 * i] = i < count ? (int32_t)list[i].group : 0;
        out[3 * i + 1] = i < count ? (int32_t)list[i].first : 0;
        out[3 * i + 2] = i < count ? (int32_t)list[i].rows : 0;
    }
    free(list);
}

static void receive(struct routing *x, const struct memory *m, uint64_t epoch)
{
    const struct route *r = x->route;
    uint64_t experts = route_expert_count(r, x->rank), room = m->program->buffers[r->list].rows;
    struct placing p = {.index = control(m, x->rank, epoch, r->index)};

    x->begin = allocate(experts + 1, sizeof *x->begin);
    x->entry = allocate(experts + 1, sizeof *x->entry);
    x->place = allocate(r->tokens, sizeof *x->place);
    count_pairs(x);
    scan(x);
    p.next = allocate(experts, sizeof *p.next);
    p.ready = allocate(x->entry[experts], sizeof *p.ready);
    place_pairs(x, &p);
    for (uint64_t e = 0; e < experts; e++)
        assert(p.next[e] == x->begin[e + 1] - x->begin[e]);
    write_list(x, &p, room, control(m, x->rank, epoch, r->list));
    free(p.next);
    free(p.ready);
    free(x->begin);
    free(x->entry);
    free(x->place);
}

uint64_t tile_route(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task)
{
    const struct route *r = task->route;
    struct routing x = {.route = r, .rank = rank, .node = world_node(r->world, rank)};

    x.table = control(m, rank, epoch, r->table);
    x.node_of = allocate(r->experts, sizeof *x.node_of);
    x.own = allocate(r->experts, sizeof *x.own);
    map_experts(&x);
    if (r->kind == ROUTE_SEND)
        place_sends(&x, control(m, rank, epoch, r->counts), control(m, rank, epoch, r->index));
    else
        receive(&x, m, epoch);
    free(x.node_of);
    free(x.own);
    return x.dropped;
}

void tile_route_refusal(const struct task *task, uint32_t rank, uint64_t epoch, uint64_t dropped,
                        char *out, size_t out_bytes)
{
    snprintf(out, out_bytes,
             "rank %" PRIu32 ", epoch %" PRIu64 ": %" PRIu64 " more rows are routed to its experts than the "
             "%" PRIu64 " that it has room for: raise the capacity, or choose to drop them",
             rank, epoch, dropped, task->route->capacity);
}
