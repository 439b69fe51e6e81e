#include "backends/cpu/fleet_log.h"

#include <stdlib.h>

#include "backends/cpu/fleet.h"
#include "core/traffic.h"

#define PS_PER_NS 1000

void fleet_log_add(struct fleet_log *log, const struct log_entry *e)
{
    if (e->at.epoch < log->first_epoch)
        return;
    if (log->count == log->capacity) {
        uint64_t capacity = min_u64(max_u64(2 * log->capacity, 256), log->limit);
        struct log_entry *grown =
            capacity > log->count ? realloc(log->entries, capacity * sizeof *grown) : NULL;

        if (!grown) {
            log->lost += log->limit > 0;
            return;
        }
        log->entries = grown;
        log->capacity = capacity;
    }
    log->entries[log->count++] = *e;
}

#define LOG_BYTES (64u << 20) /* of all threads */

struct fleet_log fleet_log_plan(const struct fleet *f)
{
    uint64_t threads = (uint64_t)f->worker_count + f->rank_count;

    if (!f->job->trace)
        return (struct fleet_log){0};
    return (struct fleet_log){
        .limit = max_u64(LOG_BYTES / sizeof(struct log_entry) / threads, 16),
        .first_epoch = trace_begin(f->job->trace, f->epochs, f->crew_threads),
    };
}

void fleet_log_fini(struct fleet_log *log)
{
    free(log->entries);
    *log = (struct fleet_log){0};
}

/* ---- whose signal ended a wait ---- */

struct signals {
    const struct log_entry **all; /* by rank, flag and value */
    uint64_t                 count;
};

static int order(const struct log_entry *a, uint32_t rank, uint32_t flag, uint64_t value)
{
    if (a->rank != rank)
        return a->rank < rank ? -1 : 1;
    if (a->flag != flag)
        return a->flag < flag ? -1 : 1;
    return a->value < value ? -1 : a->value > value;
}

static int compare_signals(const void *a, const void *b)
{
    const struct log_entry *const *y = b;

    return order(*(const struct log_entry *const *)a, (*y)->rank, (*y)->flag, (*y)->value);
}

/* The first that left at least the wait's value in its flag; NULL: not logged. */
static const struct log_entry *find_signal(const struct signals *s, const struct log_entry *wait)
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

static const struct fleet_log *log_at(const struct fleet *f, uint64_t i)
{
    return i < f->worker_count ? &f->workers[i].log : &f->ranks[i - f->worker_count].fifo.log;
}

static uint64_t log_count(const struct fleet *f)
{
    return (uint64_t)f->worker_count + f->rank_count;
}

/* Worker by worker: enough memory is there, or waits stay without a signal. */
static void collect(const struct fleet *f, struct signals *s)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < log_count(f); i++)
        count += log_at(f, i)->count;
    s->all = malloc((count + 1) * sizeof *s->all);
    for (uint64_t i = 0; s->all && i < log_count(f); i++)
        for (uint64_t k = 0; k < log_at(f, i)->count; k++)
            if (log_at(f, i)->entries[k].kind == LOG_SIGNAL)
                s->all[s->count++] = &log_at(f, i)->entries[k];
    if (s->count > 0)
        qsort(s->all, s->count, sizeof *s->all, compare_signals);
}

static uint64_t run_ps(const struct fleet *f, uint64_t ns)
{
    return ns > f->started_ns ? (ns - f->started_ns) * PS_PER_NS : 0;
}

static void tell_wait(const struct fleet *f, const struct signals *s, const struct log_entry *e)
{
    const struct log_entry *signal = e->flag == NO_FLAG ? NULL : find_signal(s, e);
    struct trace_wait x = {.lane = e->lane,
                           .at = e->at,
                           .flag = e->flag,
                           .cause = BACKEND_CAUSE_PUTS,
                           .inside = e->inside,
                           .begin_ps = run_ps(f, e->begin_ns),
                           .end_ps = run_ps(f, e->end_ns),
                           .known = signal != NULL};

    if (signal) {
        x.from = signal->lane;
        x.from_ps = run_ps(f, signal->end_ns);
    }
    trace_wait_add(f->job->trace, &x);
}

/* Bytes that moved while a task or a flight went on. */
struct move {
    const struct fleet *fleet;
    uint64_t            begin_ps, end_ps;
};

static void tell_use(void *arg, uint32_t from, uint32_t to, uint64_t bytes)
{
    const struct move *m = arg;
    const struct fleet *f = m->fleet;
    bool node = world_same_node(f->program->world, from, to);
    struct trace_use out = {node ? TRACE_NVLINK_OUT : TRACE_NIC_OUT, from, bytes, m->begin_ps, m->end_ps};
    struct trace_use in = {node ? TRACE_NVLINK_IN : TRACE_NIC_IN, to, bytes, m->begin_ps, m->end_ps};

    trace_use_add(f->job->trace, &out);
    trace_use_add(f->job->trace, &in);
}

/* A put's bytes move in its flight. */
static void tell_traffic(const struct fleet *f, const struct log_entry *e, uint64_t begin_ps, uint64_t end_ps)
{
    struct move move = {f, begin_ps, end_ps};
    struct task t;

    if ((e->at.op == OP_PUT) != (e->kind == LOG_FLIGHT))
        return;
    program_task(f->program, e->lane.rank, e->at.queue, e->at.index, &t);
    task_traffic(f->program, e->lane.rank, &t, tell_use, &move);
}

static void tell(const struct fleet *f, const struct signals *s, const struct log_entry *e)
{
    uint64_t begin_ps = run_ps(f, e->begin_ns), end_ps = run_ps(f, e->end_ns);

    switch (e->kind) {
    case LOG_SIGNAL:
        break;
    case LOG_WAIT:
        tell_wait(f, s, e);
        break;
    case LOG_TASK:
        trace_task_add(f->job->trace, &(struct trace_task){e->lane, e->at, begin_ps, end_ps});
        tell_traffic(f, e, begin_ps, end_ps);
        break;
    case LOG_FLIGHT:
        trace_flight_add(f->job->trace, &(struct trace_flight){e->lane, e->at, begin_ps, end_ps});
        tell_traffic(f, e, begin_ps, end_ps);
        break;
    }
}

void fleet_log_tell(const struct fleet *f)
{
    struct signals signals = {0};

    if (!f->job->trace)
        return;
    collect(f, &signals);
    for (uint64_t i = 0; i < log_count(f); i++) {
        const struct fleet_log *log = log_at(f, i);

        for (uint64_t k = 0; k < log->count; k++)
            tell(f, &signals, &log->entries[k]);
        trace_lost_add(f->job->trace, log->lost);
    }
    free(signals.all);
}
