#include "core/trace/trace_goal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/backend.h"
#include "core/log.h"

static struct goal_node *node_at(struct goal *g, uint32_t rank, const struct trace_place *at)
{
    if (at->epoch != g->epochs)
        return NULL;
    return &g->nodes[g->base[rank * g->program->queue_count + at->queue] + at->index];
}

/* ---- the sink ---- */

static uint64_t begin(struct trace *t, uint64_t first, uint64_t epochs, const uint32_t crew_workers[PROGRAM_CREWS_MAX])
{
    struct goal *g = (struct goal *)t;

    (void)first;
    g->epochs = epochs;
    for (uint32_t i = 0; i < g->program->crew_count; i++) {
        g->crew_first[i] = g->cpus;
        g->cpus += crew_workers[i];
    }
    return epochs;
}

static void task(struct trace *t, const struct trace_task *x)
{
    struct goal *g = (struct goal *)t;
    struct goal_node *n = node_at(g, x->lane.rank, &x->at);

    if (!n)
        return;
    n->seen = true;
    n->rank = x->lane.rank;
    n->cpu = g->crew_first[x->lane.crew] + x->lane.worker;
    n->begin_ps = x->begin_ps;
    n->end_ps = x->end_ps;
}

static void wait(struct trace *t, const struct trace_wait *x)
{
    struct goal_node *n = node_at((struct goal *)t, x->lane.rank, &x->at);

    if (n && x->inside)
        n->waited_ps += x->end_ps - x->begin_ps;
}

static void flight(struct trace *t, const struct trace_flight *x)
{
    (void)t;
    (void)x;
}

static void use(struct trace *t, const struct trace_use *x)
{
    (void)t;
    (void)x;
}

static void lost(struct trace *t, uint64_t events)
{
    (void)t;
    (void)events; /* a task that is missing then ends the export */
}

static const struct trace_ops goal_ops = {
    .begin = begin,
    .task = task,
    .wait = wait,
    .flight = flight,
    .use = use,
    .lost = lost,
};

/* ---- open, close ---- */

static void number_nodes(struct goal *g)
{
    const struct program *p = g->program;

    for (uint32_t rank = 0; rank < world_ranks(p->world); rank++)
        for (uint32_t q = 0; q < p->queue_count; q++) {
            g->base[rank * p->queue_count + q] = g->node_count;
            g->node_count += (uint32_t)program_queue_length(p, rank, q);
        }
}

static void goal_free(struct goal *g)
{
    free(g->base);
    free(g->nodes);
    free(g->edges);
    free(g->by_flag);
    free(g->pulls);
    free(g);
}

static enum status goal_open(const struct job *job, const char *backend, const char *path, uint64_t limit_bytes,
                             struct trace **out)
{
    uint64_t tasks = program_task_count(job->program);
    struct goal *g;
    enum status st;

    (void)backend;
    (void)limit_bytes;
    if (tasks > GOAL_TASKS_MAX) {
        log_error("goal: %llu tasks; expected at most %d: --set a smaller problem or world", (unsigned long long)tasks,
                  GOAL_TASKS_MAX);
        return ST_INPUT;
    }
    g = calloc(1, sizeof *g);
    assert(g);
    *g = (struct goal){.head.ops = &goal_ops, .program = job->program, .machine = job->machine};
    g->base = calloc((size_t)world_ranks(job->world) * job->program->queue_count + 1, sizeof *g->base);
    g->nodes = calloc(tasks + 1, sizeof *g->nodes);
    assert(g->base && g->nodes);
    number_nodes(g);
    st = trace_file_open(&g->file, path);
    if (st < 0)
        goal_free(g);
    else
        *out = &g->head;
    return st;
}

static enum status check_complete(const struct goal *g)
{
    for (uint32_t i = 0; i < g->node_count; i++)
        if (!g->nodes[i].seen) {
            log_error("goal: the run did not do all of its tasks");
            return ST_HANG;
        }
    if (g->cpus < GOAL_CPUS_MAX)
        return ST_OK;
    log_error("goal: %u workers a rank; the format holds at most %d", g->cpus, GOAL_CPUS_MAX - 1);
    return ST_INPUT;
}

static enum status goal_close(struct trace *t, bool keep, struct trace_result *out)
{
    struct goal *g = (struct goal *)t;
    char path[RESULT_PATH_BYTES];
    enum status complete = check_complete(g), st;

    keep = keep && complete >= 0;
    if (keep) {
        goal_connect(g);
        goal_write(g);
    }
    st = trace_file_close(&g->file, keep, path);
    snprintf(out->path, sizeof out->path, "%.*s", (int)sizeof out->path - 1, path);
    goal_free(g);
    return complete < 0 ? complete : st;
}

const struct trace_format trace_goal = {.name = "goal", .open = goal_open, .close = goal_close};
