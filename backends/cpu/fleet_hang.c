/* What a hanging run's workers wait for; read after they have all ended. */
#include <stdio.h>
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
        .since_ps = (w->blocked_since_ns - w->fleet->started_ns) * 1000,
    };
}

/* Not blocked, and neither before its first task nor behind its last one. */
static bool at_work(const struct fleet *f, const struct worker *w)
{
    return w->blocked_flag == NO_FLAG && w->at.epoch > 0 &&
           w->at.index < program_queue_length(f->program, w->rank->index, w->at.queue);
}

static void collect_workers(const struct fleet *f, struct hang *h, struct stuck *stuck, struct hang_open *open)
{
    for (uint32_t i = 0; i < f->worker_count; i++) {
        const struct worker *w = &f->workers[i];

        if (w->blocked_flag < f->program->flag_count) /* not on its own rank */
            stuck[h->stuck_count++] = describe(w);
        else if (at_work(f, w))
            open[h->open_count++] =
                (struct hang_open){w->rank->index, w->at.queue, w->at.index, w->at.epoch, "was under way", true};
    }
    for (uint32_t i = 0; i < f->rank_count; i++)
        h->open_count += fifo_collect(&f->ranks[i], open + h->open_count);
}

static uint64_t open_at_most(const struct fleet *f)
{
    return f->worker_count + (uint64_t)f->rank_count * f->ranks[0].fifo.capacity + 1;
}

static void collect_ranks(const struct fleet *f, struct hang_rank *out)
{
    for (uint32_t i = 0; i < f->rank_count; i++) {
        const struct rank *r = &f->ranks[i];

        out[r->index].epoch = r->epoch;
        for (uint32_t q = 0; q < f->program->queue_count; q++)
            out[r->index].popped[q] = r->popped[q].value;
    }
}

static const char *headline(const struct fleet *f)
{
    switch ((enum stop)f->stop) {
    case STOP_QUIESCENT: return "no progress: every worker waits and nothing is in flight";
    case STOP_INTERRUPTED: return "stopped from outside";
    case STOP_NET: return f->failure;
    default: return "no progress: no flag has moved for the time-out, but some tasks were still running";
    }
}

void fleet_report_hang(const struct fleet *f, char *out, size_t out_bytes)
{
    struct stuck *stuck = calloc(f->worker_count + 1, sizeof *stuck);
    struct hang_open *open = calloc(open_at_most(f), sizeof *open);
    struct hang_rank *ranks = calloc(world_ranks(f->program->world), sizeof *ranks);
    char(*fates)[HANG_FATE_BYTES] = calloc(f->program->world.nodes, sizeof *fates);

    if (stuck && open && ranks && fates) {
        struct hang hang = {.program = f->program,
                            .ranks = ranks,
                            .stuck = stuck,
                            .open = open,
                            .stopped = f->stop == STOP_INTERRUPTED || f->stop == STOP_NET};

        collect_workers(f, &hang, stuck, open);
        collect_ranks(f, ranks);
        hang_mark_elsewhere(f->job->nodes, f->program->world, ranks, fates);
        hang_report_write(&hang, headline(f), out, out_bytes);
    }
    free(stuck);
    free(open);
    free(ranks);
    free(fates);
}
