#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/build.h"
#include "core/trace/trace_goal.h"

#define FLAG_BYTES 8 /* of a message that carries a signal alone */
#define PS_PER_NS 1000

enum { NIC_NETWORK, NIC_NVLINK };

static void put(struct goal *g, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct goal *g, const char *format, ...)
{
    char line[256];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    trace_file_text(&g->file, line);
}

static uint32_t nic_of(const struct goal *g, uint32_t a, uint32_t b)
{
    return world_same_node(g->program->world, a, b) ? NIC_NVLINK : NIC_NETWORK;
}

static uint64_t message_bytes(const struct goal_edge *e)
{
    return e->bytes > 0 ? e->bytes : FLAG_BYTES;
}

/* ---- dependencies ---- */

/* What must be over before the signal counts: the message at its receiver; at home the calc, of a put its
 * message, since a put's signal to its own rank says that it is complete. */
static void put_signaller(struct goal *g, uint32_t edge)
{
    const struct goal_edge *e = &g->edges[edge];
    const struct goal_node *n = &g->nodes[e->node];

    if (e->to != e->from) {
        put(g, "r%" PRIu32 "\n", edge);
        return;
    }
    for (uint32_t i = n->first_edge; i < n->first_edge + n->edge_count; i++)
        if (!world_same_node(g->program->world, g->edges[i].to, e->from)) {
            put(g, "s%" PRIu32 "\n", i);
            return;
        }
    put(g, "c%" PRIu32 "\n", e->node);
}

/* The first of the flag's edges in by_flag. */
static uint32_t find_flag(const struct goal *g, uint32_t rank, uint32_t flag)
{
    uint32_t low = 0, high = g->edge_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct goal_edge *e = &g->edges[g->by_flag[middle]];

        if (e->to < rank || (e->to == rank && e->flag < flag))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The signals that came first in the run, as many as the wait wants; none that came after its task. */
static void put_flag(struct goal *g, uint32_t node, char kind, uint32_t flag, uint64_t value)
{
    const struct goal_node *n = &g->nodes[node];
    uint64_t sum = 0;

    for (uint32_t i = find_flag(g, n->rank, flag); i < g->edge_count && sum < value; i++) {
        const struct goal_edge *e = &g->edges[g->by_flag[i]];

        if (e->to != n->rank || e->flag != flag || e->end_ps > n->end_ps)
            return;
        if (e->node == node)
            continue;
        sum += e->add;
        put(g, "%c%" PRIu32 " requires ", kind, kind == 'c' ? node : n->first_pull);
        put_signaller(g, g->by_flag[i]);
    }
}

/* Waits on an epoch before have long been met. */
static void put_wait(struct goal *g, uint32_t node, char kind, const struct wait *w)
{
    uint32_t rank = g->nodes[node].rank;

    for (uint32_t i = 0; w->lag == 0 && i < w->count; i++)
        put_flag(g, node, kind, w->flag + i,
                 w->value == FLAG_TOTAL ? program_flag_total(g->program, rank, w->flag + i) : w->value);
}

static void put_waits(struct goal *g, uint32_t node, char kind, const struct task *t)
{
    struct wait indexed = {.flag = t->indexed.first, .count = t->indexed.count, .value = FLAG_TOTAL};

    for (uint32_t i = 0; i < t->wait_count; i++)
        put_wait(g, node, kind, &t->waits[i]);
    put_wait(g, node, kind, &indexed);
    for (uint32_t step = 0; op_walks(t->op) && step < program_step_count(t); step++) {
        struct segment s;
        struct operand a, b;

        program_step(g->program, g->nodes[node].rank, t, step, &s, &a, &b);
        put_wait(g, node, kind, &s.wait);
    }
}

/* ---- operations ---- */

/* A task that moves bytes between ranks as its work takes its fixed cost: the bytes are messages. */
static uint64_t calc_ns(const struct goal *g, const struct goal_node *n, const struct task *t)
{
    bool moves = t->op == OP_COPY || t->op == OP_REDUCE || t->op == OP_GATHER_ROWS, remote = n->pull_count > 0;
    uint64_t busy_ps = n->end_ps - n->begin_ps;

    for (uint32_t i = n->first_edge; i < n->first_edge + n->edge_count; i++)
        remote |= g->edges[i].bytes > 0;
    busy_ps -= min_u64(n->waited_ps, busy_ps);
    if (moves && remote)
        busy_ps = min_u64(busy_ps, g->machine->copy.pipelined_ps);
    return busy_ps / PS_PER_NS;
}

static void put_sends(struct goal *g, uint32_t node, const struct task *t)
{
    const struct goal_node *n = &g->nodes[node];

    for (uint32_t i = n->first_edge; i < n->first_edge + n->edge_count; i++) {
        const struct goal_edge *e = &g->edges[i];

        if (e->to == e->from)
            continue;
        put(g, "s%" PRIu32 ": send %" PRIu64 "b to %" PRIu32 " tag %" PRIu32 " cpu %" PRIu32 " nic %" PRIu32 "\n", i,
            message_bytes(e), e->to, i, t->op == OP_PUT ? g->cpus : n->cpu, nic_of(g, e->from, e->to));
        put(g, "s%" PRIu32 " requires c%" PRIu32 "\n", i, node);
    }
}

/* Requests come after the task's waits (put_dependencies), replies before its calc. */
static void put_pulls(struct goal *g, uint32_t node)
{
    const struct goal_node *n = &g->nodes[node];

    for (uint32_t i = n->first_pull; i < n->first_pull + n->pull_count; i++) {
        const struct goal_pull *p = &g->pulls[i];
        uint32_t tag = g->edge_count + 2 * i, nic = nic_of(g, n->rank, p->owner);

        put(g, "q%" PRIu32 ": send %db to %" PRIu32 " tag %" PRIu32 " cpu %" PRIu32 " nic %" PRIu32 "\n", i, FLAG_BYTES,
            p->owner, tag, n->cpu, nic);
        put(g, "p%" PRIu32 ": recv %" PRIu64 "b from %" PRIu32 " tag %" PRIu32 " cpu %" PRIu32 " nic %" PRIu32 "\n", i,
            p->bytes, p->owner, tag + 1, g->cpus, nic);
        put(g, "c%" PRIu32 " requires p%" PRIu32 "\n", node, i);
        if (i > n->first_pull)
            put(g, "q%" PRIu32 " requires q%" PRIu32 "\n", i, n->first_pull);
    }
}

static void put_node(struct goal *g, uint32_t node, const struct task *t)
{
    const struct goal_node *n = &g->nodes[node];

    put(g, "c%" PRIu32 ": calc %" PRIu64 " cpu %" PRIu32 "\n", node, calc_ns(g, n, t), n->cpu);
    put_pulls(g, node);
    put_sends(g, node, t);
}

static void put_receives(struct goal *g, uint32_t rank)
{
    for (uint32_t i = find_flag(g, rank, 0); i < g->edge_count; i++) {
        uint32_t edge = g->by_flag[i];
        const struct goal_edge *e = &g->edges[edge];

        if (e->to != rank)
            return;
        if (e->from != rank)
            put(g, "r%" PRIu32 ": recv %" PRIu64 "b from %" PRIu32 " tag %" PRIu32 " cpu %" PRIu32 " nic %" PRIu32 "\n",
                edge, message_bytes(e), e->from, edge, g->cpus, nic_of(g, e->from, rank));
    }
}

/* What others read from this rank. */
static void put_replies(struct goal *g, uint32_t rank)
{
    for (uint32_t i = 0; i < g->pull_count; i++) {
        const struct goal_pull *p = &g->pulls[i];
        uint32_t reader = g->nodes[p->node].rank, tag = g->edge_count + 2 * i, nic = nic_of(g, reader, rank);

        if (p->owner != rank)
            continue;
        put(g, "i%" PRIu32 ": recv %db from %" PRIu32 " tag %" PRIu32 " cpu %" PRIu32 " nic %" PRIu32 "\n", i,
            FLAG_BYTES, reader, tag, g->cpus, nic);
        put(g, "o%" PRIu32 ": send %" PRIu64 "b to %" PRIu32 " tag %" PRIu32 " cpu %" PRIu32 " nic %" PRIu32 "\n", i,
            p->bytes, reader, tag + 1, g->cpus, nic);
        put(g, "o%" PRIu32 " requires i%" PRIu32 "\n", i, i);
    }
}

/* ---- ranks ---- */

typedef void node_fn(struct goal *g, uint32_t node, const struct task *t);

static void each_node(struct goal *g, uint32_t rank, node_fn *fn)
{
    const struct program *p = g->program;

    for (uint32_t q = 0; q < p->queue_count; q++)
        for (uint64_t i = 0; i < program_queue_length(p, rank, q); i++) {
            struct task t;

            program_task(p, rank, q, i, &t);
            fn(g, g->base[rank * p->queue_count + q] + (uint32_t)i, &t);
        }
}

/* Labels are known by now: the format wants them defined before they are required. */
static void put_dependencies(struct goal *g, uint32_t node, const struct task *t)
{
    if (g->nodes[node].before != GOAL_NONE)
        put(g, "c%" PRIu32 " requires c%" PRIu32 "\n", node, g->nodes[node].before);
    put_waits(g, node, 'c', t);
    if (g->nodes[node].pull_count > 0)
        put_waits(g, node, 'q', t);
}

void goal_write(struct goal *g)
{
    const struct program *p = g->program;
    uint32_t ranks = world_ranks(p->world);

    put(g, "// %s %s, %" PRIu32 " x %" PRIu32 " GPUs, by mkernel %s: docs/export.md says what stands for what\n",
        p->kernel, p->variant, p->world.nodes, p->world.gpus_per_node, build_version);
    put(g, "num_ranks %" PRIu32 "\n", ranks);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        put(g, "\nrank %" PRIu32 " {\n", rank);
        put_receives(g, rank);
        put_replies(g, rank);
        each_node(g, rank, put_node);
        each_node(g, rank, put_dependencies);
        put(g, "}\n");
    }
}
