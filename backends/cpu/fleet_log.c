#include "backends/cpu/fleet_log.h"

#include <assert.h>
#include <stdlib.h>

#include "backends/cpu/fleet.h"

#define LOG_BYTES (64u << 20) /* of all threads */

static uint64_t log_count(const struct fleet *f)
{
    return (uint64_t)f->worker_count + f->rank_count;
}

struct trace_log fleet_log_plan(const struct fleet *f)
{
    if (!f->job->trace)
        return (struct trace_log){0};
    return (struct trace_log){
        .limit = max_u64(LOG_BYTES / sizeof(struct trace_entry) / log_count(f), 16),
        .first_epoch = trace_begin(f->job->trace, 1, f->epochs, f->crew_threads),
    };
}

static const struct trace_log *log_at(const struct fleet *f, uint64_t i)
{
    return i < f->worker_count ? &f->workers[i].log : &f->ranks[i - f->worker_count].fifo.log;
}

void fleet_log_tell(const struct fleet *f)
{
    const struct trace_log **logs;

    if (!f->job->trace)
        return;
    logs = malloc(log_count(f) * sizeof *logs);
    assert(logs);
    for (uint64_t i = 0; i < log_count(f); i++)
        logs[i] = log_at(f, i);
    trace_log_tell(f->job->trace, f->program, logs, log_count(f), f->started_ns);
    free(logs);
}
