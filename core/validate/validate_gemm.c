/* GEMMs that the cuda backend and cuBLAS were timed at on one H200 (records of scripts/gpu): the
 * program of one rank, and the library's model, at the same shape. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/run/plan.h"
#include "core/run/run.h"
#include "core/statistics/stats.h"
#include "core/validate/validate.h"

#define LINE_BYTES (1 << 20)
#define PATH_BYTES 1024
#define MEMORY_BYTES (UINT64_C(1) << 30)
#define TIMEOUT_NS UINT64_C(120000000000)

static const char scenario_text[] = "problem: {kernel: ag_gemm, m: %s, n: %s, k: %s}\n"
                                    "machine: h200-1\n"
                                    "world: {nodes: 1, gpus_per_node: 1}\n"
                                    "variants: {fused: {}, nccl: {}}\n"
                                    "timing: {mode: isolated, launch: excluded}\n";

/* A record of the bench "gemm" by one of these. */
static const struct {
    const char *contestant, *what;
    enum program_choice program;
} contestants[] = {
    {"program", "gemm program", PROGRAM_FUSED},
    {"cublas", "gemm cuBLAS", PROGRAM_NCCL},
};
#define CONTESTANTS (sizeof(contestants) / sizeof(contestants[0]))

static bool cut_shape(const char *shape, char extents[3][24])
{
    return sscanf(shape, "%20[0-9]x%20[0-9]x%20[0-9]", extents[0], extents[1], extents[2]) == 3;
}

static enum status simulate(const struct registry *r, const char *shape,
                            enum program_choice program, double *us_out)
{
    struct run_config config = {
        .jobs = 1, .timeout_ns = TIMEOUT_NS, .memory_bytes = 2 * MEMORY_BYTES};
    static const volatile sig_atomic_t never = 0;
    char extents[3][24], text[512];
    struct scenario scenario;
    struct run_plan plan;

    if (!cut_shape(shape, extents))
        return ST_INPUT;
    config.interrupted = &never;
    snprintf(text, sizeof text, scenario_text, extents[0], extents[1], extents[2]);
    TRY(scenario_parse("gemm of the records", text, strlen(text), r, "sim", NULL, 0, &scenario));
    enum status st = run_plan_create(&scenario, MEMORY_BYTES, NULL, &plan);
    for (uint64_t i = 0; st >= 0 && i < plan.point_count; i++) {
        struct run_unit *u = &plan.points[i];
        if (u->point->program != program)
            continue;
        st = run_units(u, 1, &config);
        if (st >= 0 && u->result != NULL)
            st = u->result->status;
        if (st >= 0 && u->result != NULL)
            *us_out = (double)stats_of(u->result->sample_ps, u->result->sample_count).median / 1e6;
    }
    run_plan_destroy(&plan);
    scenario_fini(&scenario);
    return st;
}

static enum status add_record(const struct registry *r, const json_t *line, const char *path,
                              struct validation *v)
{
    const char *bench = json_string_value(json_object_get(line, "bench"));
    const char *contestant = json_string_value(json_object_get(line, "contestant"));
    const char *shape = json_string_value(json_object_get(line, "shape"));
    double ms = json_number_value(json_object_get(line, "median_ms"));
    struct validate_row row = {.set = "gemm",
                               .place = "one GPU",
                               .size = "all sizes",
                               .source = "one-h200",
                               .machine = "h200-1",
                               .nodes = 1,
                               .gpus_per_node = 1,
                               .measured_us = ms * 1e3,
                               .held_out = false};

    if (bench == NULL || strcmp(bench, "gemm") != 0 || contestant == NULL || shape == NULL)
        return ST_OK;
    for (uint32_t i = 0; i < CONTESTANTS; i++) {
        if (strcmp(contestants[i].contestant, contestant) != 0)
            continue;
        if (!(ms > 0) || simulate(r, shape, contestants[i].program, &row.predicted_us) < 0) {
            log_error("%s: no GEMM that can be simulated: shape %s", path, shape);
            return ST_INPUT;
        }
        snprintf(row.what, sizeof(row.what), "%s", contestants[i].what);
        snprintf(row.choice, sizeof(row.choice), "%s", shape);
        validation_add(v, &row);
    }
    return ST_OK;
}

static enum status read_records(const struct registry *r, const char *path, struct validation *v)
{
    FILE *f = fopen(path, "r");
    char *line = malloc(LINE_BYTES);
    enum status st = ST_OK;

    assert(line != NULL);
    if (f == NULL) {
        log_error("%s: %s", path, strerror(errno));
        free(line);
        return ST_IO;
    }
    for (uint32_t number = 1; st >= 0 && fgets(line, LINE_BYTES, f) != NULL; number++) {
        json_error_t error;
        json_t *record = json_loads(line, 0, &error);
        if (record == NULL) {
            log_error("%s:%u:%d: %s", path, number, error.column, error.text);
            st = ST_INPUT;
        } else {
            st = add_record(r, record, path, v);
        }
        json_decref(record);
    }
    fclose(f);
    free(line);
    return st;
}

static int is_record(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    return dot != NULL && strcmp(dot, ".jsonl") == 0;
}

enum status validate_gemms(const struct registry *r, const char *folder, struct validation *v)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_record, alphasort);
    enum status st = ST_OK;

    if (count < 0) {
        log_error("%s: %s", folder, strerror(errno));
        return ST_IO;
    }
    for (int i = 0; i < count; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (st >= 0)
            st = read_records(r, path, v);
        free(entries[i]);
    }
    free(entries);
    return st;
}
