#include <stdarg.h>
#include <stdio.h>

#include "backends/cpu/fleet.h"
#include "backends/ops/route.h"

#define SPINS 50 /* about the time of a few flag hops; more would starve the other workers */

/* ---- signals ---- */

static struct bell *bell_of(struct rank *r, uint32_t flag)
{
    return &r->bells[flag % RANK_BELLS];
}

uint64_t fleet_signal(struct fleet *f, uint32_t rank, uint32_t flag, uint64_t add)
{
    struct rank *r = fleet_rank(f, rank);
    uint64_t before = atomic_fetch_add_explicit(&r->flags[flag].value, add, memory_order_release);

    atomic_fetch_add_explicit(&r->signals.value, 1, memory_order_relaxed);
    bell_ring(bell_of(r, flag));
    return before + add;
}

/* Those on the own node: what a put raises on another one is the transport's. */
void fleet_signal_task(struct fleet *f, uint32_t rank, const struct task *t, struct trace_log *log,
                       const struct trace_entry *by)
{
    struct trace_entry e = *by;

    e.kind = TRACE_ENTRY_SIGNAL;
    for (uint32_t i = 0; i < t->signal_count; i++) {
        uint32_t first, count = program_target_ranks(f->program, rank, t->signals[i].rank, &first);

        if (!world_same_node(f->program->world, rank, first))
            continue;
        e.flag = t->signals[i].flag;
        for (e.rank = first; e.rank < first + count; e.rank++) {
            e.value = fleet_signal(f, e.rank, e.flag, t->signals[i].add);
            trace_log_add(log, &e);
        }
    }
}

bool fleet_flag_reached(const struct rank *r, uint32_t flag, uint64_t target)
{
    return atomic_load_explicit(&r->flags[flag].value, memory_order_acquire) >= target;
}

uint32_t own_flag(const struct fleet *f, enum own_flag flag)
{
    return f->program->flag_count + (uint32_t)flag;
}

/* ---- the abort word ---- */

bool fleet_stopped(const struct fleet *f)
{
    return atomic_load_explicit(&f->stop, memory_order_relaxed) != STOP_NOT;
}

void fleet_stop(struct fleet *f, enum stop why)
{
    uint32_t none = STOP_NOT;

    atomic_compare_exchange_strong_explicit(&f->stop, &none, why, memory_order_relaxed, memory_order_relaxed);
    for (uint32_t i = 0; i < f->rank_count; i++) {
        for (uint32_t b = 0; b < RANK_BELLS; b++)
            bell_ring(&f->ranks[i].bells[b]);
        bell_ring(&f->ranks[i].fifo.emptied);
    }
}

void fleet_fail(struct fleet *f, enum stop why, enum status st, const char *format, ...)
{
    va_list args;

    if (atomic_fetch_add(&f->failures, 1) == 0) {
        f->failed = st;
        va_start(args, format);
        vsnprintf(f->failure, sizeof f->failure, format, args);
        va_end(args);
        fleet_stop(f, why);
    }
}

void fleet_refuse(struct worker *w, const struct task *route, uint64_t dropped)
{
    char text[256];

    tile_route_refusal(route, w->rank->index, w->at.epoch, dropped, text, sizeof text);
    fleet_fail(w->fleet, STOP_OVERFLOW, ST_INPUT, "%s", text);
}

/* ---- waits ---- */

static void block(struct worker *w, uint32_t flag, uint64_t target)
{
    struct fleet *f = w->fleet;
    struct bell *bell = bell_of(w->rank, flag);

    w->blocked_since_ns = clock_now_ns();
    atomic_store_explicit(&w->blocked_target, target, memory_order_relaxed);
    atomic_store_explicit(&w->blocked_flag, flag, memory_order_relaxed);
    atomic_fetch_sub_explicit(&f->active, 1, memory_order_relaxed);
    for (;;) {
        uint32_t seen = bell_read(bell);

        if (fleet_stopped(f)) { /* stays marked as blocked, for the report */
            w->given_up_value = w->rank->flags[flag].value;
            return;
        }
        if (fleet_flag_reached(w->rank, flag, target))
            break;
        bell_sleep(bell, seen, BELL_SLEEP_NS);
    }
    atomic_fetch_add_explicit(&f->wakings, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&f->active, 1, memory_order_relaxed);
    atomic_store_explicit(&w->blocked_flag, NO_FLAG, memory_order_relaxed);
}

bool worker_await(struct worker *w, uint32_t flag, uint64_t target)
{
    for (uint32_t i = 0; i < SPINS; i++)
        if (fleet_flag_reached(w->rank, flag, target))
            return !fleet_stopped(w->fleet);
    block(w, flag, target);
    return !fleet_stopped(w->fleet);
}
