#include <assert.h>

#include "backends/cpu/fleet.h"
#include "backends/ops/route.h"
#include "core/route.h"

/* ---- what the log says ---- */

static struct trace_entry entry_of(const struct worker *w, enum trace_entry_kind kind, uint64_t begin_ns)
{
    return (struct trace_entry){.kind = kind,
                                .lane = {w->rank->index, w->crew, w->place},
                                .at = {w->at.queue, w->at.op, w->at.index, w->at.epoch},
                                .begin_ns = begin_ns,
                                .end_ns = clock_now_ns(),
                                .rank = w->rank->index,
                                .inside = w->begun};
}

void worker_log_wait(struct worker *w, uint32_t flag, uint64_t target, uint64_t since_ns)
{
    struct trace_entry e = entry_of(w, TRACE_ENTRY_WAIT, since_ns);

    e.flag = flag;
    e.value = target;
    trace_log_add(&w->log, &e);
}

/* ---- waits ---- */

static uint32_t cause_of(const struct program *p, uint32_t flag)
{
    const struct flag_group *g = program_flag_group(p, flag);

    assert(g);
    return (uint32_t)(g - p->flag_groups);
}

static void account_wait(struct worker *w, uint32_t cause, uint64_t since_ns)
{
    uint64_t waited_ns = clock_now_ns() - since_ns;

    w->paused_ns += waited_ns;
    if (w->at.epoch > w->fleet->job->timing.warmup)
        w->waiting_ns[cause] += waited_ns;
}

static bool await_flag(struct worker *w, uint32_t flag, uint64_t target)
{
    uint64_t since_ns;

    if (fleet_flag_reached(w->rank, flag, target))
        return !fleet_stopped(w->fleet);
    since_ns = clock_now_ns();
    if (!worker_await(w, flag, target))
        return false;
    account_wait(w, cause_of(w->fleet->program, flag), since_ns);
    worker_log_wait(w, flag, target, since_ns);
    return true;
}

static bool await(struct worker *w, const struct wait *wait)
{
    const struct program *p = w->fleet->program;

    for (uint32_t i = 0; i < wait->count; i++)
        if (!await_flag(w, wait->flag + i, program_wait_target(p, w->rank->index, wait, i, w->at.epoch)))
            return false;
    return true;
}

static bool await_phase(struct worker *w, const struct task *t, enum wait_phase phase)
{
    w->at.phase = phase;
    for (uint32_t i = 0; i < t->wait_count; i++)
        if (t->waits[i].phase == phase && !await(w, &t->waits[i]))
            return false;
    return true;
}

/* ---- tasks ---- */

static bool compute_steps(struct worker *w, const struct task *t)
{
    struct fleet *f = w->fleet;
    uint32_t steps = program_step_count(t);

    tile_begin(w->scratch, t);
    for (w->at.step = 0; w->at.step < steps; w->at.step++) {
        struct segment s;
        struct operand a, b;

        program_step(f->program, w->rank->index, t, w->at.step, &s, &a, &b);
        if (!await(w, &s.wait))
            return false;
        tile_step(w->scratch, &f->memory, w->rank->index, w->at.epoch, t, w->at.step);
    }
    w->at.step = NO_STEP;
    return true;
}

static bool hand_over(struct worker *w, const struct task *t, uint64_t begin_ns)
{
    const struct buffer *from = &w->fleet->program->buffers[t->a.buffer];
    uint64_t since_ns = clock_now_ns(), bytes = t->m * t->n * dtype_bytes(from->dtype);
    struct trace_entry e = entry_of(w, TRACE_ENTRY_TASK, begin_ns);

    if (!fifo_push(w, t, &e))
        return false;
    account_wait(w, w->fleet->program->flag_group_count, since_ns);
    e = entry_of(w, TRACE_ENTRY_TASK, begin_ns);
    trace_log_add(&w->log, &e);
    w->puts++;
    *(buffer_is_control(from) ? &w->put_control_bytes : &w->put_bytes) += bytes;
    return true;
}

static void finish_task(struct worker *w, const struct task *t, uint64_t begin_ns)
{
    struct trace_entry e = entry_of(w, TRACE_ENTRY_TASK, begin_ns);

    trace_log_add(&w->log, &e);
    fleet_signal_task(w->fleet, w->rank->index, t, &w->log, &e);
}

/* Row by row, as the index list names them. */
static bool await_indexed(struct worker *w, const struct task *t)
{
    uint64_t terms = program_index_terms(t);

    for (uint64_t i = 0; t->indexed.count > 0 && i < t->m * terms; i++) {
        struct wait wait;
        uint64_t value;

        if (!tile_index(&w->fleet->memory, w->rank->index, w->at.epoch, t, i / terms, i % terms, &value))
            continue;
        wait = program_indexed_wait(t, value);
        if (!await(w, &wait))
            return false;
    }
    return true;
}

/* False: more was routed here than there is room for, and the scenario does not say to drop it. */
static bool route_tokens(struct worker *w, const struct task *t)
{
    struct fleet *f = w->fleet;
    uint64_t dropped = tile_route(&f->memory, w->rank->index, w->at.epoch, t);

    if (dropped > 0 && !t->route->drop) {
        fleet_refuse(w, t, dropped);
        return false;
    }
    atomic_fetch_add_explicit(&f->dropped, dropped, memory_order_relaxed);
    return true;
}

static bool run_task(struct worker *w, struct task *t)
{
    struct fleet *f = w->fleet;
    uint64_t begin_ns;

    w->begun = false;
    if (!await_phase(w, t, WAIT_ENTRY))
        return false;
    w->begun = true;
    begin_ns = clock_now_ns();
    tile_select(&f->memory, w->rank->index, w->at.epoch, t);
    if (!await_indexed(w, t) || (t->op == OP_ROUTE && !route_tokens(w, t)))
        return false;
    if (op_walks(t->op) && !compute_steps(w, t))
        return false;
    if (!await_phase(w, t, WAIT_LATE))
        return false;
    w->tasks++;
    if (t->op == OP_PUT)
        return hand_over(w, t, begin_ns); /* the proxy moves and signals */
    if (op_walks(t->op))
        tile_finish(w->scratch, &f->memory, w->rank->index, w->at.epoch, t);
    else if (t->op != OP_NOP && t->op != OP_ROUTE)
        tile_move(w->scratch, &f->memory, w->rank->index, w->at.epoch, t);
    finish_task(w, t, begin_ns);
    return true;
}

/* ---- queues and epochs ---- */

static bool drain(struct worker *w, uint32_t queue)
{
    const struct program *p = w->fleet->program;
    uint64_t length = program_queue_length(p, w->rank->index, queue);
    struct task t;

    w->at.queue = queue;
    for (;;) {
        w->at.index = atomic_fetch_add_explicit(&w->rank->popped[queue].value, 1, memory_order_relaxed);
        if (w->at.index >= length)
            return true;
        program_task(p, w->rank->index, queue, w->at.index, &t);
        w->at.op = t.op;
        if (!run_task(w, &t) || fleet_stopped(w->fleet))
            return false; /* still at this task, for the report */
    }
}

static bool drain_all(struct worker *w)
{
    const struct crew *crew = &w->fleet->program->crews[w->crew];

    for (uint32_t i = 0; i < crew->queue_count; i++)
        if (!drain(w, crew->queues[i]))
            return false;
    return true;
}

/* The last one of the rank to arrive turns to the next epoch, the others wait for it. */
static bool arrive(struct worker *w, uint64_t epoch)
{
    struct fleet *f = w->fleet;
    uint64_t workers = f->worker_count / f->rank_count;
    uint64_t before =
        atomic_fetch_add_explicit(&w->rank->flags[own_flag(f, OWN_ARRIVED)].value, 1, memory_order_acq_rel);

    if (before + 1 == epoch * workers)
        return epoch_turn(w, epoch);
    return epoch == f->epochs || worker_await(w, own_flag(f, OWN_BEGUN), epoch + 1);
}

static bool run_epoch(struct worker *w, uint64_t epoch)
{
    uint64_t begin_ns = clock_now_ns(), drained_ns;

    w->at = (struct position){.epoch = epoch, .step = NO_STEP};
    w->paused_ns = 0;
    if (!drain_all(w))
        return false;
    drained_ns = clock_now_ns();
    if (!arrive(w, epoch))
        return false;
    if (epoch > w->fleet->job->timing.warmup) {
        w->busy_ns += drained_ns - begin_ns - w->paused_ns;
        w->idle_ns += clock_now_ns() - drained_ns;
    }
    return true;
}

void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct fleet *f = w->fleet;

    w->scratch = scratch_create();
    if (worker_await(w, own_flag(f, OWN_BEGUN), 1))
        for (uint64_t epoch = 1; epoch <= f->epochs && run_epoch(w, epoch); epoch++)
            ;
    scratch_destroy(w->scratch);
    if (!fleet_stopped(f))
        atomic_fetch_sub_explicit(&f->active, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&f->ended, 1, memory_order_release); /* behind what it has handed over */
    bell_ring(&f->end_bell);
    return NULL;
}
