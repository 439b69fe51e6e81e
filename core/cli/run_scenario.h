/* One scenario file from loading to the last sentence. */
#ifndef CORE_CLI_RUN_SCENARIO_H
#define CORE_CLI_RUN_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cli/limits.h"
#include "core/host.h"
#include "core/run/nodes.h"
#include "core/results/published.h"
#include "core/scenario/scenario.h"

struct run_request {
    const struct args *args;                  /* scenarios and their sets, and the command for the record */
    const char *backend;                      /* NULL: the scenario's */
    const char *transport;                    /* NULL: the scenario's; stands among the sets, too */
    bool json, csv;                           /* neither: the table */
    const struct problem_family **csv_family; /* whose columns stand in the last CSV header; NULL in it: none */
    struct published_total *published;        /* of all files */
    bool quiet;
    bool no_verify;   /* time programs unproved */
    bool verify_only; /* prove, print what was proved, and stop */
    struct limits limits;
    const char *output; /* NULL: results/local/...; "none": no file */
    const char *trace;  /* NULL: none */
    uint64_t trace_limit_bytes;
    struct host host;
    struct nodes *nodes; /* count 1: everything runs here */
};

/* The worst of what happened (status_worse), everything already said. */
enum status run_scenario(const struct run_request *q, const char *path, const struct registry *registry);

#endif
