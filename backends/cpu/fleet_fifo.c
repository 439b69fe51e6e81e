/* Puts.  A worker writes a command into any empty slot; the proxy takes filled slots in a scrambled
 * order, for nothing is promised between two puts. */
#include <assert.h>

#include "backends/cpu/fleet.h"

enum slot_state { SLOT_EMPTY, SLOT_CLAIMED, SLOT_FILLED, SLOT_TAKEN };

struct command {
    _Atomic uint32_t state;
    struct trace_entry by; /* handed over at end_ns */
    struct task task;
};

uint64_t fifo_bytes(uint64_t capacity)
{
    return capacity * sizeof(struct command);
}

/* ---- the workers' end ---- */

static struct command *claim(struct fifo *f)
{
    for (uint32_t i = 0; i < f->capacity; i++) {
        uint32_t empty = SLOT_EMPTY;

        if (atomic_compare_exchange_strong_explicit(&f->slots[i].state, &empty, SLOT_CLAIMED, memory_order_acquire,
                                                    memory_order_relaxed))
            return &f->slots[i];
    }
    return NULL;
}

bool fifo_push(struct worker *w, const struct task *t, const struct trace_entry *by)
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
    atomic_fetch_add_explicit(&f->filled, 1, memory_order_relaxed);
    bell_ring(&w->fleet->proxy_bell);
    return true;
}

/* ---- reports ---- */

uint32_t fifo_collect(const struct rank *r, struct hang_open *out)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < r->fifo.capacity; i++) {
        const struct command *c = &r->fifo.slots[i];

        if (c->state == SLOT_FILLED || c->state == SLOT_TAKEN)
            out[count++] = (struct hang_open){
                .rank = r->index,
                .queue = c->by.at.queue,
                .index = c->by.at.index,
                .epoch = c->by.at.epoch,
                .state = c->state == SLOT_TAKEN ? "is on its way to another node" : "waits for the proxy",
            };
    }
    return count;
}

/* ---- the proxy's end ---- */

/* Looks from a random slot on. */
static struct command *find_filled(struct fifo *f)
{
    f->random = f->random * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
    for (uint32_t i = 0; i < f->capacity; i++) {
        struct command *c = &f->slots[((f->random >> 33) + i) % f->capacity];

        if (atomic_load_explicit(&c->state, memory_order_acquire) == SLOT_FILLED)
            return c;
    }
    return NULL;
}

static const struct signal *remote_signal(const struct fleet *f, uint32_t rank, const struct task *t)
{
    for (uint32_t i = 0; i < t->signal_count; i++)
        if (t->signals[i].rank != RANK_NODE && !world_same_node(f->program->world, rank, t->signals[i].rank))
            return &t->signals[i];
    return NULL;
}

static uint64_t window_offset(const struct program *p, const struct operand *o, uint64_t epoch)
{
    return program_buffer_offset(p, o->buffer, epoch) + o->offset * dtype_bytes(p->buffers[o->buffer].dtype);
}

/* This put raises the flag, once an epoch, and nobody else does: it knows the value. */
static void fill_put(const struct rank *r, const struct command *c, struct put *out)
{
    const struct program *p = r->fleet->program;
    const struct task *t = &c->task;
    const struct signal *s = remote_signal(r->fleet, r->index, t);

    assert(s);
    *out = (struct put){
        .peer = s->rank,
        .flag = s->flag,
        .value = (c->by.at.epoch - 1) * program_flag_total(p, s->rank, s->flag) + s->add,
        .bytes = t->m * t->n * dtype_bytes(p->buffers[t->a.buffer].dtype),
        .id = (uint64_t)(c - r->fifo.slots),
    };
    if (out->bytes > 0) {
        assert(t->out[0].rank == s->rank);
        out->from = window_offset(p, &t->a, c->by.at.epoch);
        out->to = window_offset(p, &t->out[0], c->by.at.epoch);
    }
}

static bool take(void *owner, struct put *out)
{
    struct rank *r = owner;
    struct command *c;

    if (atomic_load_explicit(&r->fifo.filled, memory_order_relaxed) == 0)
        return false;
    c = find_filled(&r->fifo);
    if (!c)
        return false; /* being written */
    atomic_store_explicit(&c->state, SLOT_TAKEN, memory_order_relaxed);
    atomic_fetch_sub_explicit(&r->fifo.filled, 1, memory_order_relaxed);
    fill_put(r, c, out);
    return true;
}

/* The far signal is logged here, where it is known who sent it. */
static void log_flight(struct rank *r, const struct command *c)
{
    struct trace_entry flight = c->by, far = c->by;
    struct put put;

    fill_put(r, c, &put);
    flight.kind = TRACE_ENTRY_FLIGHT;
    flight.begin_ns = c->by.end_ns;
    flight.end_ns = clock_now_ns();
    trace_log_add(&r->fifo.log, &flight);
    far.kind = TRACE_ENTRY_SIGNAL;
    far.rank = put.peer;
    far.flag = put.flag;
    far.value = put.value;
    trace_log_add(&r->fifo.log, &far);
}

static void complete(void *owner, uint64_t id)
{
    struct rank *r = owner;
    struct command *c = &r->fifo.slots[id];

    log_flight(r, c);
    fleet_signal_task(r->fleet, r->index, &c->task, &r->fifo.log, &c->by);
    atomic_store_explicit(&c->state, SLOT_EMPTY, memory_order_release);
    atomic_fetch_sub_explicit(&r->fleet->active, 1, memory_order_relaxed);
    bell_ring(&r->fifo.emptied);
    if (fleet_puts_are_complete(r->fleet))
        bell_ring(&r->fleet->end_bell);
}

/* Acquire at the put's flag, release at the rank's own: who waits there reads the put's bytes. */
static bool look(void *owner)
{
    struct rank *r = owner;
    bool any = false;

    for (uint32_t i = 0; i < r->arrival_count; i++) {
        struct arrival *a = &r->arrivals[i];
        uint64_t value = __atomic_load_n(&r->put_flags[a->flag], __ATOMIC_ACQUIRE);

        if (value == a->seen)
            continue;
        fleet_signal(r->fleet, r->index, a->flag, value - a->seen);
        a->seen = value;
        any = true;
    }
    return any;
}

const struct proxy_source fifo_source = {.take = take, .complete = complete, .look = look};
