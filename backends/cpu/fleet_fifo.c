/* Puts.  A worker writes a command into any empty slot; the rank's proxy takes filled slots in a
 * scrambled order, for nothing is promised between two puts.  The proxy waits for commands and for
 * nothing else, so a full FIFO always drains. */
#include <assert.h>

#include "backends/cpu/fleet.h"

enum slot_state { SLOT_EMPTY, SLOT_CLAIMED, SLOT_FILLED };

struct command {
    _Atomic uint32_t state;
    struct log_entry by; /* handed over at end_ns */
    struct task task;
};

uint64_t fifo_bytes(uint64_t capacity)
{
    return capacity * sizeof(struct command);
}

static struct command *claim(struct fifo *f)
{
    for (uint32_t i = 0; i < f->capacity; i++) {
        uint32_t empty = SLOT_EMPTY;

        if (atomic_compare_exchange_strong_explicit(&f->slots[i].state, &empty, SLOT_CLAIMED,
                                                    memory_order_acquire, memory_order_relaxed))
            return &f->slots[i];
    }
    return NULL;
}

bool fifo_push(struct worker *w, const struct task *t, const struct log_entry *by)
{
    struct fifo *f = &w->rank->fifo;
    uint64_t since_ns = 0; /* that the worker has had to wait; 0: it has not */
    struct command *c;

    assert(f->slots); /* a put needs a second node */
    for (;;) {
        uint32_t seen = bell_read(&f->emptied);

        c = claim(f);
        if (c)
            break;
        if (fleet_stopped(w->fleet))
            return false;
        since_ns = since_ns ? since_ns : clock_now_ns();
        bell_sleep(&f->emptied, seen, BELL_SLEEP_NS);
    }
    if (since_ns)
        worker_log_wait(w, NO_FLAG, 0, since_ns);
    c->by = *by;
    c->by.end_ns = clock_now_ns();
    c->task = *t;
    atomic_fetch_add_explicit(&w->fleet->active, 1, memory_order_relaxed);
    atomic_store_explicit(&c->state, SLOT_FILLED, memory_order_release);
    bell_ring(&f->filled);
    return true;
}

/* Data first, then the signals: release at the flags covers this put and, as far as a reader may
 * rely on it, no other. */
static void deliver(struct rank *r, struct command *c)
{
    struct fleet *fleet = r->fleet;

    struct log_entry flight = c->by;

    tile_move(NULL, &fleet->memory, r->index, c->by.at.epoch, &c->task);
    flight.kind = LOG_FLIGHT;
    flight.begin_ns = c->by.end_ns;
    flight.end_ns = clock_now_ns();
    fleet_log_add(&r->fifo.log, &flight);
    fleet_signal_task(fleet, r->index, &c->task, &r->fifo.log, &c->by);
    atomic_store_explicit(&c->state, SLOT_EMPTY, memory_order_release);
    atomic_fetch_sub_explicit(&fleet->active, 1, memory_order_relaxed);
    bell_ring(&r->fifo.emptied);
}

/* Takes one filled slot, looking from `from` on. */
static bool deliver_one(struct rank *r, uint64_t from)
{
    struct fifo *f = &r->fifo;

    for (uint32_t i = 0; i < f->capacity; i++) {
        struct command *c = &f->slots[(from + i) % f->capacity];

        if (atomic_load_explicit(&c->state, memory_order_acquire) == SLOT_FILLED) {
            deliver(r, c);
            return true;
        }
    }
    return false;
}

void *fifo_main(void *arg)
{
    struct rank *r = arg;
    uint64_t random = r->fleet->job->seed ^ r->index;

    for (;;) {
        uint32_t seen = bell_read(&r->fifo.filled);
        bool closed = atomic_load_explicit(&r->fifo.closed, memory_order_acquire);

        random = random * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
        if (deliver_one(r, random >> 33))
            continue;
        if (closed)
            return NULL;
        bell_sleep(&r->fifo.filled, seen, BELL_SLEEP_NS);
    }
}

void fifo_close(struct fifo *f)
{
    atomic_store_explicit(&f->closed, 1, memory_order_release);
    bell_ring(&f->filled);
}
