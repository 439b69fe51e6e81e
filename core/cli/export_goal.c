#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli/choose_point.h"
#include "core/cli/export.h"
#include "core/host.h"
#include "core/log.h"
#include "core/run/run.h"

#define TIMEOUT_NS 600000000000u

static const volatile sig_atomic_t never;

static enum status run_unit(const struct scenario *s, struct run_unit *u)
{
    uint64_t available = host_read().available_bytes;
    struct run_config config = {.jobs = 1, .timeout_ns = TIMEOUT_NS, .memory_bytes = available, .interrupted = &never};

    TRY(run_unit_plan(s, u, available));
    TRY(run_units(u, 1, &config));
    if (u->result->report[0])
        fprintf(stderr, "%s\n", u->result->report);
    if (u->result->status >= 0)
        log_info("goal: %s, the last epoch of a run of %.2f us", u->result->trace.path,
                 (double)u->result->sample_ps[0] / 1e6);
    return u->result->status;
}

static enum status export_point(const struct export_goal *q, const struct scenario *s)
{
    struct trace_request trace = {.format = &trace_goal};
    struct run_unit u = {.trace = &trace, .backend = s->backend, .options = s->backend_options};
    enum status st;

    TRY(choose_point("export", s, q->has_point, q->point, &u.point));
    if (strlen(q->output) >= sizeof trace.path - 8) {
        log_error("export: %.60s...: the path is too long", q->output);
        return ST_INPUT;
    }
    snprintf(trace.path, sizeof trace.path, "%s", q->output);
    u.problem = u.point->problem;
    u.timing = u.point->timing;
    st = run_unit(s, &u);
    free(u.result);
    return st;
}

enum status export_goal(const struct export_goal *q)
{
    struct scenario s = {0};
    enum status st = scenario_load(q->scenario, q->registry, "sim", q->sets, q->set_count, &s);

    if (st >= 0)
        st = export_point(q, &s);
    scenario_fini(&s);
    return st;
}
