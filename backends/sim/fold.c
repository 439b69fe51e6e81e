#include "backends/sim/fold.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/sim/fault.h"
#include "backends/sim/symmetry.h"

#define WHY_BYTES 256

uint32_t fold_ranks(const struct job *job)
{
    const struct sim_options *o = job->options;

    return o && o->fold == FOLD_NODE && !job->data ? job->world.gpus_per_node : world_ranks(job->world);
}

/* What makes ranks differ whatever the program is; NULL: nothing. */
static const char *obstacle(const struct sim *s)
{
    const struct sim_options *o = &s->options;

    if (o->data)
        return "data are moved and checked on every rank";
    if (o->jitter > 0 || o->disorder > 1)
        return "each rank's delays are perturbed by themselves";
    if (o->fault != FAULT_NONE)
        return "the fault strikes one rank";
    if (s->job->trace)
        return "a trace tells of every rank";
    if (o->engine == ENGINE_KERNEL || o->engine == ENGINE_S4U)
        return "SimGrid has no link from a NIC to itself; engines are auto, fluid and alone";
    return NULL;
}

static bool folds(const struct sim *s, char why[WHY_BYTES])
{
    const char *reason = obstacle(s);

    if (reason)
        snprintf(why, WHY_BYTES, "%s", reason);
    return !reason && symmetry_of_nodes(s->program, why, WHY_BYTES);
}

enum status fold_open(struct sim *s)
{
    struct world w = s->program->world;
    bool asked = s->options.fold == FOLD_NODE;
    char why[WHY_BYTES];

    s->rank_count = world_ranks(w);
    if (w.nodes == 1 || s->job->data || s->options.fold == FOLD_NONE || (!asked && s->rank_count <= FOLD_RANKS))
        return ST_OK;
    s->folds = folds(s, why);
    if (s->folds)
        s->rank_count = w.gpus_per_node;
    if (s->folds || !asked)
        return ST_OK;
    snprintf(s->result->report, sizeof s->result->report, "sim.fold: one node cannot stand for all %" PRIu32 ": %s\n",
             w.nodes, why);
    return ST_INPUT;
}

struct signal fold_arrival(const struct sim *s, const struct task_id *id, uint32_t signal, uint32_t target)
{
    struct world w = s->program->world;
    struct task other;

    assert(s->folds && target >= s->rank_count);
    program_task(s->program, symmetry_move(w, id->rank, w.nodes - world_node(w, target)), id->queue, id->index, &other);
    assert(signal < other.signal_count && other.signals[signal].rank < s->rank_count);
    return other.signals[signal];
}

static void multiply(uint64_t *sum, uint64_t nodes)
{
    *sum *= nodes;
}

static void multiply_times(struct run_result *r, uint64_t nodes)
{
    for (uint32_t i = 0; i < r->crew_count; i++) {
        multiply(&r->crews[i].busy_ps, nodes);
        multiply(&r->crews[i].idle_ps, nodes);
        for (uint32_t k = 0; k < r->cause_count; k++)
            multiply(&r->crews[i].waiting_ps[k], nodes);
    }
}

void fold_close(struct sim *s)
{
    struct run_result *r = s->result;
    uint64_t nodes = s->program->world.nodes;
    size_t length = strlen(r->model);

    if (!s->folds)
        return;
    multiply(&r->tasks, nodes);
    multiply(&r->puts, nodes);
    multiply(&r->flows, nodes);
    multiply(&r->put_bytes, nodes);
    for (uint32_t i = 0; i < r->link_count; i++)
        multiply(&r->links[i].bytes, nodes);
    multiply_times(r, nodes);
    snprintf(r->model + length, sizeof r->model - length, ", 1 of %" PRIu64 " nodes", nodes);
}
