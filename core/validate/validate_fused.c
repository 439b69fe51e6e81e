/* Fused kernels on two H200s, NCCL + cuBLAS and hand-overlapped streams beside them
 * (h200/gemm-2gpu.csv), each simulated by the scenario of its kernel at the measured shape. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/parse/csv.h"
#include "core/host.h"
#include "core/log.h"
#include "core/run/plan.h"
#include "core/run/run.h"
#include "core/statistics/stats.h"
#include "core/validate/validate.h"

#define PATH_BYTES 1024
#define MEMORY_BYTES (UINT64_C(1) << 30)
#define TIMEOUT_NS UINT64_C(120000000000)

/* Which column of the table each program was measured in. */
static const struct {
    enum program_choice program;
    const char *name, *column;
} contestants[] = {
    {PROGRAM_FUSED, "fused", "fused_fixed_ms"},
    {PROGRAM_NCCL, "nccl", "sequence_ms"},
    {PROGRAM_STREAMS, "streams", "streams_ms"},
};
#define CONTESTANTS (sizeof(contestants) / sizeof(contestants[0]))

struct columns {
    uint32_t kernel, extents[3], times[CONTESTANTS];
};

static enum status find_columns(const struct csv *csv, struct columns *c)
{
    static const char *const extents[] = {"m", "n", "k"};

    TRY(csv_column(csv, "kernel", &c->kernel));
    for (uint32_t i = 0; i < 3; i++)
        TRY(csv_column(csv, extents[i], &c->extents[i]));
    for (uint32_t i = 0; i < CONTESTANTS; i++)
        TRY(csv_column(csv, contestants[i].column, &c->times[i]));
    return ST_OK;
}

/* The plan's first point of a program: a file lists its best variant first. */
static const struct run_unit *first_point(const struct run_plan *plan, enum program_choice program)
{
    for (uint64_t i = 0; i < plan->point_count; i++)
        if (plan->points[i].point->program == program)
            return &plan->points[i];
    return NULL;
}

static void add_row(const struct csv *csv, uint32_t row, const struct columns *c, uint32_t which,
                    const struct run_unit *unit, double measured_ms, struct validation *v)
{
    const struct run_result *r = unit->result;
    struct validate_row out = {.set = "fused",
                               .place = "two GPUs",
                               .size = "all sizes",
                               .source = "two-h200",
                               .nodes = 1,
                               .gpus_per_node = 2,
                               .held_out = true};

    snprintf(out.size, sizeof(out.size), "%s", contestants[which].name);
    snprintf(out.what, sizeof(out.what), "%s %s", csv_field(csv, row, c->kernel), contestants[which].name);
    snprintf(out.machine, sizeof(out.machine), "%s", unit->point->machine->name);
    snprintf(out.choice, sizeof(out.choice), "%s x %s x %s", csv_field(csv, row, c->extents[0]),
             csv_field(csv, row, c->extents[1]), csv_field(csv, row, c->extents[2]));
    out.measured_us = measured_ms * 1e3;
    out.predicted_us = (double)stats_of(r->sample_ps, r->sample_count).median / 1e6;
    validation_add(v, &out);
}

static enum status run_contestants(const struct csv *csv, uint32_t row, const struct columns *c,
                                   const struct run_plan *plan, struct validation *v)
{
    struct run_config config = {.jobs = 2, .timeout_ns = TIMEOUT_NS, .memory_bytes = 2 * MEMORY_BYTES};
    struct run_unit units[CONTESTANTS];
    double measured_ms[CONTESTANTS];
    static const volatile sig_atomic_t never = 0;

    config.interrupted = &never;
    for (uint32_t i = 0; i < CONTESTANTS; i++) {
        const struct run_unit *u = first_point(plan, contestants[i].program);
        if (u == NULL) {
            log_error("%s: no variant %s", plan->scenario->path, contestants[i].name);
            return ST_INPUT;
        }
        units[i] = *u;
        TRY(csv_number(csv, row, c->times[i], &measured_ms[i]));
    }
    enum status st = run_units(units, CONTESTANTS, &config);
    for (uint32_t i = 0; i < CONTESTANTS; i++) {
        if (st >= 0 && (units[i].result == NULL || units[i].result->status < 0)) {
            log_error("%s: %s did not run: %s", plan->scenario->path, contestants[i].name,
                      units[i].result ? units[i].result->report : "no result");
            st = units[i].result ? units[i].result->status : ST_WRONG;
        }
        if (st >= 0)
            add_row(csv, row, c, i, &units[i], measured_ms[i], v);
        free(units[i].result);
    }
    return st;
}

static enum status replay(const struct registry *r, const char *scenarios, const struct csv *csv, uint32_t row,
                          const struct columns *c, struct validation *v)
{
    char path[PATH_BYTES], texts[3][64];
    const char *sets[3];
    struct scenario scenario;
    struct run_plan plan;

    for (uint32_t i = 0; i < 3; i++) {
        snprintf(texts[i], sizeof(texts[i]), "problem.%c=%.40s", "mnk"[i], csv_field(csv, row, c->extents[i]));
        sets[i] = texts[i];
    }
    snprintf(path, sizeof path, "%s/%s/nvlink2.yaml", scenarios, csv_field(csv, row, c->kernel));
    TRY(scenario_load(path, r, "sim", sets, 3, &scenario));
    enum status st = run_plan_create(&scenario, MEMORY_BYTES, NULL, &plan);
    if (st >= 0) {
        st = run_contestants(csv, row, c, &plan, v);
        run_plan_destroy(&plan);
    }
    scenario_fini(&scenario);
    return st;
}

enum status validate_fused(const struct registry *r, const char *folder, const char *scenarios, struct validation *v)
{
    struct columns columns;
    struct csv csv = {0};
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/h200/gemm-2gpu.csv", folder);
    TRY(csv_read(path, &csv));
    enum status st = find_columns(&csv, &columns);
    for (uint32_t i = 1; st >= 0 && i < csv.row_count; i++)
        st = replay(r, scenarios, &csv, i, &columns, v);
    csv_free(&csv);
    return st;
}
