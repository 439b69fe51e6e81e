#include "backends/sim/epoch.h"

#include <assert.h>

#include "backends/sim/control.h"
#include "backends/sim/data.h"
#include "backends/sim/fault.h"
#include "backends/sim/jitter.h"
#include "backends/sim/stats.h"
#include "backends/sim/worker.h"

static bool isolated(const struct sim *s)
{
    return s->job->timing.mode == TIMING_ISOLATED;
}

void epoch_plan(struct sim *s)
{
    const struct timing *t = &s->job->timing;
    bool changes = program_control_bytes(s->program) > 0; /* each epoch is routed anew */
    bool repeats = isolated(s) && s->options.jitter == 0 && s->options.disorder <= 1 && s->options.fault == 0 &&
                   !s->options.data && !changes;
    uint32_t iterations = t->iterations > 0 ? t->iterations : 1;

    if (isolated(s) && iterations > RESULT_SAMPLES_MAX)
        iterations = RESULT_SAMPLES_MAX;
    s->warmup = repeats ? 0 : t->warmup;
    s->epochs = repeats ? 1 : s->warmup + iterations;
}

static void release(struct sim *s, uint32_t rank);

/* The epoch may be over without it. */
static void start_late(void *arg, uint64_t index, uint64_t epoch)
{
    struct sim *s = arg;
    struct worker *w = &s->workers[index];
    const struct rank *r = &s->ranks[w->id.rank];

    if (!s->failed && r->running && r->epoch == epoch)
        worker_start(s, w);
}

static void start_worker(struct sim *s, struct worker *w, uint64_t epoch)
{
    uint64_t pause_ps = jitter_pause(s, w->id.rank);

    if (w->absent)
        return;
    if (pause_ps > 0)
        engine_after(s->engine, pause_ps, start_late, s, worker_index(s, w), epoch);
    else
        worker_start(s, w);
}

static void rank_start(void *arg, uint64_t rank, uint64_t epoch)
{
    struct sim *s = arg;
    struct rank *r = &s->ranks[rank];

    if (s->failed || fault_stopped(s, (uint32_t)rank))
        return;
    r->epoch = epoch;
    r->running = true;
    r->remaining = r->length + 1; /* and this start: tasks may cost nothing */
    for (uint32_t q = 0; q < s->program->queue_count; q++)
        r->cursors[q] = 0;
    data_begin_epoch(s, (uint32_t)rank);
    control_begin_epoch(s, (uint32_t)rank);
    for (uint32_t i = 0; i < s->workers_per_rank; i++)
        start_worker(s, sim_worker(s, (uint32_t)rank, i), epoch);
    release(s, (uint32_t)rank);
}

static uint64_t launch_ps(const struct sim *s)
{
    uint64_t ps = s->machine->host.launch_ps + (s->options.launches - 1) * s->machine->host.issue_ps;

    return s->job->timing.launch ? ps : 0;
}

static void start_aligned(void *arg, uint64_t epoch, uint64_t unused)
{
    struct sim *s = arg;

    (void)unused;
    s->epoch_start_ps = sim_now(s);
    s->ranks_running = s->rank_count;
    for (uint32_t rank = 0; rank < s->rank_count; rank++)
        engine_after(s->engine, launch_ps(s) + jitter_pause(s, rank), rank_start, s, rank, epoch);
}

void epoch_start(struct sim *s)
{
    start_aligned(s, 1, 0);
}

/* Ranks aligned: the next epoch starts when the slowest rank has ended. */
static void end_aligned(struct sim *s, uint64_t epoch)
{
    struct run_result *r = s->result;

    if (--s->ranks_running > 0)
        return;
    if (epoch > s->warmup)
        r->sample_ps[r->sample_count++] = sim_now(s) - s->epoch_start_ps;
    if (epoch < s->epochs)
        engine_after(s->engine, 0, start_aligned, s, epoch + 1, 0);
}

/* Back to back: launches are queued ahead, each one host call behind the other. */
static void end_pipelined(struct sim *s, uint32_t rank, uint64_t epoch)
{
    struct run_result *r = s->result;
    uint64_t now = sim_now(s), issued_ps = 0;

    if (epoch == s->warmup)
        s->warmup_end_ps = now;
    if (epoch == s->epochs && --s->ranks_running == 0)
        r->sample_ps[r->sample_count++] = (now - s->warmup_end_ps) / (s->epochs - s->warmup);
    if (epoch == s->epochs)
        return;
    if (s->job->timing.launch)
        issued_ps = s->machine->host.launch_ps + epoch * s->options.launches * s->machine->host.issue_ps;
    engine_after(s->engine, (issued_ps > now ? issued_ps - now : 0) + jitter_pause(s, rank), rank_start, s, rank,
                 epoch + 1);
}

static void rank_end(struct sim *s, uint32_t rank)
{
    struct rank *r = &s->ranks[rank];

    r->running = false;
    for (uint32_t i = 0; i < s->workers_per_rank; i++)
        stats_idle(s, sim_worker(s, rank, i));
    data_end_epoch(s, rank);
    if (s->failed)
        return;
    if (isolated(s))
        end_aligned(s, r->epoch);
    else
        end_pipelined(s, rank, r->epoch);
}

static void rank_flushed(void *arg, uint64_t rank, uint64_t unused)
{
    (void)unused;
    rank_end(arg, (uint32_t)rank);
}

static void release(struct sim *s, uint32_t rank)
{
    struct rank *r = &s->ranks[rank];
    uint64_t now = sim_now(s);

    assert(r->remaining > 0);
    if (--r->remaining > 0)
        return;
    if (r->flushed_ps > now)
        engine_after(s->engine, r->flushed_ps - now, rank_flushed, s, rank, 0);
    else
        rank_end(s, rank);
}

void epoch_task_done(struct sim *s, uint32_t rank, uint64_t flush_ps)
{
    struct rank *r = &s->ranks[rank];

    s->result->tasks++;
    r->flushed_ps = max_u64(r->flushed_ps, sim_now(s) + flush_ps);
    release(s, rank);
}

bool epoch_all_done(const struct sim *s)
{
    for (uint32_t rank = 0; rank < s->rank_count; rank++)
        if (s->ranks[rank].running || s->ranks[rank].epoch < s->epochs)
            return false;
    return true;
}
