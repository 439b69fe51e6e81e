#include "core/trace/trace_log.h"

#include <stdlib.h>

#include "core/backend.h"
#include "core/traffic.h"

#define PS_PER_NS 1000

void trace_log_add(struct trace_log *log, const struct trace_entry *e)
{
    if (e->at.epoch < log->first_epoch)
        return;
    if (log->count == log->capacity) {
        uint64_t capacity = min_u64(max_u64(2 * log->capacity, 256), log->limit);
        struct trace_entry *grown = capacity > log->count ? realloc(log->entries, capacity * sizeof *grown) : NULL;

        if (!grown) {
            log->lost += log->limit > 0;
            return;
        }
        log->entries = grown;
        log->capacity = capacity;
    }
    log->entries[log->count++] = *e;
}

void trace_log_fini(struct trace_log *log)
{
    free(log->entries);
    *log = (struct trace_log){0};
}

/* ---- whose signal ended a wait ---- */

struct signals {
    const struct trace_entry **all; /* by rank, flag and value */
    uint64_t count;
};

static int order(const struct trace_entry *a, uint32_t rank, uint32_t flag, uint64_t value)
{
    if (a->rank != rank)
        return a->rank < rank ? -1 : 1;
    if (a->flag != flag)
        return a->flag < flag ? -1 : 1;
    return a->value < value ? -1 : a->value > value;
}

static int compare_signals(const void *a, const void *b)
{
    const struct trace_entry *const *y = b;

    return order(*(const struct trace_entry *const *)a, (*y)->rank, (*y)->flag, (*y)->value);
}

/* The first that left at least the wait's value in its flag; NULL: not logged. */
static const struct trace_entry *find_signal(const struct signals *s, const struct trace_entry *wait)
{
    uint64_t low = 0, high = s->count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (order(s->all[middle], wait->rank, wait->flag, wait->value) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == s->count || s->all[low]->rank != wait->rank || s->all[low]->flag != wait->flag)
        return NULL;
    return s->all[low];
}

/* ---- telling ---- */

/* What is told, to whom. */
struct tale {
    struct trace *sink;
    const struct program *program;
    const struct trace_log *const *logs;
    uint64_t log_count, begin_ns;
    struct signals signals;
};

/* Enough memory is there, or waits stay without a signal. */
static void collect(struct tale *x)
{
    struct signals *s = &x->signals;
    uint64_t count = 0;

    for (uint64_t i = 0; i < x->log_count; i++)
        count += x->logs[i]->count;
    s->all = malloc((count + 1) * sizeof *s->all);
    for (uint64_t i = 0; s->all && i < x->log_count; i++)
        for (uint64_t k = 0; k < x->logs[i]->count; k++)
            if (x->logs[i]->entries[k].kind == TRACE_ENTRY_SIGNAL)
                s->all[s->count++] = &x->logs[i]->entries[k];
    if (s->count > 0)
        qsort(s->all, s->count, sizeof *s->all, compare_signals);
}

static uint64_t run_ps(const struct tale *x, uint64_t ns)
{
    return ns > x->begin_ns ? (ns - x->begin_ns) * PS_PER_NS : 0;
}

static void tell_wait(const struct tale *x, const struct trace_entry *e)
{
    const struct trace_entry *signal = e->flag == NO_FLAG ? NULL : find_signal(&x->signals, e);
    struct trace_wait w = {.lane = e->lane,
                           .at = e->at,
                           .flag = e->flag,
                           .cause = BACKEND_CAUSE_PUTS,
                           .inside = e->inside,
                           .begin_ps = run_ps(x, e->begin_ns),
                           .end_ps = run_ps(x, e->end_ns),
                           .known = signal != NULL};

    if (signal) {
        w.from = signal->lane;
        w.from_ps = run_ps(x, signal->end_ns);
    }
    trace_wait_add(x->sink, &w);
}

/* Bytes that moved while a task or a flight went on. */
struct move {
    const struct tale *tale;
    uint64_t begin_ps, end_ps;
};

static void tell_use(void *arg, uint32_t from, uint32_t to, uint64_t bytes)
{
    const struct move *m = arg;
    bool node = world_same_node(m->tale->program->world, from, to);
    struct trace_use out = {node ? TRACE_NVLINK_OUT : TRACE_NIC_OUT, from, bytes, m->begin_ps, m->end_ps};
    struct trace_use in = {node ? TRACE_NVLINK_IN : TRACE_NIC_IN, to, bytes, m->begin_ps, m->end_ps};

    trace_use_add(m->tale->sink, &out);
    trace_use_add(m->tale->sink, &in);
}

/* A put's bytes move in its flight. */
static void tell_traffic(const struct tale *x, const struct trace_entry *e, uint64_t begin_ps, uint64_t end_ps)
{
    struct move move = {x, begin_ps, end_ps};
    struct task t;

    if ((e->at.op == OP_PUT) != (e->kind == TRACE_ENTRY_FLIGHT))
        return;
    program_task(x->program, e->lane.rank, e->at.queue, e->at.index, &t);
    task_traffic(x->program, e->lane.rank, &t, tell_use, &move);
}

static void tell(const struct tale *x, const struct trace_entry *e)
{
    uint64_t begin_ps = run_ps(x, e->begin_ns), end_ps = run_ps(x, e->end_ns);

    switch (e->kind) {
    case TRACE_ENTRY_SIGNAL: break;
    case TRACE_ENTRY_WAIT: tell_wait(x, e); break;
    case TRACE_ENTRY_TASK:
        trace_task_add(x->sink, &(struct trace_task){e->lane, e->at, begin_ps, end_ps});
        tell_traffic(x, e, begin_ps, end_ps);
        break;
    case TRACE_ENTRY_FLIGHT:
        trace_flight_add(x->sink, &(struct trace_flight){e->lane, e->at, begin_ps, end_ps});
        tell_traffic(x, e, begin_ps, end_ps);
        break;
    }
}

void trace_log_tell(struct trace *t, const struct program *p, const struct trace_log *const logs[], uint64_t count,
                    uint64_t begin_ns)
{
    struct tale x = {.sink = t, .program = p, .logs = logs, .log_count = count, .begin_ns = begin_ns};

    collect(&x);
    for (uint64_t i = 0; i < count; i++) {
        for (uint64_t k = 0; k < logs[i]->count; k++)
            tell(&x, &logs[i]->entries[k]);
        trace_lost_add(t, logs[i]->lost);
    }
    free(x.signals.all);
}
