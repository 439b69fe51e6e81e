#include "backends/ops/route.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/ops/element.h"
#include "core/route.h"

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

bool tile_index(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task, uint64_t i, uint64_t j,
                uint64_t *value_out)
{
    const int32_t *index = control(m, rank, epoch, task->index.buffer);
    uint64_t at = task->index.offset + i * task->index.ld + j;

    assert(at < buffer_elements(&m->program->buffers[task->index.buffer]));
    if (task->op == OP_COMBINE_ROWS && index[at] == INDEX_DROPPED)
        return false;
    assert(index[at] >= 0 && (uint64_t)index[at] < task->index_limit);
    *value_out = (uint64_t)index[at];
    return true;
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

/* Of one rank that is followed. */
struct share {
    uint64_t kept_end; /* pairs from this one on (token * top_k + choice) are dropped */
    uint64_t rows, dropped;
};

/* A receiving route follows the own rank's pairs, or, where it says what goes back, those of its whole node: rows
 * and entries are first numbered through all ranks that it follows. */
struct routing {
    const struct route *route;
    uint32_t rank, node;
    const int32_t *table;
    uint32_t *holder;  /* by expert: its rank */
    uint32_t *node_of; /* by expert */

    uint32_t first_rank, rank_count;     /* that are followed */
    uint64_t first_expert, expert_count; /* theirs */
    struct share *shares;                /* by rank */
    uint64_t *begin;                     /* by expert, and one more: first row */
    uint64_t *entry;                     /* the same: first entry */
    uint32_t *place;                     /* by token: where it stands in its slot */
};

static void map_experts(struct routing *x)
{
    const struct route *r = x->route;

    for (uint32_t rank = 0; rank < world_ranks(r->world); rank++)
        for (uint64_t i = 0; i < route_expert_count(r, rank); i++) {
            uint64_t e = route_expert_begin(r, rank) + i;

            x->holder[e] = rank;
            x->node_of[e] = world_node(r->world, rank);
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

/* `back`: NULL, or where the sums of each token come back. */
static void place_sends(struct routing *x, int32_t *counts, int32_t *index, int32_t *back)
{
    const struct route *r = x->route;
    uint64_t begin = part_begin(r->tokens, world_ranks(r->world), x->rank);
    uint64_t size = part_size(r->tokens, world_ranks(r->world), x->rank);

    for (uint32_t node = 0; node < r->world.nodes; node++) {
        counts[node] = 0;
        for (uint64_t i = 0; i < size; i++) {
            bool goes = (node != x->node || back) && goes_to(x, begin + i, node);
            uint64_t row = node * r->slot_rows + (node == x->node ? i : (uint64_t)counts[node]);

            if (back)
                back[i * r->world.nodes + node] = goes ? (int32_t)row : INDEX_DROPPED;
            if (goes && node != x->node)
                index[row] = (int32_t)i, counts[node]++;
        }
    }
}

static bool is_followed(const struct routing *x, uint32_t expert)
{
    return x->holder[expert] - x->first_rank < x->rank_count;
}

static void count_pair(struct routing *x, uint32_t expert, uint64_t pair)
{
    struct share *s = &x->shares[x->holder[expert] - x->first_rank];

    if (s->rows == x->route->capacity && s->dropped++ == 0)
        s->kept_end = pair;
    if (s->dropped > 0)
        return;
    s->rows++;
    x->begin[expert - x->first_expert + 1]++;
}

/* Counts the pairs of experts that are followed and finds every token's place among those that came with it.
 * `counts`: NULL, or how many came from each node on the own rail. */
static void count_pairs(struct routing *x, int32_t *counts)
{
    const struct route *r = x->route;
    uint32_t ranks = world_ranks(r->world);

    for (uint32_t from = 0; from < ranks; from++) {
        uint64_t begin = part_begin(r->tokens, ranks, from), size = part_size(r->tokens, ranks, from);
        bool here = world_node(r->world, from) == x->node;
        uint32_t sent = 0;

        for (uint64_t t = begin; t < begin + size; t++) {
            bool comes = false;

            for (uint64_t j = 0; j < r->top_k; j++) {
                uint32_t e = expert_at(x, t, j);

                comes |= x->node_of[e] == x->node;
                if (is_followed(x, e))
                    count_pair(x, e, t * r->top_k + j);
            }
            x->place[t] = here ? (uint32_t)(t - begin) : sent;
            sent += comes;
        }
        if (counts && world_gpu(r->world, from) == world_gpu(r->world, x->rank))
            counts[world_node(r->world, from)] = here ? (int32_t)size : (int32_t)sent;
    }
}

static void scan(struct routing *x)
{
    for (uint64_t e = 0; e < x->expert_count; e++) {
        x->entry[e + 1] = x->entry[e] + ceil_div(x->begin[e + 1], x->route->tile_rows);
        x->begin[e + 1] += x->begin[e];
    }
}

struct placing {
    uint64_t *next;  /* by expert: rows placed */
    uint64_t *ready; /* by entry: when its last row can be there, in steps of the walk */
    int32_t *value;  /* by row: the index value */
    int32_t *row_at; /* by row: where it stands among the stacked copies, or in the own index list */
    int32_t *back;   /* the route's, at first with rows in the place of what row_at will say; or NULL */
};

static void place_token(struct routing *x, struct placing *p, uint32_t from, uint64_t token, uint64_t step)
{
    const struct route *r = x->route;
    uint64_t held = world_node(r->world, from) * r->slot_rows + x->place[token];
    uint64_t stack = world_gpu(r->world, from) * r->world.nodes * r->slot_rows;
    bool goes_back = p->back && world_gpu(r->world, from) == world_gpu(r->world, x->rank);

    for (uint64_t j = 0; j < r->top_k; j++) {
        uint32_t expert = expert_at(x, token, j);
        uint64_t e = expert - x->first_expert, row;

        if (!is_followed(x, expert) || token * r->top_k + j >= x->shares[x->holder[expert] - x->first_rank].kept_end)
            continue;
        row = x->begin[e] + p->next[e];
        p->value[row] = (int32_t)(stack + held);
        p->ready[x->entry[e] + p->next[e]++ / r->tile_rows] = step;
        if (goes_back)
            p->back[held * r->top_k + j] = (int32_t)row;
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
                    place_token(x, p, from, part_begin(r->tokens, ranks, from) + i, back == 0 ? 0 : back * shard + i);
            }
    }
    for (uint64_t e = 0; e < x->expert_count; e++)
        assert(p->next[e] == x->begin[e + 1] - x->begin[e]);
}

/* ---- the work lists of the ranks that are followed ---- */

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

/* One rank's share of the axiom that the verifier relies on. */
static void assert_partition(const struct routing *x, const struct listed *list, uint64_t count, uint64_t first_row,
                             uint64_t rows)
{
    uint8_t *seen = allocate(rows, 1);
    uint64_t found = 0;

    for (uint64_t i = 0; i < count; i++) {
        assert(list[i].rows > 0 && list[i].rows <= x->route->tile_rows);
        for (uint64_t row = list[i].first; row < list[i].first + list[i].rows; row++, found++)
            assert(row - first_row < rows && !seen[row - first_row]++);
    }
    assert(found == rows);
    free(seen);
}

/* Returns how many entries there are. */
static uint64_t sort_entries(const struct routing *x, const struct placing *p, uint32_t rank, struct listed *list)
{
    uint64_t begin = route_expert_begin(x->route, rank) - x->first_expert;
    uint64_t end = begin + route_expert_count(x->route, rank), count = 0;

    for (uint64_t e = begin; e < end; e++)
        for (uint64_t i = x->entry[e]; i < x->entry[e + 1]; i++) {
            uint64_t first = x->begin[e] + (i - x->entry[e]) * x->route->tile_rows;

            list[count++] =
                (struct listed){p->ready[i], e - begin, first, min_u64(x->route->tile_rows, x->begin[e + 1] - first)};
        }
    qsort(list, count, sizeof *list, by_readiness);
    assert_partition(x, list, count, x->begin[begin], x->begin[end] - x->begin[begin]);
    return count;
}

/* Where an entry's rows stand on their rank; `rank_row` is the rank's first one. */
static uint64_t entry_row(const struct routing *x, const struct listed *entry, uint64_t i, uint64_t rank_row)
{
    return x->route->aligned ? i * x->route->tile_rows : entry->first - rank_row;
}

static void write_list(const struct routing *x, const struct listed *list, uint64_t count, uint64_t rank_row,
                       uint64_t room, int32_t *out)
{
    assert(count <= room);
    for (uint64_t i = 0; i < room; i++) {
        out[3 * i] = i < count ? (int32_t)list[i].group : 0;
        out[3 * i + 1] = i < count ? (int32_t)entry_row(x, &list[i], i, rank_row) : 0;
        out[3 * i + 2] = i < count ? (int32_t)list[i].rows : 0;
    }
}

/* The rank's entries in order, and with them where its rows stand; `index` and `out` for the own rank. */
static void list_rank(const struct routing *x, struct placing *p, uint32_t rank, uint64_t room, int32_t *index,
                      int32_t *out)
{
    const struct route *r = x->route;
    uint64_t begin = route_expert_begin(r, rank) - x->first_expert, rank_row = x->begin[begin];
    uint64_t stack = (rank - x->first_rank) * route_rows_max(r);
    struct listed *list = allocate(x->entry[x->expert_count], sizeof *list);
    uint64_t count = sort_entries(x, p, rank, list);

    for (uint64_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < list[i].rows; k++) {
            uint64_t row = list[i].first + k, at = entry_row(x, &list[i], i, rank_row) + k;

            p->row_at[row] = (int32_t)(stack + at);
            if (rank == x->rank)
                index[at] = p->value[row];
        }
    if (rank == x->rank)
        write_list(x, list, count, rank_row, room, out);
    free(list);
}

static void send_back(const struct routing *x, const struct placing *p)
{
    uint64_t pairs = x->route->world.nodes * x->route->slot_rows * x->route->top_k;

    for (uint64_t i = 0; i < pairs; i++)
        if (p->back[i] != INDEX_DROPPED)
            p->back[i] = p->row_at[p->back[i]];
}

/* In place of the stacked rows that the own index list names, their places in the list of pulls. */
static void list_pulls(const struct routing *x, const struct memory *m, uint64_t epoch)
{
    const struct route *r = x->route;
    const int32_t *list = control(m, x->rank, epoch, r->list);
    int32_t *index = control(m, x->rank, epoch, r->index), *pulls = control(m, x->rank, epoch, r->pulls);
    uint64_t entries = m->program->buffers[r->list].rows,
             stack = r->world.gpus_per_node * r->world.nodes * r->slot_rows;
    int32_t *numbers = allocate(stack, sizeof *numbers); /* by stacked row: of the pull, from 1 on */
    int32_t count = 0;

    for (uint64_t i = 0; i < entries; i++)
        for (int32_t at = list[3 * i + 1]; at < list[3 * i + 1] + list[3 * i + 2]; at++) {
            int32_t *number = &numbers[index[at]];

            if (*number == 0) {
                assert((uint64_t)count < route_pulls_max(r));
                pulls[count++] = index[at];
                *number = count;
            }
            index[at] = *number - 1;
        }
    *control(m, x->rank, epoch, r->pull_count) = count;
    free(numbers);
}

static void place_all(struct routing *x, const struct memory *m, uint64_t epoch, int32_t *back)
{
    const struct route *r = x->route;
    uint64_t rows = x->begin[x->expert_count];
    struct placing p = {.back = back};

    p.next = allocate(x->expert_count, sizeof *p.next);
    p.ready = allocate(x->entry[x->expert_count], sizeof *p.ready);
    p.value = allocate(rows, sizeof *p.value);
    p.row_at = allocate(rows, sizeof *p.row_at);
    place_pairs(x, &p);
    for (uint32_t rank = x->first_rank; rank < x->first_rank + x->rank_count; rank++)
        list_rank(x, &p, rank, m->program->buffers[r->list].rows, control(m, x->rank, epoch, r->index),
                  control(m, x->rank, epoch, r->list));
    if (back)
        send_back(x, &p);
    if (r->pulls != NO_BUFFER)
        list_pulls(x, m, epoch);
    free(p.next);
    free(p.ready);
    free(p.value);
    free(p.row_at);
}

/* Whom it follows, and room for what it finds out about them. */
static void follow(struct routing *x)
{
    const struct route *r = x->route;
    bool node = r->back != NO_BUFFER;

    assert(!node || r->aligned);
    x->first_rank = node ? world_rank(r->world, x->node, 0) : x->rank;
    x->rank_count = node ? r->world.gpus_per_node : 1;
    x->first_expert = route_expert_begin(r, x->first_rank);
    x->expert_count = route_expert_begin(r, x->first_rank + x->rank_count) - x->first_expert;
    x->shares = allocate(x->rank_count, sizeof *x->shares);
    x->begin = allocate(x->expert_count + 1, sizeof *x->begin);
    x->entry = allocate(x->expert_count + 1, sizeof *x->entry);
    x->place = allocate(r->tokens, sizeof *x->place);
    for (uint32_t i = 0; i < x->rank_count; i++)
        x->shares[i].kept_end = UINT64_MAX;
}

/* Returns how many of the own pairs it dropped. */
static uint64_t receive(struct routing *x, const struct memory *m, uint64_t epoch)
{
    const struct route *r = x->route;
    bool returns = r->back != NO_BUFFER;
    int32_t *back = returns ? control(m, x->rank, epoch, r->back) : NULL;
    uint64_t dropped;

    for (uint64_t i = 0; returns && i < r->world.nodes * r->slot_rows * r->top_k; i++)
        back[i] = INDEX_DROPPED;
    follow(x);
    count_pairs(x, returns ? control(m, x->rank, epoch, r->counts) : NULL);
    scan(x);
    place_all(x, m, epoch, back);
    dropped = x->shares[x->rank - x->first_rank].dropped;
    free(x->shares);
    free(x->begin);
    free(x->entry);
    free(x->place);
    return dropped;
}

uint64_t tile_route(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task)
{
    const struct route *r = task->route;
    struct routing x = {.route = r, .rank = rank, .node = world_node(r->world, rank)};
    uint64_t dropped = 0;

    x.table = control(m, rank, epoch, r->table);
    x.holder = allocate(r->experts, sizeof *x.holder);
    x.node_of = allocate(r->experts, sizeof *x.node_of);
    map_experts(&x);
    if (r->kind == ROUTE_SEND)
        place_sends(&x, control(m, rank, epoch, r->counts), control(m, rank, epoch, r->index),
                    r->back != NO_BUFFER ? control(m, rank, epoch, r->back) : NULL);
    else
        dropped = receive(&x, m, epoch);
    free(x.holder);
    free(x.node_of);
    return dropped;
}

void tile_route_refusal(const struct task *task, uint32_t rank, uint64_t epoch, uint64_t dropped, char *out,
                        size_t out_bytes)
{
    snprintf(out, out_bytes,
             "rank %" PRIu32 ", epoch %" PRIu64 ": %" PRIu64 " more rows are routed to its experts than the "
             "%" PRIu64 " that it has room for: raise the capacity, or choose to drop them",
             rank, epoch, dropped, task->route->capacity);
}
