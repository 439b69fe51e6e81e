/* What the verbs that run many programs may take: cores, time and memory. */
#ifndef CORE_CLI_LIMITS_H
#define CORE_CLI_LIMITS_H

#include <stdint.h>

#include "core/cli/args.h"
#include "core/cli/progress.h"
#include "core/host.h"
#include "core/run/run.h"

struct limits {
    uint64_t jobs;         /* runs at once */
    uint64_t timeout_ps;   /* of one run */
    uint64_t memory_bytes; /* that all runs together may use */
};

/* Rows of a flag table, for a request of type struct `request` with a member `limits`. */
#define LIMITS_FLAGS(request, runs, timeout_help)                                                                      \
    {"--jobs", "N", runs " at once (default: one a core)", FLAG_COUNT, offsetof(struct request, limits.jobs), 1, 256}, \
        {"--timeout",                                                                                                  \
         "TIME",                                                                                                       \
         timeout_help " after this much real time (default: 600s)",                                                    \
         FLAG_TIME,                                                                                                    \
         offsetof(struct request, limits.timeout_ps),                                                                  \
         1e9,                                                                                                          \
         1e18},                                                                                                        \
    {                                                                                                                  \
        "--memory", "SIZE", "let all runs together use this much (default: what is free)", FLAG_SIZE,                  \
            offsetof(struct request, limits.memory_bytes), 1, 1e18                                                     \
    }

struct limits limits_of(const struct host *h);

/* Ends when signals_interrupted is set. */
struct run_config limits_config(const struct limits *l, struct progress *progress);

#endif
