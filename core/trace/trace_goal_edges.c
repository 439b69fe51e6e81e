#include <assert.h>
#include <stdlib.h>

#include "core/trace/trace_goal.h"
#include "core/traffic.h"

/* ---- growing lists ---- */

static struct goal_edge *add_edge(struct goal *g)
{
    if (g->edge_count == g->edge_space) {
        g->edge_space = g->edge_space ? 2 * g->edge_space : 1024;
        g->edges = realloc(g->edges, g->edge_space * sizeof *g->edges);
        assert(g->edges);
    }
    return &g->edges[g->edge_count++];
}

static struct goal_pull *add_pull(struct goal *g)
{
    if (g->pull_count == g->pull_space) {
        g->pull_space = g->pull_space ? 2 * g->pull_space : 1024;
        g->pulls = realloc(g->pulls, g->pull_space * sizeof *g->pulls);
        assert(g->pulls);
    }
    return &g->pulls[g->pull_count++];
}

/* ---- one task ---- */

static void add_signals(struct goal *g, uint32_t node, const struct task *t)
{
    const struct goal_node *n = &g->nodes[node];

    for (uint32_t i = 0; i < t->signal_count; i++) {
        uint32_t first, count = program_target_ranks(g->program, n->rank, t->signals[i].rank, &first);

        for (uint32_t to = first; to < first + count; to++)
            *add_edge(g) = (struct goal_edge){.from = n->rank,
                                              .to = to,
                                              .node = node,
                                              .flag = t->signals[i].flag,
                                              .add = t->signals[i].add,
                                              .end_ps = n->end_ps};
    }
}

struct moving {
    struct goal *goal;
    uint32_t node;
};

/* Bytes go with the first signal to their rank, or by themselves. */
static void add_bytes(void *arg, uint32_t from, uint32_t to, uint64_t bytes)
{
    struct moving *m = arg;
    struct goal *g = m->goal;
    struct goal_node *n = &g->nodes[m->node];

    if (to == n->rank) {
        *add_pull(g) = (struct goal_pull){.owner = from, .node = m->node, .bytes = bytes};
        return;
    }
    for (uint32_t i = n->first_edge; i < g->edge_count; i++)
        if (g->edges[i].to == to) {
            g->edges[i].bytes += bytes;
            return;
        }
    *add_edge(g) = (struct goal_edge){
        .from = from, .to = to, .node = m->node, .flag = NO_FLAG, .bytes = bytes, .end_ps = n->end_ps};
}

static void connect_task(struct goal *g, uint32_t node, const struct task *t)
{
    struct goal_node *n = &g->nodes[node];
    struct moving m = {g, node};

    n->first_edge = g->edge_count;
    n->first_pull = g->pull_count;
    add_signals(g, node, t);
    task_traffic(g->program, n->rank, t, add_bytes, &m);
    n->edge_count = g->edge_count - n->first_edge;
    n->pull_count = g->pull_count - n->first_pull;
}

/* ---- orders ---- */

static const struct goal *sorted; /* what the comparisons look at: qsort() passes nothing on */

static int compare_edges(const void *a, const void *b)
{
    const struct goal_edge *x = &sorted->edges[*(const uint32_t *)a], *y = &sorted->edges[*(const uint32_t *)b];

    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->flag != y->flag)
        return x->flag < y->flag ? -1 : 1;
    if (x->end_ps != y->end_ps)
        return x->end_ps < y->end_ps ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static void sort_edges(struct goal *g)
{
    g->by_flag = malloc((g->edge_count + 1) * sizeof *g->by_flag);
    assert(g->by_flag);
    for (uint32_t i = 0; i < g->edge_count; i++)
        g->by_flag[i] = i;
    sorted = g;
    if (g->edge_count > 0)
        qsort(g->by_flag, g->edge_count, sizeof *g->by_flag, compare_edges);
}

static int compare_nodes(const void *a, const void *b)
{
    const struct goal_node *x = &sorted->nodes[*(const uint32_t *)a], *y = &sorted->nodes[*(const uint32_t *)b];

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->cpu != y->cpu)
        return x->cpu < y->cpu ? -1 : 1;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    return (x->end_ps > y->end_ps) - (x->end_ps < y->end_ps);
}

/* What each worker did one after the other. */
static void chain_workers(struct goal *g)
{
    uint32_t *order = malloc((g->node_count + 1) * sizeof *order);

    assert(order);
    for (uint32_t i = 0; i < g->node_count; i++) {
        order[i] = i;
        g->nodes[i].before = GOAL_NONE;
    }
    sorted = g;
    if (g->node_count > 0)
        qsort(order, g->node_count, sizeof *order, compare_nodes);
    for (uint32_t i = 1; i < g->node_count; i++) {
        const struct goal_node *a = &g->nodes[order[i - 1]], *b = &g->nodes[order[i]];

        if (a->rank == b->rank && a->cpu == b->cpu)
            g->nodes[order[i]].before = order[i - 1];
    }
    free(order);
}

void goal_connect(struct goal *g)
{
    const struct program *p = g->program;

    for (uint32_t rank = 0; rank < world_ranks(p->world); rank++)
        for (uint32_t q = 0; q < p->queue_count; q++)
            for (uint64_t i = 0; i < program_queue_length(p, rank, q); i++) {
                struct task t;

                program_task(p, rank, q, i, &t);
                connect_task(g, g->base[rank * p->queue_count + q] + (uint32_t)i, &t);
            }
    sort_edges(g);
    chain_workers(g);
}
