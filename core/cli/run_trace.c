#include "core/cli/run_trace.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

static bool has_trace(const struct run_unit *u)
{
    return !point_is_baseline(u->point);
}

/* "a/ag.json.gz", 3: "a/ag-3.json.gz" */
static bool name_trace(const char *path, bool numbered, uint64_t index, char out[TRACE_PATH_BYTES])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strchr(name + (*name == '.'), '.');
    size_t stem = dot ? (size_t)(dot - path) : strlen(path);
    int n;

    if (numbered)
        n = snprintf(out, TRACE_PATH_BYTES, "%.*s-%" PRIu64 "%s", (int)stem, path, index, path + stem);
    else
        n = snprintf(out, TRACE_PATH_BYTES, "%s", path);
    return n > 0 && n < TRACE_PATH_BYTES - 8; /* a taken name gets a number behind it */
}

enum status run_trace_plan(struct run_plan *plan, const struct trace_format *format, const char *path,
                           uint64_t limit_bytes, struct trace_request **out)
{
    struct trace_request *requests = calloc(plan->point_count + 1, sizeof *requests);
    uint64_t count = 0;

    assert(requests);
    *out = requests;
    for (uint64_t i = 0; i < plan->point_count; i++)
        count += has_trace(&plan->points[i]);
    if (count == 0) {
        log_error("trace: the scenario has no point that runs a program, only baselines");
        return ST_INPUT;
    }
    for (uint64_t i = 0; i < plan->point_count; i++) {
        if (!has_trace(&plan->points[i]))
            continue;
        requests[i] = (struct trace_request){.format = format, .limit_bytes = limit_bytes};
        if (!name_trace(path, count > 1, i, requests[i].path)) {
            log_error("trace: %.60s...: the path is too long, expected at most %d bytes", path, TRACE_PATH_BYTES - 32);
            return ST_INPUT;
        }
        plan->points[i].trace = &requests[i];
        plan->points[i].memory_bytes += limit_bytes; /* what is on its way to the file */
    }
    return ST_OK;
}

void run_trace_report(const struct run_plan *plan)
{
    for (uint64_t i = 0; i < plan->point_count; i++) {
        const struct run_result *r = plan->points[i].result;

        if (!r || !plan->points[i].trace)
            continue;
        if (!r->trace.path[0])
            log_warn("trace: none of point %" PRIu64 ": backend %s told nothing", i, plan->points[i].backend->name);
        else if (r->trace.note[0])
            log_warn("trace: %s holds %s (--trace-limit lets it grow)", r->trace.path, r->trace.note);
        else
            log_info("trace: %s", r->trace.path);
    }
}
