#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/build.h"
#include "core/cli/import.h"
#include "core/file.h"
#include "core/log.h"
#include "core/imports/nccl_tests.h"
#include "core/results/record.h"
#include "core/results/result.h"

static void set_text(json_t *o, const char *key, const char *text)
{
    json_t *value = json_string(text);

    json_object_set_new(o, key, value ? value : json_null()); /* null where the text is not UTF-8 */
}

static void set_count(json_t *o, const char *key, uint64_t value)
{
    json_object_set_new(o, key, json_integer((json_int_t)value));
}

static void set_real(json_t *o, const char *key, double value)
{
    json_object_set_new(o, key, json_real(value));
}

static void put(struct result_file *f, json_t *o)
{
    char *line = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(12));

    assert(line);
    result_write(f, line);
    free(line);
    json_decref(o);
}

/* ---- the first line ---- */

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static json_t *run_record(const struct import_nccl_tests *q, const struct nccl_tests *t)
{
    json_t *o = json_object(), *command = json_array(), *machine = json_object();
    char date[40], source[200];

    record_date(false, date, sizeof date);
    set_text(o, "record", "run");
    set_count(o, "schema", RECORD_SCHEMA);
    set_text(o, "version", build_version);
    set_text(o, "commit", build_commit);
    set_text(o, "date", date);
    for (int i = 0; i < q->argc; i++)
        json_array_append_new(command, json_string(q->argv[i]));
    json_object_set_new(o, "command", command);
    set_text(o, "scenario", file_name(q->path));
    set_text(o, "scenario_path", q->path);
    set_text(machine, "name", q->machine ? q->machine : t->gpu[0] ? t->gpu : "unknown");
    json_object_set_new(o, "machine", machine);
    set_text(o, "backend", "nccl-tests");
    snprintf(source, sizeof source, "nccl-tests%s%s", t->version[0] ? ", " : "", t->version);
    set_text(o, "source", source);
    set_count(o, "points", t->count);
    return o;
}

/* ---- points ---- */

static bool same_point(const struct nccl_tests_row *a, const struct nccl_tests_row *b)
{
    return a->bytes == b->bytes && a->in_place == b->in_place && strcmp(a->collective, b->collective) == 0 &&
           strcmp(a->type, b->type) == 0 && strcmp(a->redop, b->redop) == 0 && strcmp(a->root, b->root) == 0;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The rows of one point, from `first` on; those taken are marked. */
struct samples {
    double *times_us;
    size_t count;
    bool wrong;
};

static struct samples collect(const struct nccl_tests *t, size_t first, bool *taken)
{
    struct samples s = {.times_us = calloc(t->count - first, sizeof *s.times_us)};

    assert(s.times_us);
    for (size_t i = first; i < t->count; i++) {
        if (taken[i] || !same_point(&t->rows[first], &t->rows[i]))
            continue;
        taken[i] = true;
        s.times_us[s.count++] = t->rows[i].time_us;
        s.wrong |= t->rows[i].wrong;
    }
    qsort(s.times_us, s.count, sizeof *s.times_us, compare_doubles);
    return s;
}

static json_t *resolved(const struct nccl_tests_row *row, uint64_t nodes, uint64_t gpus)
{
    json_t *o = json_object();
    char text[32];

    snprintf(text, sizeof text, "%" PRIu64, row->bytes);
    set_text(o, "problem.bytes", text);
    set_text(o, "problem.type", row->type);
    set_text(o, "problem.redop", row->redop);
    set_text(o, "problem.root", row->root);
    snprintf(text, sizeof text, "%" PRIu64, nodes);
    set_text(o, "world.nodes", text);
    snprintf(text, sizeof text, "%" PRIu64, gpus);
    set_text(o, "world.gpus_per_node", text);
    set_text(o, "variant", row->in_place ? "in-place" : "out-of-place");
    set_text(o, "timing.mode", "pipelined");
    return o;
}

static void set_times(json_t *o, const struct nccl_tests_row *row, const struct samples *s)
{
    json_t *samples = json_array();
    double median_us = (s->times_us[(s->count - 1) / 2] + s->times_us[s->count / 2]) / 2;

    for (size_t i = 0; i < s->count; i++)
        json_array_append_new(samples, json_real(s->times_us[i]));
    json_object_set_new(o, "samples_us", samples);
    set_real(o, "median_us", median_us);
    set_real(o, "min_us", s->times_us[0]);
    set_real(o, "algbw_gb_per_s", row->algbw * row->time_us / median_us);
    set_real(o, "busbw_gb_per_s", row->busbw * row->time_us / median_us);
}

static json_t *point_record(const struct nccl_tests *t, const struct nccl_tests_row *row, const struct samples *s,
                            size_t index, uint64_t nodes, uint64_t gpus)
{
    json_t *o = json_object();
    char model[64];

    set_text(o, "record", "point");
    set_count(o, "index", index);
    set_text(o, "kernel", row->collective);
    set_text(o, "variant", row->in_place ? "in-place" : "out-of-place");
    set_text(o, "program", "nccl");
    set_count(o, "bytes", row->bytes);
    set_count(o, "nodes", nodes);
    set_count(o, "gpus_per_node", gpus);
    set_text(o, "mode", "pipelined");
    set_text(o, "backend", "nccl-tests");
    json_object_set_new(o, "resolved", resolved(row, nodes, gpus));
    set_text(o, "verdict", s->wrong ? "wrong" : "ok");
    set_text(o, "status", s->wrong ? status_text(ST_WRONG) : status_text(ST_OK));
    if (t->iterations > 0)
        snprintf(model, sizeof model, "measured, mean of %" PRIu64 " iterations", t->iterations);
    else
        snprintf(model, sizeof model, "measured, mean");
    set_text(o, "model", model);
    set_times(o, row, s);
    return o;
}

/* ---- the file ---- */

static enum status world_of(const struct import_nccl_tests *q, const struct nccl_tests *t, uint64_t *nodes,
                            uint64_t *gpus)
{
    *nodes = q->world.nodes ? q->world.nodes : t->nodes;
    *gpus = q->world.nodes ? q->world.gpus_per_node : t->nodes ? t->ranks / t->nodes : 0;
    if (*nodes > 0 && *gpus > 0)
        return ST_OK;
    log_error("%s: no list of devices in it; --world NODESxGPUS says how many there were", q->path);
    return ST_INPUT;
}

static size_t put_points(struct result_file *f, const struct nccl_tests *t, uint64_t nodes, uint64_t gpus,
                         size_t *failed)
{
    bool *taken = calloc(t->count, sizeof *taken);
    size_t count = 0;

    assert(taken);
    for (size_t i = 0; i < t->count; i++) {
        struct samples s;

        if (taken[i])
            continue;
        s = collect(t, i, taken);
        put(f, point_record(t, &t->rows[i], &s, count++, nodes, gpus));
        *failed += s.wrong;
        free(s.times_us);
    }
    free(taken);
    return count;
}

static enum status write_results(const struct import_nccl_tests *q, const struct nccl_tests *t)
{
    struct result_file f;
    char path[RESULT_PATH_BYTES], stamp[40];
    uint64_t nodes, gpus;
    size_t failed = 0, count;
    char *end;

    TRY(world_of(q, t, &nodes, &gpus));
    record_date(true, stamp, sizeof stamp);
    snprintf(path, sizeof path, "results/local/%.200s-%s.jsonl", file_name(q->path), stamp);
    TRY(result_open(&f, q->output ? q->output : path));
    put(&f, run_record(q, t));
    count = put_points(&f, t, nodes, gpus, &failed);
    end = record_end(count, failed, false);
    result_write(&f, end);
    free(end);
    TRY(result_commit(&f, path));
    log_info("results: %s, %zu points of %s on %" PRIu64 " x %" PRIu64 " GPUs", path, count, t->rows[0].collective,
             nodes, gpus);
    if (failed > 0)
        log_warn("%s: %zu points have wrong elements, by nccl-tests' own check", q->path, failed);
    return ST_OK;
}

enum status import_nccl_tests(const struct import_nccl_tests *q)
{
    struct nccl_tests t;
    size_t size;
    char *text;
    enum status st;

    TRY(file_read(q->path, "output of nccl-tests, at most 64 MiB", NCCL_TESTS_BYTES_MAX, &text, &size));
    st = nccl_tests_parse(q->path, text, size, q->collective, &t);
    free(text);
    TRY(st);
    st = write_results(q, &t);
    nccl_tests_fini(&t);
    return st;
}
