#include "backends/sim/put.h"

#include <assert.h>

#include "backends/sim/control.h"
#include "backends/sim/fault.h"
#include "backends/sim/flight.h"
#include "backends/sim/jitter.h"
#include "backends/sim/stats.h"
#include "backends/sim/transfer.h"
#include "backends/sim/worker.h"

bool put_reserve(struct sim *s, struct worker *w)
{
    struct fifo *f = &s->ranks[w->id.rank].fifo;
    uint32_t index = worker_index(s, w);

    if (f->used < s->machine->proxy.fifo_depth) {
        f->used++;
        return true;
    }
    w->next_blocked = NO_WORKER;
    if (f->first_blocked == NO_WORKER)
        f->first_blocked = index;
    else
        s->workers[f->last_blocked].next_blocked = index;
    f->last_blocked = index;
    worker_block(s, w, stats_fifo_cause(s));
    return false;
}

/* The longest waiting worker may try again. */
static void free_place(struct sim *s, struct fifo *f)
{
    struct worker *w;

    f->used--;
    if (f->first_blocked == NO_WORKER)
        return;
    w = &s->workers[f->first_blocked];
    f->first_blocked = w->next_blocked;
    worker_wake(s, w, NULL);
}

static uint32_t put_target(const struct task *t, uint32_t rank)
{
    if (t->out_count > 0)
        return t->out[0].rank;
    for (uint32_t i = 0; i < t->signal_count; i++)
        if (t->signals[i].rank != rank)
            return t->signals[i].rank;
    assert(!"a put has a target");
    return rank;
}

static void posted(void *arg, uint64_t flight, uint64_t unused)
{
    struct sim *s = arg;
    struct flight *f = (struct flight *)(uintptr_t)flight;
    struct fifo *fifo = &s->ranks[f->id.rank].fifo;
    struct task t;
    uint64_t bytes;

    (void)unused;
    if (s->failed)
        return;
    if (fault_stopped(s, f->id.rank)) {
        fault_lose(s, &f->id, "was queued when its rank stopped");
        return;
    }
    control_task(s, &f->id, &t);
    bytes = transfer_bytes(s, &t.a, t.m, t.n);
    if (buffer_is_control(&s->program->buffers[t.a.buffer]))
        s->result->put_control_bytes += bytes;
    else
        s->result->put_bytes += bytes;
    fabric_put(s->fabric, f->id.rank, put_target(&t, f->id.rank), bytes, flight_put_arrived, s, flight, sim_now(s));
    free_place(s, fifo);
}

/* The proxy posts in order, one command after the other, each once it has noticed it. */
void put_push(struct sim *s, struct worker *w)
{
    struct rank *r = &s->ranks[w->id.rank];
    struct flight *f = flight_of_put(s, w);
    uint64_t now = sim_now(s);
    uint64_t seen_ps = now + jitter_spread(s, DELAY_PROXY, w->id.rank, s->machine->proxy.notice_ps);

    r->fifo.proxy_free_ps =
        max_u64(seen_ps, r->fifo.proxy_free_ps) + jitter_spread(s, DELAY_PROXY, w->id.rank, s->machine->proxy.post_ps);
    s->result->puts++;
    engine_after(s->engine, r->fifo.proxy_free_ps - now, posted, s, (uintptr_t)f, 0);
}
