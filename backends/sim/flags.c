#include "backends/sim/flags.h"

#include "backends/sim/fold.h"
#include "backends/sim/jitter.h"
#include "backends/sim/stats.h"
#include "backends/sim/tracing.h"
#include "backends/sim/worker.h"

static uint64_t flag_slot(const struct sim *s, uint32_t rank, uint32_t flag)
{
    return (uint64_t)rank * s->program->flag_count + flag;
}

static void block_on(struct sim *s, struct worker *w, uint32_t flag, uint64_t target)
{
    uint32_t *first = &s->first_blocked[flag_slot(s, w->id.rank, flag)];

    w->flag = flag;
    w->target = target;
    w->next_blocked = *first;
    *first = worker_index(s, w);
    worker_block(s, w, stats_flag_cause(s, flag));
}

bool flags_met(struct sim *s, struct worker *worker, const struct wait *w)
{
    for (; worker->wait_flag < w->count; worker->wait_flag++) {
        uint32_t flag = w->flag + worker->wait_flag;
        uint64_t target = program_wait_target(s->program, worker->id.rank, w, worker->wait_flag, worker->id.epoch);

        if (s->counters[flag_slot(s, worker->id.rank, flag)] < target) {
            block_on(s, worker, flag, target);
            return false;
        }
    }
    worker->wait_flag = 0;
    return true;
}

bool flags_would_meet(const struct sim *s, const struct worker *worker, const struct wait *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        uint64_t target = program_wait_target(s->program, worker->id.rank, w, i, worker->id.epoch);

        if (s->counters[flag_slot(s, worker->id.rank, w->flag + i)] < target)
            return false;
    }
    return true;
}

/* Takes those that wait for no more than `value` off the list; the result is in order of blocking.
 */
static uint32_t take_satisfied(struct sim *s, uint32_t *link, uint64_t value)
{
    uint32_t taken = NO_WORKER;

    while (*link != NO_WORKER) {
        uint32_t index = *link;
        struct worker *w = &s->workers[index];

        if (w->target > value) {
            link = &w->next_blocked;
            continue;
        }
        *link = w->next_blocked;
        w->next_blocked = taken;
        taken = index;
    }
    return taken;
}

static void wake_late(void *arg, uint64_t index, uint64_t unused)
{
    struct sim *s = arg;

    (void)unused;
    worker_wake(s, &s->workers[index], NULL);
}

/* `by` NULL: nobody asks. */
static void raise_flag(struct sim *s, uint64_t slot, uint64_t add, const struct signal_origin *by)
{
    uint32_t next;

    s->counters[slot] += add;
    next = take_satisfied(s, &s->first_blocked[slot], s->counters[slot]);
    while (next != NO_WORKER) {
        struct worker *w = &s->workers[next];
        uint64_t pause_ps = jitter_pause(s, w->id.rank);

        next = w->next_blocked;
        if (pause_ps > 0)
            engine_after(s->engine, pause_ps, wake_late, s, worker_index(s, w), 0);
        else
            worker_wake(s, w, by);
    }
}

static void signal_seen(void *arg, uint64_t slot, uint64_t add)
{
    raise_flag(arg, slot, add, NULL);
}

/* Where a trace is kept a signal remembers whose it is. */
struct traced_signal {
    struct signal_origin from;
    uint64_t slot, add;
};

static void traced_signal_seen(void *arg, uint64_t signal, uint64_t unused)
{
    struct sim *s = arg;
    struct traced_signal *g = (struct traced_signal *)(uintptr_t)signal, seen = *g;

    (void)unused;
    pool_give(&s->signals, g);
    raise_flag(s, seen.slot, seen.add, &seen.from);
}

static void send(struct sim *s, uint64_t delay_ps, uint64_t slot, uint64_t add, struct signal_origin from)
{
    struct traced_signal *g;

    if (!s->job->trace) {
        engine_after(s->engine, delay_ps, signal_seen, s, slot, add);
        return;
    }
    g = pool_take(&s->signals);
    *g = (struct traced_signal){from, slot, add};
    engine_after(s->engine, delay_ps, traced_signal_seen, s, (uintptr_t)g, 0);
}

void flags_open(struct sim *s)
{
    pool_init(&s->signals, sizeof(struct traced_signal));
}

static uint64_t signal_ps(const struct sim *s, const struct task *t, uint32_t rank, uint32_t to)
{
    /* What a NIC raises is polled in local memory, like a flag of the rank's own. */
    bool peer = to != rank && world_same_node(s->program->world, to, rank);
    uint64_t ps = peer ? s->machine->flag.peer_ps : s->machine->flag.local_ps;

    if (t->op == OP_PUT && to == rank)
        ps += s->machine->nic.latency_ps; /* the acknowledgement's way back */
    return ps;
}

/* A put's on a node that is not simulated becomes the one that arrives in its place. */
static uint64_t signal_slot(const struct sim *s, const struct task_id *id, const struct task *t, uint32_t i,
                            uint32_t to)
{
    struct signal arrives;

    if (to < s->rank_count)
        return flag_slot(s, to, t->signals[i].flag);
    arrives = fold_arrival(s, id, i, to);
    return flag_slot(s, arrives.rank, arrives.flag);
}

void flags_signal(struct sim *s, const struct task_id *id, const struct task *t, struct signal_origin from,
                  uint64_t late_ps)
{
    for (uint32_t i = 0; i < t->signal_count; i++) {
        const struct signal *g = &t->signals[i];
        uint32_t first;
        uint32_t count = program_target_ranks(s->program, id->rank, g->rank, &first);

        for (uint32_t to = first; to < first + count; to++)
            send(s, late_ps + jitter_spread(s, DELAY_SIGNAL, to, signal_ps(s, t, id->rank, to)),
                 signal_slot(s, id, t, i, to), g->add, from);
    }
}
