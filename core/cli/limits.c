#include "core/cli/limits.h"

#include "core/cli/signals.h"

#define TIMEOUT_PS (600 * 1000000000000ull)

struct limits limits_of(const struct host *h)
{
    return (struct limits){.jobs = h->cores, .timeout_ps = TIMEOUT_PS, .memory_bytes = h->available_bytes};
}

struct run_config limits_config(const struct limits *l, struct progress *progress)
{
    return (struct run_config){
        .jobs = (uint32_t)l->jobs,
        .timeout_ns = l->timeout_ps / 1000,
        .memory_bytes = l->memory_bytes,
        .interrupted = &signals_interrupted,
        .progress = progress_update,
        .arg = progress,
    };
}
