/* Decides that a run ends early: at once when every worker waits for a flag that nobody is left to
 * signal (a hang), when somebody interrupts it, or when no flag has moved for the time-out. */
#include "backends/cpu/fleet.h"

#define POLL_NS 10000000

static uint64_t count_signals(const struct fleet *f)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < f->rank_count; i++)
        sum += atomic_load_explicit(&f->ranks[i].signals.value, memory_order_relaxed);
    return sum;
}

static bool some_wait_is_met(const struct fleet *f)
{
    for (uint32_t i = 0; i < f->worker_count; i++) {
        const struct worker *w = &f->workers[i];
        uint32_t flag = atomic_load_explicit(&w->blocked_flag, memory_order_relaxed);
        uint64_t target = atomic_load_explicit(&w->blocked_target, memory_order_relaxed);

        if (flag != NO_FLAG && fleet_flag_reached(w->rank, flag, target))
            return true;
    }
    return false;
}

struct watch {
    uint64_t signals, wakings; /* as last seen */
    uint64_t moved_ns;
    bool still; /* at the last look nothing was active */
};

/* Nothing active at two looks in a row, no wait ended in between and none is met: as only workers
 * and puts signal, it stays so.  (Two looks, because the counters are relaxed.) */
static bool quiescent(const struct fleet *f, struct watch *w)
{
    uint64_t wakings = atomic_load_explicit(&f->wakings, memory_order_relaxed);
    bool still = atomic_load_explicit(&f->active, memory_order_relaxed) == 0;
    bool stays = still && w->still && wakings == w->wakings;

    w->still = still;
    w->wakings = wakings;
    return stays && !some_wait_is_met(f);
}

static bool timed_out(const struct fleet *f, struct watch *w)
{
    uint64_t now_ns = clock_now_ns(), signals = count_signals(f);

    if (signals != w->signals || atomic_load_explicit(&f->checking, memory_order_relaxed) > 0) {
        w->signals = signals;
        w->moved_ns = now_ns;
    }
    return now_ns - w->moved_ns > f->options->timeout_ps / 1000 * TIMEOUT_SCALE;
}

static bool all_ended(const struct fleet *f)
{
    return atomic_load_explicit(&f->ended, memory_order_acquire) == f->worker_count;
}

/* Puts may be on their way behind the last task.  Their peer stays until all nodes have come to the end, so nobody
 * comes there before his own are complete. */
static bool is_over(const struct fleet *f)
{
    return all_ended(f) && (fleet_stopped(f) || fleet_puts_are_complete(f));
}

void fleet_watch(struct fleet *f)
{
    struct watch w = {.moved_ns = clock_now_ns()};

    for (;;) {
        uint32_t seen = bell_read(&f->end_bell);

        if (is_over(f))
            return;
        bell_sleep(&f->end_bell, seen, POLL_NS);
        if (fleet_stopped(f) || is_over(f))
            continue;
        fleet_net_check(f);
        if (f->job->interrupted && *f->job->interrupted)
            fleet_stop(f, STOP_INTERRUPTED);
        else if (quiescent(f, &w))
            fleet_stop(f, STOP_QUIESCENT);
        else if (timed_out(f, &w))
            fleet_stop(f, STOP_TIMEOUT);
    }
}
