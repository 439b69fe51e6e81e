/* One scenario file from loading to the last sentence. */
#ifndef CORE_CLI_RUN_SCENARIO_H
#define CORE_CLI_RUN_SCENARIO_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/host.h"
#include "core/run/nodes.h"
#include "core/results/published.h"
#include "core/scenario/scenario.h"

enum output_format { OUTPUT_TABLE, OUTPUT_CSV, OUTPUT_JSON };

struct run_request {
    const char          *backend; /* NULL: the scenario's */
    const char *const   *sets;
    uint32_t             set_count;
    enum output_format   format;
    const struct problem_family **csv_family; /* whose columns stand in the last CSV header; NULL in it: none */
    struct published_total *published; /* of all files */
    bool                 quiet;
    bool                 no_verify;   /* time programs unproved */
    bool                 verify_only; /* prove, print what was proved, and stop */
    uint64_t             jobs;
    uint64_t             timeout_ps;   /* of one run */
    uint64_t             memory_bytes; /* that all runs together may use */
    const char          *output;       /* NULL: results/local/...; "none": no file */
    const char          *trace;        /* NULL: none */
    uint64_t             trace_limit_bytes;
    struct host          host;
    int                  argc;
    char *const         *argv; /* for the record */
    struct nodes        *nodes; /* count 1: everything runs here */
    const volatile sig_atomic_t *interrupted;
    volatile sig_atomic_t       *planning; /* true while nothing has run: a signal may end the process */
};

/* The worst of what happened (status_worse), everything already said. */
enum status run_scenario(const struct run_request *q, const char *path, const struct registry *registry);

#endif
