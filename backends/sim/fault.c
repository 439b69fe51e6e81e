#include "backends/sim/fault.h"

#include <inttypes.h>
#include <stdio.h>

#include "backends/sim/jitter.h"

static bool strikes(const struct sim *s, enum fault_kind kind, uint32_t rank)
{
    return s->options.fault == (uint32_t)kind && s->options.fault_rank == rank;
}

static bool needs_link(enum fault_kind kind)
{
    return kind >= FAULT_SLOW_LINK && kind <= FAULT_DUPLICATED_PUT;
}

enum status fault_open(struct sim *s)
{
    const struct sim_options *o = &s->options;
    struct run_result *r = s->result;

    snprintf(s->faults.fate, sizeof s->faults.fate, "stopped at %.6g us", (double)o->fault_time_ps / 1e6);
    if (o->fault == FAULT_NONE)
        return ST_OK;
    if (o->fault_rank >= s->rank_count)
        snprintf(r->report, sizeof r->report,
                 "sim.fault_rank is %" PRIu64 "; expected a rank of this world, 0..%" PRIu32 "\n", o->fault_rank,
                 s->rank_count - 1);
    else if (needs_link((enum fault_kind)o->fault) && s->program->world.nodes == 1)
        snprintf(r->report, sizeof r->report, "sim.fault: a world of one node has no link between nodes and no puts\n");
    else
        return ST_OK;
    return ST_INPUT;
}

bool fault_stopped(const struct sim *s, uint32_t rank)
{
    return strikes(s, FAULT_STOPPED_RANK, rank) && sim_now(s) >= s->options.fault_time_ps;
}

const char *fault_fate(const struct sim *s, uint32_t rank)
{
    return fault_stopped(s, rank) ? s->faults.fate : NULL;
}

uint64_t fault_work_ps(const struct sim *s, uint32_t rank, uint64_t ps)
{
    return strikes(s, FAULT_STRAGGLER, rank) ? (uint64_t)((double)ps * s->options.fault_factor) : ps;
}

void fault_lose(struct sim *s, const struct task_id *id, const char *state)
{
    struct faults *f = &s->faults;

    if (f->lost_count == FAULT_LOST_MAX)
        return;
    f->lost[f->lost_count++] = (struct lost_task){*id, state};
}

/* The put is lost for good: nothing of it will ever be seen. */
static uint32_t lose_put(struct sim *s, const struct task_id *id, const char *state)
{
    fault_lose(s, id, state);
    return 0;
}

static uint64_t resend_ps(struct sim *s)
{
    uint64_t ps = 0;

    while (jitter_chance(s, s->options.fault_loss))
        ps += s->options.fault_delay_ps;
    return ps;
}

uint32_t fault_put_arrivals(struct sim *s, const struct task_id *id, uint64_t ps, uint64_t *late_ps_out)
{
    const struct sim_options *o = &s->options;
    bool chosen;

    *late_ps_out = 0;
    if (o->fault_rank != id->rank)
        return 1;
    chosen = ++s->faults.puts == o->fault_put;
    switch ((enum fault_kind)o->fault) {
    case FAULT_SLOW_LINK: *late_ps_out = (uint64_t)((double)ps * (o->fault_factor - 1)); return 1;
    case FAULT_LOSSY_LINK: *late_ps_out = resend_ps(s); return 1;
    case FAULT_DEAD_LINK: return sim_now(s) < o->fault_time_ps ? 1 : lose_put(s, id, "was lost on a dead link");
    case FAULT_DROPPED_PUT: return chosen ? lose_put(s, id, "was dropped by the network") : 1;
    case FAULT_DUPLICATED_PUT: return chosen ? 2 : 1;
    default: return 1;
    }
}

void fault_refuse_second(struct sim *s, const struct task_id *id)
{
    struct run_result *r = s->result;

    s->failed = true;
    r->status = ST_WRONG;
    snprintf(r->report, sizeof r->report,
             "rank %" PRIu32 " queue %s put #%" PRIu64 ", epoch %" PRIu64
             ", was delivered twice (the second time at %.6g us): a transport must deliver at most "
             "once, or flags run ahead of their data\n",
             id->rank, s->program->queues[id->queue].name, id->index, id->epoch, (double)sim_now(s) / 1e6);
}
