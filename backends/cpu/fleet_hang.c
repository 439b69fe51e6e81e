/* What a hanging run's workers wait for; read after they have all ended. */
#include <stdlib.h>

#include "backends/cpu/fleet.h"
#include "backends/ops/hang_report.h"

static struct stuck describe(const struct worker *w)
{
    return (struct stuck){
        .rank = w->rank->index,
        .crew = w->crew,
        .queue = w->at.queue,
        .index = w->at.index,
        .epoch = w->at.epoch,
        .phase = w->at.phase,
        .step = w->at.step == NO_STEP ? STUCK_NO_STEP : w->at.step,
        .flag = w->blocked_flag,
        .value = w->given_up_value,
        .wanted = w->blocked_target,
    };
}

static uint64_t collect(const struct fleet *f, struct stuck *out)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < f->worker_count; i++)
        if (f->workers[i].blocked_flag < f->program->flag_count) /* else: waits for its own rank */
            out[count++] = describe(&f->workers[i]);
    return count;
}

static void collect_ranks(const struct fleet *f, struct hang_rank *out)
{
    for (uint32_t i = 0; i < f->rank_count; i++) {
        out[i].epoch = f->ranks[i].epoch;
        for (uint32_t q = 0; q < f->program->queue_count; q++)
            out[i].popped[q] = f->ranks[i].popped[q].value;
    }
}

void fleet_report_hang(const struct fleet *f, char *out, size_t out_bytes)
{
    struct stuck *stuck = calloc(f->worker_count + 1, sizeof *stuck);
    struct hang_rank *ranks = calloc(f->rank_count, sizeof *ranks);

    if (stuck && ranks) {
        struct hang hang = {.program = f->program,
                            .ranks = ranks,
                            .stuck = stuck,
                            .stuck_count = collect(f, stuck)};

        collect_ranks(f, ranks);
        hang_report_write(&hang,
                          f->stop == STOP_QUIESCENT
                              ? "no progress: every worker waits and nothing is in flight"
                              : "no progress: no flag has moved for the time-out, but some tasks "
                                "were still running",
                          out, out_bytes);
    }
    free(stuck);
    free(ranks);
}
