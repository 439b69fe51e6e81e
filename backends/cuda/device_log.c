#include "backends/cuda/device_log.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/world.h"

/* ---- time ---- */

struct device_clock device_clock_of(const struct gpu_log *log, uint64_t tick_ns, uint64_t host_ahead_ns)
{
    struct device_clock c = {log->begin, 0, tick_ns, host_ahead_ns};

    if (log->begin.ns > 0 && log->end.ns > log->begin.ns && log->end.cycles > log->begin.cycles)
        c.ns_per_cycle = (double)(log->end.ns - log->begin.ns) / (double)(log->end.cycles - log->begin.cycles);
    return c;
}

uint64_t device_clock_ns(const struct device_clock *c, const struct gpu_stamp *s)
{
    double since_ns = (double)(int64_t)(s->cycles - c->origin.cycles) * c->ns_per_cycle;
    uint64_t fine = c->ns_per_cycle > 0 ? c->origin.ns + (uint64_t)llround(since_ns) : s->ns;

    return min_u64(max_u64(fine, s->ns), s->ns + c->tick_ns) + c->host_ahead_ns;
}

/* ---- a worker's records, task by task ---- */

struct item {
    uint64_t place; /* in the worker's order: of the queue in its crew, then of the task */
    uint64_t end_ns;
    const struct gpu_record *record;
};

/* A task's. */
struct items {
    const struct item *first;
    uint64_t count;
};

struct reader {
    const struct device_log *log;
    struct trace_log *out;
    uint64_t free_ns; /* since when the worker has had nothing to do */
};

static uint64_t stamp_ns(const struct reader *x, const struct gpu_stamp *s)
{
    return device_clock_ns(&x->log->clock, s);
}

static bool is_finished(const struct gpu_record *r)
{
    return r->end.ns > 0;
}

static uint64_t end_ns(const struct reader *x, const struct gpu_record *r)
{
    return is_finished(r) ? stamp_ns(x, &r->end) : x->log->aborted_ns;
}

static uint64_t place_of(const struct device_log *log, const struct gpu_record *r)
{
    const struct crew *crew = &log->program->crews[log->lane.crew];
    uint64_t position = 0;

    while (position < crew->queue_count && crew->queues[position] != r->queue)
        position++;
    return position << 32 | r->index;
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

static const struct gpu_record *find_finished(const struct items *t, enum gpu_event event)
{
    for (uint64_t i = 0; i < t->count; i++)
        if (t->first[i].record->event == event && is_finished(t->first[i].record))
            return t->first[i].record;
    return NULL;
}

/* ---- waits ---- */

/* Between `from` and `to`, one at a time: what lasts longer goes on where the other ends.  Returns
 * the end of the last one, or `from`. */
static uint64_t add_waits(const struct reader *x, struct trace_entry e, const struct items *t, bool inside,
                          uint64_t from, uint64_t to)
{
    e.kind = TRACE_ENTRY_WAIT;
    e.inside = inside;
    for (uint64_t i = 0; i < t->count; i++) {
        const struct gpu_record *r = t->first[i].record;

        if (r->event != GPU_WAITED || (r->inside != 0) != inside)
            continue;
        e.begin_ns = max_u64(stamp_ns(x, &r->begin), from);
        e.end_ns = min_u64(t->first[i].end_ns, to);
        if (e.end_ns <= e.begin_ns)
            continue;
        e.flag = r->flag == GPU_NO_FLAG ? NO_FLAG : r->flag;
        e.value = r->wanted;
        trace_log_add(x->out, &e);
        from = e.end_ns;
    }
    return from;
}

/* ---- signals, and what goes on without its worker ---- */

static void add_signals(const struct reader *x, struct trace_entry e, const struct task *t, uint64_t out_ns)
{
    e.kind = TRACE_ENTRY_SIGNAL;
    e.begin_ns = out_ns;
    for (uint32_t i = 0; i < t->signal_count; i++) {
        uint32_t first, count = program_target_ranks(x->log->program, e.lane.rank, t->signals[i].rank, &first);

        e.flag = t->signals[i].flag;
        e.value = t->signals[i].add;
        for (e.rank = first; e.rank < first + count; e.rank++)
            trace_log_add(x->out, &e);
    }
}

static bool stores_elsewhere(const struct program *p, uint32_t rank, const struct task *t)
{
    for (uint32_t i = 0; i < t->out_count; i++) {
        uint32_t first, count = program_target_ranks(p, rank, t->out[i].rank, &first);

        if (count > 1 || first != rank)
            return true;
    }
    return false;
}

static void add_flight(const struct reader *x, struct trace_entry e, uint64_t arrived_ns)
{
    e.kind = TRACE_ENTRY_FLIGHT;
    e.begin_ns = e.end_ns;
    e.end_ns = arrived_ns;
    if (arrived_ns > e.begin_ns)
        trace_log_add(x->out, &e);
}

/* `e` is the task as it is shown.  Signals count from when they were raised: a task that ran beside the one before
 * it is shown behind that, its signal may have been seen by then. */
static void finish_put(const struct reader *x, const struct trace_entry *e, const struct task *t, uint64_t ran_ns)
{
    const struct device_log *log = x->log;
    uint64_t arrived_ns = log->put_arrival(log->put_arg, e->lane.rank, e->at.queue, e->at.index);

    if (arrived_ns == 0)
        return;
    arrived_ns = max_u64(arrived_ns, ran_ns); /* two clocks are compared */
    add_flight(x, *e, arrived_ns);
    add_signals(x, *e, t, arrived_ns);
}

static void finish_task(const struct reader *x, const struct trace_entry *e, const struct task *t, uint64_t ran_ns,
                        const struct gpu_record *stored)
{
    uint64_t out_ns = stored ? stamp_ns(x, &stored->end) : ran_ns;

    if (stored && stores_elsewhere(x->log->program, e->lane.rank, t))
        add_flight(x, *e, out_ns);
    add_signals(x, *e, t, out_ns);
}

/* ---- tasks ---- */

/* The run ended before the task did: its waits are all there is. */
static void read_unfinished(struct reader *x, const struct trace_entry *e, const struct items *items)
{
    x->free_ns = add_waits(x, *e, items, false, x->free_ns, UINT64_MAX);
    x->free_ns = add_waits(x, *e, items, true, x->free_ns, UINT64_MAX);
}

static void read_finished(struct reader *x, struct trace_entry *e, const struct items *items, const struct task *t,
                          const struct gpu_record *ran)
{
    uint64_t ran_ns = stamp_ns(x, &ran->end);

    e->kind = TRACE_ENTRY_TASK;
    e->begin_ns = max_u64(stamp_ns(x, &ran->begin), x->free_ns);
    e->end_ns = max_u64(ran_ns, e->begin_ns);
    add_waits(x, *e, items, false, x->free_ns, e->begin_ns);
    trace_log_add(x->out, e);
    add_waits(x, *e, items, true, e->begin_ns, e->end_ns);
    x->free_ns = e->end_ns;
    if (t->op == OP_PUT)
        finish_put(x, e, t, ran_ns);
    else
        finish_task(x, e, t, ran_ns, find_finished(items, GPU_STORED));
}

static void read_task(struct reader *x, const struct items *items)
{
    const struct device_log *log = x->log;
    const struct gpu_record *r = items->first->record, *ran = find_finished(items, GPU_RAN);
    struct trace_entry e = {.lane = log->lane, .rank = log->lane.rank};
    struct task t;

    program_task(log->program, log->lane.rank, r->queue, r->index, &t);
    e.at = (struct trace_place){r->queue, t.op, r->index, log->epoch};
    if (ran)
        read_finished(x, &e, items, &t, ran);
    else
        read_unfinished(x, &e, items);
}

void device_log_read(const struct device_log *log, struct trace_log *out)
{
    struct reader x = {.log = log, .out = out};
    struct item *items = malloc((log->records_max + 1) * sizeof *items);
    uint64_t count = 0;

    assert(items);
    for (; count < log->records_max && log->records[count].event != GPU_NO_EVENT; count++) {
        const struct gpu_record *r = &log->records[count];

        items[count] = (struct item){place_of(log, r), end_ns(&x, r), r};
    }
    qsort(items, count, sizeof *items, compare_items);
    for (uint64_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && items[end].place == items[first].place; end++)
            ;
        read_task(&x, &(struct items){items + first, end - first});
    }
    free(items);
    out->lost += log->head->lost;
}

/* ---- values of signals ---- */

static int compare_signals(const void *a, const void *b)
{
    const struct trace_entry *x = *(struct trace_entry *const *)a, *y = *(struct trace_entry *const *)b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->flag != y->flag)
        return x->flag < y->flag ? -1 : 1;
    return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

static bool same_flag(const struct trace_entry *a, const struct trace_entry *b)
{
    return a->rank == b->rank && a->flag == b->flag;
}

/* All of one flag, in order.  No wait is for 0. */
static void settle_flag(struct trace_entry **signals, uint64_t count, uint64_t total, uint64_t epoch, bool whole)
{
    uint64_t before = (epoch - 1) * total, sum = 0;

    for (uint64_t i = 0; i < count; i++) {
        sum += signals[i]->value;
        signals[i]->value = before + sum;
    }
    for (uint64_t i = 0; i < count && !whole && sum != total; i++)
        signals[i]->value = 0;
}

/* What an epoch before has raised far enough is no signal's of this one. */
static void settle_wait(const struct program *p, uint64_t epoch, struct trace_entry *e)
{
    if (e->flag != NO_FLAG && e->value <= (epoch - 1) * program_flag_total(p, e->rank, e->flag))
        e->value = UINT64_MAX;
}

void device_log_settle(const struct program *p, uint64_t epoch, struct trace_log *out)
{
    struct trace_entry **signals = malloc((out->count + 1) * sizeof(struct trace_entry *));
    uint64_t count = 0;

    assert(signals);
    for (uint64_t i = 0; i < out->count; i++) {
        if (out->entries[i].kind == TRACE_ENTRY_SIGNAL)
            signals[count++] = &out->entries[i];
        if (out->entries[i].kind == TRACE_ENTRY_WAIT)
            settle_wait(p, epoch, &out->entries[i]);
    }
    qsort(signals, count, sizeof *signals, compare_signals);
    for (uint64_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && same_flag(signals[end], signals[first]); end++)
            ;
        settle_flag(signals + first, end - first, program_flag_total(p, signals[first]->rank, signals[first]->flag),
                    epoch, out->lost == 0);
    }
    free(signals);
}
