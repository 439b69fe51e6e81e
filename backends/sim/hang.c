#include "backends/sim/hang.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/ops/hang_report.h"
#include "backends/sim/stats.h"

/* Once nothing happens any more no FIFO is full and no store is under way: what blocks is a flag.
 */
static uint64_t collect(const struct sim *s, struct stuck *out)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < (uint64_t)s->rank_count * s->workers_per_rank; i++) {
        const struct worker *w = &s->workers[i];

        if (!w->blocked)
            continue;
        assert(w->cause < stats_fifo_cause(s));
        out[count++] = (struct stuck){
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
        };
    }
    return count;
}

/* Tasks of queues that no crew drains hang without anyone waiting. */
static void add_unpopped(const struct sim *s, char *out, size_t out_bytes)
{
    for (uint32_t rank = 0; rank < s->rank_count; rank++)
        for (uint32_t q = 0; q < s->program->queue_count; q++) {
            const struct rank *r = &s->ranks[rank];

            if (!r->running || r->cursors[q] == r->lengths[q])
                continue;
            snprintf(out, out_bytes,
                     "first queue that is not empty: rank %" PRIu32 " queue %s, %" PRIu64
                     " of %" PRIu64 " tasks popped\n",
                     rank, s->program->queues[q].name, r->cursors[q], r->lengths[q]);
            return;
        }
}

static struct hang_rank *positions(const struct sim *s)
{
    struct hang_rank *out = calloc(s->rank_count, sizeof *out);

    assert(out);
    for (uint32_t rank = 0; rank < s->rank_count; rank++) {
        out[rank].epoch = s->ranks[rank].epoch;
        memcpy(out[rank].popped, s->ranks[rank].cursors, sizeof out[rank].popped);
    }
    return out;
}

void hang_describe(struct sim *s)
{
    struct run_result *r = s->result;
    struct stuck *stuck = calloc((size_t)s->rank_count * s->workers_per_rank + 1, sizeof *stuck);
    struct hang_rank *ranks = positions(s);
    struct hang hang = {.program = s->program, .ranks = ranks, .stuck = stuck};
    size_t used;

    assert(stuck);
    hang.stuck_count = collect(s, stuck);
    r->status = ST_HANG;
    hang_report_write(&hang, "no progress: every worker waits and nothing is in flight", r->report,
                      sizeof r->report);
    free(stuck);
    free(ranks);
    used = strlen(r->report);
    add_unpopped(s, r->report + used, sizeof r->report - used);
}
