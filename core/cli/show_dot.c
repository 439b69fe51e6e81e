#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "core/cli/show.h"
#include "core/log.h"
#include "core/program_print.h"

#define DOT_TASKS_MAX 400 /* more than this is no picture any more */

/* A task and where it stands. */
struct node {
    uint32_t rank, queue;
    uint64_t index;
    struct task task;
};

struct graph {
    const struct program *program;
    struct node *nodes;
    size_t count;
};

static void collect(struct graph *g)
{
    const struct program *p = g->program;

    for (uint32_t rank = 0; rank < world_ranks(p->world); rank++)
        for (uint32_t q = 0; q < p->queue_count; q++)
            for (uint64_t i = 0; i < program_queue_length(p, rank, q); i++) {
                struct node *n = &g->nodes[g->count++];

                *n = (struct node){.rank = rank, .queue = q, .index = i};
                program_task(p, rank, q, i, &n->task);
            }
}

static bool covers(const struct wait *w, uint32_t flag)
{
    return w->count > 0 && flag >= w->flag && flag - w->flag < w->count;
}

/* Entry, late and step waits alike. */
static bool waits_for(const struct graph *g, const struct node *n, uint32_t flag)
{
    for (uint32_t i = 0; i < n->task.wait_count; i++)
        if (covers(&n->task.waits[i], flag))
            return true;
    if (!op_walks(n->task.op) || n->task.segment_table == NO_TABLE)
        return false;
    for (uint32_t s = 0; s < program_step_count(&n->task); s++) {
        struct segment segment;
        struct operand a, b;

        program_step(g->program, n->rank, &n->task, s, &segment, &a, &b);
        if (covers(&segment.wait, flag))
            return true;
    }
    return false;
}

static void print_signal(const struct graph *g, size_t from, const struct signal *s, FILE *f)
{
    uint32_t first, count = program_target_ranks(g->program, g->nodes[from].rank, s->rank, &first);
    char name[64];

    program_print_flag(g->program, s->flag, name, sizeof name);
    for (size_t to = 0; to < g->count; to++) {
        const struct node *n = &g->nodes[to];

        if (n->rank >= first && n->rank - first < count && waits_for(g, n, s->flag))
            fprintf(f, "  t%zu -> t%zu [label=\"%s\"];\n", from, to, name);
    }
}

static void print_node(const struct graph *g, size_t i, FILE *f)
{
    const struct node *n = &g->nodes[i];

    fprintf(f, "  t%zu [label=\"rank %" PRIu32 " %s\\n%s #%" PRIu64 "\"];\n", i, n->rank,
            g->program->queues[n->queue].name, op_name(n->task.op), n->index);
    if (n->index > 0)
        fprintf(f, "  t%zu -> t%zu [style=dashed, color=gray];\n", i - 1, i);
}

enum status show_dot(const struct program *p, FILE *f)
{
    uint64_t tasks = program_task_count(p);
    struct graph g = {.program = p};

    if (tasks > DOT_TASKS_MAX) {
        log_error("show: --dot draws at most %d tasks, this program has %" PRIu64 ": --set a smaller problem or world",
                  DOT_TASKS_MAX, tasks);
        return ST_INPUT;
    }
    g.nodes = calloc(tasks + 1, sizeof *g.nodes);
    assert(g.nodes);
    collect(&g);
    fprintf(f, "digraph \"%s %s\" {\n  rankdir=LR;\n  node [shape=box, fontsize=10];\n", p->kernel, p->variant);
    for (size_t i = 0; i < g.count; i++)
        print_node(&g, i, f);
    for (size_t i = 0; i < g.count; i++)
        for (uint32_t s = 0; s < g.nodes[i].task.signal_count; s++)
            print_signal(&g, i, &g.nodes[i].task.signals[s], f);
    fprintf(f, "}\n");
    free(g.nodes);
    return ST_OK;
}
