/* A worker runs through the phases of its task in no time until one of them has to wait or takes
 * time; it then goes on when it is woken, or when its last delay or flow has ended. */
#include "backends/sim/worker.h"

#include <assert.h>

#include "backends/sim/control.h"
#include "backends/sim/cost.h"
#include "backends/sim/data.h"
#include "backends/sim/epoch.h"
#include "backends/sim/fault.h"
#include "backends/sim/flags.h"
#include "backends/sim/flight.h"
#include "backends/sim/hang.h"
#include "backends/sim/jitter.h"
#include "backends/sim/put.h"
#include "backends/sim/stats.h"
#include "backends/sim/tracing.h"
#include "backends/sim/transfer.h"

static void worker_run(struct sim *s, struct worker *w);

static void piece_done(void *arg, uint64_t index, uint64_t unused)
{
    struct sim *s = arg;
    struct worker *w = &s->workers[index];

    (void)unused;
    if (--w->pending > 0)
        return;
    stats_busy(s, w);
    worker_run(s, w);
}

static void flow_done(void *arg, uint64_t index, uint64_t started_ps)
{
    struct sim *s = arg;
    uint64_t late_ps = jitter_extra(s, DELAY_FLOW, s->workers[index].id.rank, sim_now(s) - started_ps);

    if (late_ps > 0)
        engine_after(s->engine, late_ps, piece_done, s, index, 0);
    else
        piece_done(s, index, 0);
}

/* Occupies the worker for `ps` beside the flows already pending; true when there is neither. */
static bool charge(struct sim *s, struct worker *w, uint64_t ps)
{
    if (ps > 0) {
        uint64_t spread_ps = jitter_spread(s, DELAY_WORK, w->id.rank, fault_work_ps(s, w->id.rank, ps));

        w->pending++;
        engine_after(s->engine, spread_ps, piece_done, s, worker_index(s, w), 0);
    }
    return w->pending == 0;
}

/* A peer's data come as a flow from its port. */
static void pull(struct sim *s, struct worker *w, uint32_t from, uint64_t bytes)
{
    w->pending += transfer_pull(s, w->id.rank, from, bytes, flow_done, worker_index(s, w));
}

static bool waits_met(struct sim *s, struct worker *w, enum wait_phase phase)
{
    for (; w->wait < w->task.wait_count; w->wait++) {
        const struct wait *x = &w->task.waits[w->wait];

        if (x->phase == phase && !flags_met(s, w, x))
            return false;
    }
    w->wait = 0;
    return true;
}

/* ---- phases: true when the worker goes on at once ---- */

static bool phase_pop(struct sim *s, struct worker *w)
{
    struct rank *r = &s->ranks[w->id.rank];
    const struct crew *c = &s->program->crews[w->crew];

    for (; w->place < c->queue_count; w->place++) {
        uint32_t q = c->queues[w->place];

        if (r->cursors[q] == r->lengths[q])
            continue;
        w->id.queue = q;
        w->id.index = r->cursors[q]++;
        program_task(s->program, w->id.rank, q, w->id.index, &w->task);
        w->phase = PHASE_ENTRY;
        return true;
    }
    return false;
}

static bool phase_entry(struct sim *s, struct worker *w)
{
    if (!waits_met(s, w, WAIT_ENTRY))
        return false;
    control_select(s, &w->id, &w->task);
    w->began_ps = sim_now(s);
    w->owed_ps = cost_start(s->machine, w->task.op, w->fetched, w->streaming);
    w->fetched = true; /* the next one will be, behind this one's work */
    w->streaming = false;
    w->step = 0;
    w->phase = op_walks(w->task.op) ? PHASE_STEPS : PHASE_LATE;
    if (task_indexes(&w->task))
        w->phase = PHASE_INDEXED;
    else
        data_reads_source(s, w);
    return true;
}

static bool phase_indexed(struct sim *s, struct worker *w)
{
    uint64_t values = w->task.m * program_index_terms(&w->task);
    uint32_t met = NO_FLAG; /* rows of one flag often follow each other */

    for (; w->task.indexed.count > 0 && w->step < values; w->step++) {
        struct wait wait;
        uint64_t value;

        if (!control_index(s, &w->id, &w->task, w->step, &value))
            continue;
        wait = program_indexed_wait(&w->task, value);
        if (wait.flag == met)
            continue;
        if (!flags_met(s, w, &wait))
            return false;
        met = wait.flag;
    }
    data_reads_source(s, w);
    w->step = 0;
    w->phase = op_walks(w->task.op) ? PHASE_STEPS : PHASE_LATE;
    return true;
}

/* A step's operands: pulled from peers where they hold them; rows by index from whoever has each. */
static void read_step(struct sim *s, struct worker *w, const struct segment *g, const struct operand *a,
                      const struct operand *b)
{
    struct extent ea = step_extent_a(&w->task, g), eb = step_extent_b(&w->task, g);

    if (w->task.by_index) {
        w->pending += transfer_gather(s, &w->id, &w->task, flow_done, worker_index(s, w));
    } else {
        pull(s, w, a->rank, transfer_bytes(s, a, ea.rows, ea.cols));
        data_reads_step(s, w, a, &ea);
    }
    pull(s, w, b->rank, transfer_bytes(s, b, eb.rows, eb.cols));
    data_reads_step(s, w, b, &eb);
}

/* Steps whose flags are up are charged in one go: flags never fall. */
static bool phase_steps(struct sim *s, struct worker *w)
{
    uint32_t steps = program_step_count(&w->task);
    uint64_t ps = w->owed_ps;
    struct segment g = {0};
    struct operand a, b;

    w->owed_ps = 0;
    for (; w->step < steps; w->step++) {
        program_step(s->program, w->id.rank, &w->task, w->step, &g, &a, &b);
        if (!flags_would_meet(s, w, &g.wait))
            break;
        w->wait_flag = 0; /* it may have been blocked on a later one of these */
        ps += cost_segment(s->machine, s->ranks[w->id.rank].step_ps, &w->task, g.k);
        read_step(s, w, &g, &a, &b);
    }
    if (!charge(s, w, ps))
        return false;
    if (w->step < steps)
        return flags_met(s, w, &g.wait);
    w->phase = PHASE_LATE;
    return true;
}

static bool phase_late(struct sim *s, struct worker *w)
{
    if (!waits_met(s, w, WAIT_LATE))
        return false;
    data_reads_addends(s, w);
    data_writes(s, w);
    w->phase = w->task.op == OP_PUT ? PHASE_RESERVE : PHASE_WORK;
    return true;
}

static bool phase_reserve(struct sim *s, struct worker *w)
{
    if (!put_reserve(s, w))
        return false;
    w->phase = PHASE_WORK;
    return true;
}

static bool phase_work(struct sim *s, struct worker *w)
{
    static const enum phase next[] = {
        [OP_NOP] = PHASE_FINISH,       [OP_GEMM] = PHASE_STORE,   [OP_COPY] = PHASE_MOVE,
        [OP_REDUCE] = PHASE_MOVE,      [OP_PUT] = PHASE_PUSH,     [OP_ATTENTION] = PHASE_STORE,
        [OP_GATHER_ROWS] = PHASE_MOVE, [OP_ROUTE] = PHASE_FINISH, [OP_COMBINE_ROWS] = PHASE_MOVE,
    };
    uint64_t ps = w->owed_ps + cost_epilogue(s->machine, &w->task);

    w->owed_ps = 0;
    w->phase = next[w->task.op];
    if (w->phase == PHASE_STORE && w->task.addend_count > 0) {
        uint64_t bytes = transfer_addend_bytes(s, &w->task);

        ps += cost_addends(s->machine, &w->task, bytes);
        pull(s, w, w->task.addend.rank, bytes);
    }
    if (w->task.op == OP_ROUTE)
        ps += cost_bytes(transfer_route_bytes(s->program, w->id.rank, w->task.route), s->machine->copy.reduce_rate);
    if (w->phase == PHASE_MOVE && transfer_has_flows(s, &w->id, &w->task))
        ps = cost_before_flows(s->machine, ps);
    return charge(s, w, ps);
}

/* COPY, REDUCE and what reads by index stream: reading, adding, local writes and flows go on side by side. */
static bool phase_move(struct sim *s, struct worker *w)
{
    const struct task *t = &w->task;

    if (task_indexes(t)) {
        w->pending += transfer_gather(s, &w->id, t, flow_done, worker_index(s, w));
        w->phase = PHASE_FINISH;
        return charge(s, w, transfer_gather_ps(s, &w->id, t));
    }
    if (t->op == OP_REDUCE)
        w->pending += transfer_addends(s, w->id.rank, t, flow_done, worker_index(s, w));
    else
        pull(s, w, t->a.rank, transfer_bytes(s, &t->a, t->m, t->n));
    w->pending += transfer_stores(s, w->id.rank, t, flow_done, worker_index(s, w));
    w->phase = PHASE_FINISH;
    return charge(s, w, transfer_local_ps(s, w->id.rank, t));
}

/* Results are flushed and remote stores leave behind the worker's back, one task's at a time. */
static bool phase_store(struct sim *s, struct worker *w)
{
    bool exact = s->options.data && cost_flush(s->machine, w->task.op) > 0; /* accesses end when it has landed */

    if (!exact && !transfer_is_remote(s, w->id.rank, &w->task)) {
        w->phase = PHASE_FINISH;
        return true;
    }
    if (w->storing) {
        worker_block(s, w, stats_store_cause(s));
        return false;
    }
    tracing_task(s, w);
    flight_start_stores(s, w);
    w->phase = PHASE_POP;
    return true;
}

static bool phase_push(struct sim *s, struct worker *w)
{
    tracing_task(s, w);
    put_push(s, w);
    epoch_task_done(s, w->id.rank, 0); /* the rest is the proxy's and the NIC's */
    w->phase = PHASE_POP;
    return true;
}

/* What is not in flight is flushed without an event of its own: its signals, and the epoch's end, are so much later. */
static bool phase_finish(struct sim *s, struct worker *w)
{
    uint64_t flush_ps = cost_flush(s->machine, w->task.op);

    w->streaming = w->task.op == OP_COPY || w->task.op == OP_REDUCE || w->task.op == OP_GATHER_ROWS ||
                   w->task.op == OP_COMBINE_ROWS;
    control_finish(s, &w->id, &w->task);
    data_finish(s, &w->id, &w->task, &w->accesses);
    tracing_task(s, w);
    flags_signal(s, &w->id, &w->task, (struct signal_origin){worker_index(s, w), sim_now(s)}, flush_ps);
    epoch_task_done(s, w->id.rank, flush_ps);
    w->phase = PHASE_POP;
    return true;
}

/* Somebody wants to know where the run stands, and then that it ends. */
static void look_for_interrupt(struct sim *s)
{
    const volatile sig_atomic_t *interrupted = s->job->interrupted;

    if (s->failed || !interrupted || !*interrupted)
        return;
    s->failed = true;
    hang_describe(s, ST_INTERRUPTED, "stopped from outside");
}

static void worker_run(struct sim *s, struct worker *w)
{
    static bool (*const phases[])(struct sim *, struct worker *) = {
        [PHASE_INDEXED] = phase_indexed, [PHASE_POP] = phase_pop,       [PHASE_ENTRY] = phase_entry,
        [PHASE_STEPS] = phase_steps,     [PHASE_LATE] = phase_late,     [PHASE_RESERVE] = phase_reserve,
        [PHASE_WORK] = phase_work,       [PHASE_MOVE] = phase_move,     [PHASE_STORE] = phase_store,
        [PHASE_PUSH] = phase_push,       [PHASE_FINISH] = phase_finish,
    };

    look_for_interrupt(s);
    while (!s->failed && !fault_stopped(s, w->id.rank) && phases[w->phase](s, w))
        ;
}

/* ---- from outside ---- */

void worker_start(struct sim *s, struct worker *w)
{
    assert(!w->blocked && !w->storing && w->pending == 0);
    w->id.epoch = s->ranks[w->id.rank].epoch;
    w->place = 0;
    w->phase = PHASE_POP;
    w->fetched = false;
    w->streaming = false;
    w->since_ps = sim_now(s);
    worker_run(s, w);
}

/* A task fetched ahead that has to wait at its entry is looked at anew, and pays for it. */
void worker_block(struct sim *s, struct worker *w, uint32_t cause)
{
    assert(!w->blocked && w->pending == 0 && w->since_ps == sim_now(s));
    w->blocked = true;
    w->cause = cause;
    w->streaming = false;
    if (w->phase == PHASE_ENTRY)
        w->fetched = false;
}

void worker_wake(struct sim *s, struct worker *w, const struct signal_origin *by)
{
    assert(w->blocked);
    w->blocked = false;
    tracing_wait(s, w, by);
    stats_waited(s, w);
    worker_run(s, w);
}
