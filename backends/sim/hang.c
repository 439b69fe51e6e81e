#include "backends/sim/hang.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/ops/hang_report.h"
#include "backends/sim/fault.h"
#include "backends/sim/stats.h"

static struct stuck describe(const struct sim *s, const struct worker *w)
{
    return (struct stuck){
        .rank = w->id.rank,
        .crew = w->crew,
        .queue = w->id.queue,
        .index = w->id.index,
        .epoch = w->id.epoch,
        .phase = w->phase == PHASE_ENTRY ? WAIT_ENTRY : WAIT_LATE,
        .step = w->phase == PHASE_STEPS ? w->step : STUCK_NO_STEP,
        .flag = w->flag,
        .value = s->counters[(uint64_t)w->id.rank * s->program->flag_count + w->flag],
        .wanted = w->target,
        .since_ps = w->since_ps,
    };
}

/* Workers of a rank that has stopped wait for nothing any more. */
static bool waits_for_flag(const struct sim *s, const struct worker *w)
{
    return w->blocked && w->cause < stats_fifo_cause(s) && !fault_stopped(s, w->id.rank);
}

static const char *state_of(const struct sim *s, const struct worker *w)
{
    if (fault_stopped(s, w->id.rank))
        return "was in hand when its rank stopped";
    if (w->blocked)
        return w->cause == stats_fifo_cause(s) ? "waits for a place in the queue of puts"
                                               : "waits for the link to take its stores";
    return "is under way";
}

static void collect_workers(const struct sim *s, struct hang *h, struct stuck *stuck, struct hang_open *open)
{
    for (uint64_t i = 0; i < (uint64_t)s->rank_count * s->workers_per_rank; i++) {
        const struct worker *w = &s->workers[i];

        if (waits_for_flag(s, w))
            stuck[h->stuck_count++] = describe(s, w);
        else if (w->blocked || w->phase != PHASE_POP)
            open[h->open_count++] =
                (struct hang_open){w->id.rank, w->id.queue, w->id.index, w->id.epoch, state_of(s, w), true};
    }
}

static void collect_lost(const struct sim *s, struct hang *h, struct hang_open *open)
{
    for (uint32_t i = 0; i < s->faults.lost_count; i++) {
        const struct lost_task *l = &s->faults.lost[i];

        open[h->open_count++] = (struct hang_open){l->id.rank, l->id.queue, l->id.index, l->id.epoch, l->state, false};
    }
}

static void collect_ranks(const struct sim *s, struct hang_rank *out)
{
    for (uint32_t rank = 0; rank < world_ranks(s->program->world); rank++) {
        const struct rank *r = &s->ranks[rank % s->rank_count]; /* folded: its like on node 0 */

        out[rank].epoch = r->epoch;
        memcpy(out[rank].popped, r->cursors, sizeof out[rank].popped);
        out[rank].fate = fault_fate(s, rank);
    }
}

void hang_describe(struct sim *s, enum status st, const char *headline)
{
    char text[160];
    struct run_result *r = s->result;
    size_t workers = (size_t)s->rank_count * s->workers_per_rank;
    struct stuck *stuck = calloc(workers + 1, sizeof *stuck);
    struct hang_open *open = calloc(workers + FAULT_LOST_MAX, sizeof *open);
    struct hang_rank *ranks = calloc(world_ranks(s->program->world), sizeof *ranks);
    struct hang hang = {
        .program = s->program, .ranks = ranks, .stuck = stuck, .open = open, .stopped = st == ST_INTERRUPTED};

    assert(stuck && open && ranks);
    collect_lost(s, &hang, open);
    collect_workers(s, &hang, stuck, open);
    collect_ranks(s, ranks);
    r->status = st;
    snprintf(text, sizeof text, "%s (at %.6g us of simulated time)", headline, (double)sim_now(s) / 1e6);
    hang_report_write(&hang, text, r->report, sizeof r->report);
    free(stuck);
    free(open);
    free(ranks);
}
