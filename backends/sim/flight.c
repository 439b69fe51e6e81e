#include "backends/sim/flight.h"

#include <assert.h>

#include "backends/sim/control.h"
#include "backends/sim/cost.h"
#include "backends/sim/data.h"
#include "backends/sim/epoch.h"
#include "backends/sim/fault.h"
#include "backends/sim/flags.h"
#include "backends/sim/jitter.h"
#include "backends/sim/stats.h"
#include "backends/sim/tracing.h"
#include "backends/sim/transfer.h"
#include "backends/sim/worker.h"

static struct flight *take(struct sim *s, struct worker *w)
{
    struct flight *f = pool_take(&s->flights);

    f->id = w->id;
    f->worker = worker_index(s, w);
    f->left_ps = sim_now(s);
    f->accesses = w->accesses;
    w->accesses = NULL;
    return f;
}

/* The task is made again instead of being kept: a flight is then small. */
static void land(struct sim *s, struct flight *f)
{
    struct task t;

    control_task(s, &f->id, &t);
    control_finish(s, &f->id, &t);
    data_finish(s, &f->id, &t, &f->accesses);
    if (t.op == OP_PUT || transfer_is_remote(s, f->id.rank, &t))
        tracing_landed(s, f);
    flags_signal(s, &f->id, &t, (struct signal_origin){f->worker, f->left_ps}, 0);
}

static void all_arrived(struct sim *s, struct flight *f)
{
    struct worker *w = &s->workers[f->worker];
    uint32_t rank = f->id.rank;

    if (s->failed)
        return;
    if (fault_stopped(s, rank)) {
        fault_lose(s, &f->id, "was in hand when its rank stopped");
        return;
    }
    land(s, f);
    pool_give(&s->flights, f);
    w->storing = false;
    epoch_task_done(s, rank, 0);
    if (w->blocked && w->cause == stats_store_cause(s))
        worker_wake(s, w, NULL);
}

static void stores_arrived(void *arg, uint64_t flight, uint64_t unused)
{
    struct flight *f = (struct flight *)(uintptr_t)flight;

    (void)unused;
    if (--f->pending == 0)
        all_arrived(arg, f);
}

static void store_arrived(void *arg, uint64_t flight, uint64_t started_ps)
{
    struct sim *s = arg;
    const struct flight *f = (const struct flight *)(uintptr_t)flight;
    uint64_t late_ps = jitter_extra(s, DELAY_FLOW, f->id.rank, sim_now(s) - started_ps);

    if (late_ps > 0)
        engine_after(s->engine, late_ps, stores_arrived, s, flight, 0);
    else
        stores_arrived(s, flight, 0);
}

static void leave(struct sim *s, struct flight *f, const struct task *t)
{
    f->pending = transfer_stores(s, f->id.rank, t, store_arrived, (uintptr_t)f);
    if (f->pending == 0)
        all_arrived(s, f);
}

static void flushed(void *arg, uint64_t flight, uint64_t unused)
{
    struct sim *s = arg;
    struct flight *f = (struct flight *)(uintptr_t)flight;
    struct task t;

    (void)unused;
    if (s->failed)
        return;
    if (fault_stopped(s, f->id.rank)) {
        all_arrived(s, f); /* nowhere */
        return;
    }
    control_task(s, &f->id, &t);
    leave(s, f, &t);
}

void flight_start_stores(struct sim *s, struct worker *w)
{
    struct flight *f = take(s, w);
    uint64_t flush_ps = cost_flush(s->machine, w->task.op);

    assert(!w->storing);
    w->storing = true;
    if (flush_ps == 0) {
        leave(s, f, &w->task);
        return;
    }
    flush_ps = jitter_spread(s, DELAY_WORK, w->id.rank, fault_work_ps(s, w->id.rank, flush_ps));
    engine_after(s->engine, flush_ps, flushed, s, (uintptr_t)f, 0);
}

struct flight *flight_of_put(struct sim *s, struct worker *w)
{
    return take(s, w);
}

static void put_landed(void *arg, uint64_t flight, uint64_t unused)
{
    struct sim *s = arg;
    struct flight *f = (struct flight *)(uintptr_t)flight;

    (void)unused;
    if (s->failed)
        return;
    if (f->landed) {
        fault_refuse_second(s, &f->id);
        return;
    }
    land(s, f);
    f->landed = true;
    if (--f->pending == 0)
        pool_give(&s->flights, f);
}

/* Perturbing single arrivals would let puts overtake each other. */
void flight_put_arrived(void *arg, uint64_t flight, uint64_t started_ps)
{
    struct sim *s = arg;
    struct flight *f = (struct flight *)(uintptr_t)flight;
    bool ordered = s->machine->nic.kind == NIC_RC;
    uint64_t took_ps = sim_now(s) - started_ps, late_ps, fault_ps;

    late_ps = ordered ? 0 : jitter_extra(s, DELAY_PUT, f->id.rank, took_ps);
    f->pending = fault_put_arrivals(s, &f->id, took_ps, &fault_ps);
    for (uint32_t count = f->pending; count > 0; count--)
        if (late_ps + fault_ps > 0 || count > 1)
            engine_after(s->engine, late_ps + fault_ps, put_landed, s, flight, 0);
        else
            put_landed(s, flight, 0);
}
