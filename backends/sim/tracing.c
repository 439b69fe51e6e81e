#include "backends/sim/tracing.h"

#include "backends/sim/stats.h"
#include "core/trace/trace.h"

static struct trace_lane lane_of(const struct sim *s, uint32_t worker)
{
    const struct worker *w = &s->workers[worker];
    uint32_t place = worker % s->workers_per_rank;

    for (uint32_t crew = 0; crew < w->crew; crew++)
        place -= s->program->crews[crew].workers;
    return (struct trace_lane){w->id.rank, w->crew, place};
}

static struct trace_place place_of(const struct task_id *id, enum op op)
{
    return (struct trace_place){id->queue, op, id->index, id->epoch};
}

static void link_used(void *arg, const struct fabric_use *use)
{
    static const enum trace_link links[] = {
        [FABRIC_NVLINK_OUT] = TRACE_NVLINK_OUT,
        [FABRIC_NVLINK_IN] = TRACE_NVLINK_IN,
        [FABRIC_NIC_OUT] = TRACE_NIC_OUT,
        [FABRIC_NIC_IN] = TRACE_NIC_IN,
    };
    struct sim *s = arg;
    struct trace_use x = {.link = links[use->link],
                          .rank = use->rank,
                          .bytes = use->bytes,
                          .begin_ps = use->begin_ps,
                          .end_ps = sim_now(s)};

    trace_use_add(s->job->trace, &x);
}

void tracing_open(struct sim *s)
{
    uint32_t workers[PROGRAM_CREWS_MAX] = {0};

    if (!s->job->trace)
        return;
    for (uint32_t i = 0; i < s->program->crew_count; i++)
        workers[i] = s->program->crews[i].workers;
    trace_begin(s->job->trace, 1, s->epochs, workers);
    fabric_watch(s->fabric, link_used, s);
}

void tracing_task(struct sim *s, const struct worker *w)
{
    struct trace_task x;

    if (!s->job->trace)
        return;
    x = (struct trace_task){.lane = lane_of(s, worker_index(s, w)),
                            .at = place_of(&w->id, w->task.op),
                            .begin_ps = w->began_ps,
                            .end_ps = sim_now(s)};
    trace_task_add(s->job->trace, &x);
}

void tracing_wait(struct sim *s, const struct worker *w, const struct signal_origin *by)
{
    bool flag = w->cause < stats_fifo_cause(s);
    struct trace_wait x;

    if (!s->job->trace)
        return;
    x = (struct trace_wait){.lane = lane_of(s, worker_index(s, w)),
                            .at = place_of(&w->id, w->task.op),
                            .flag = flag ? w->flag : NO_FLAG,
                            .cause = s->result->causes[w->cause],
                            .inside = w->phase != PHASE_ENTRY,
                            .begin_ps = w->since_ps,
                            .end_ps = sim_now(s),
                            .known = by != NULL};
    if (by) {
        x.from = lane_of(s, by->worker);
        x.from_ps = by->left_ps;
    }
    trace_wait_add(s->job->trace, &x);
}

void tracing_landed(struct sim *s, const struct flight *f)
{
    struct trace_flight x;
    struct task t;

    if (!s->job->trace)
        return;
    program_task(s->program, f->id.rank, f->id.queue, f->id.index, &t);
    x = (struct trace_flight){
        .lane = lane_of(s, f->worker), .at = place_of(&f->id, t.op), .begin_ps = f->left_ps, .end_ps = sim_now(s)};
    trace_flight_add(s->job->trace, &x);
}

void tracing_close(struct sim *s)
{
    uint64_t count = (uint64_t)s->rank_count * s->workers_per_rank;

    for (uint64_t i = 0; s->job->trace && i < count; i++)
        if (s->workers[i].blocked)
            tracing_wait(s, &s->workers[i], NULL);
}
