/* What happens between two epochs of a rank, done by the last of its workers to arrive. */
#include "backends/cpu/fleet.h"

/* Ranks aligned: nobody starts before everybody has its inputs.  The last of this process's ranks waits for the
 * other nodes, the others for it. */
static bool align(struct worker *w, uint64_t epoch)
{
    struct fleet *f = w->fleet;

    if (atomic_fetch_add_explicit(&f->aligned, 1, memory_order_acq_rel) + 1 == epoch * f->rank_count) {
        if (fleet_net_meet(f) < 0)
            return false;
        for (uint32_t i = 0; i < f->rank_count; i++)
            fleet_signal(f, f->first_rank + i, own_flag(f, OWN_ALIGNED), 1);
    }
    return worker_await(w, own_flag(f, OWN_ALIGNED), epoch);
}

static void begin(struct worker *w, uint64_t epoch)
{
    struct rank *r = w->rank;

    check_write_inputs(w->fleet->job, r->index, epoch, r->window);
    for (uint32_t q = 0; q < w->fleet->program->queue_count; q++)
        atomic_store_explicit(&r->popped[q].value, 0, memory_order_relaxed);
    r->epoch = epoch;
}

static void end(struct worker *w, uint64_t epoch)
{
    check_outputs(w->fleet->job, w->rank->index, epoch, w->rank->window, &w->rank->check);
}

bool epoch_turn(struct worker *w, uint64_t epoch)
{
    struct fleet *f = w->fleet;
    struct rank *r = w->rank;
    bool last = epoch == f->epochs;

    r->ended_ns[epoch % EPOCH_TIMES] = clock_now_ns();
    atomic_fetch_add_explicit(&f->checking, 1, memory_order_relaxed);
    end(w, epoch);
    if (!last)
        begin(w, epoch + 1);
    atomic_fetch_sub_explicit(&f->checking, 1, memory_order_relaxed);
    if (last)
        return true;
    if (f->job->timing.mode == TIMING_ISOLATED && !align(w, epoch))
        return false;
    r->started_ns[(epoch + 1) % EPOCH_TIMES] = clock_now_ns();
    fleet_signal(f, r->index, own_flag(f, OWN_BEGUN), 1);
    return true;
}
