#include "core/results/records.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/log.h"
#include "core/results/record.h"

#define TIME_MAX_US 1e12 /* eleven days */

/* Where parsing stands. */
struct reader {
    struct records *out;
    size_t line;
    bool ended; /* the last record was an "end" */
};

static enum status refuse(const struct reader *r, const char *what)
{
    log_error("%s:%zu: %s", r->out->path, r->line, what);
    return ST_INPUT;
}

/* ---- members ---- */

static const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text ? text : "";
}

static bool time_of(const json_t *v, double *us_out)
{
    *us_out = json_number_value(v);
    return json_is_number(v) && *us_out >= 0 && *us_out <= TIME_MAX_US;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* By nearest rank. */
static double quantile(const double *sorted, size_t count, double share)
{
    size_t rank = (size_t)ceil(share * (double)count);

    return sorted[rank > 0 ? rank - 1 : 0];
}

static enum status read_samples(const struct reader *r, struct records_point *p)
{
    const json_t *samples = json_object_get(p->json, "samples_us"), *v;
    double *sorted;
    size_t i;

    p->low_us = p->high_us = p->median_us;
    p->sample_count = json_array_size(samples);
    if (samples && !json_is_array(samples))
        return refuse(r, "\"samples_us\" is no list of numbers");
    if (p->sample_count == 0)
        return ST_OK;
    sorted = calloc(p->sample_count, sizeof *sorted);
    assert(sorted);
    json_array_foreach (samples, i, v) {
        if (!time_of(v, &sorted[i])) {
            free(sorted);
            return refuse(r, "\"samples_us\" holds something that is no time");
        }
    }
    qsort(sorted, p->sample_count, sizeof *sorted, compare_doubles);
    p->low_us = quantile(sorted, p->sample_count, 0.25);
    p->high_us = quantile(sorted, p->sample_count, 0.75);
    free(sorted);
    return ST_OK;
}

static enum status read_point(struct reader *r, json_t *o)
{
    struct records *out = r->out;
    const json_t *resolved = json_object_get(o, "resolved"), *median = json_object_get(o, "median_us");
    struct records_point *p = &out->points[out->point_count];

    if (out->run_count == 0)
        return refuse(r, "a point before any \"run\" record: expected a result file of mkernel run, tune or import");
    if (out->point_count == RECORDS_POINTS_MAX)
        return refuse(r, "more points than a report or a comparison can show");
    *p = (struct records_point){
        .json = o,
        .run = out->run_count - 1,
        .line = r->line,
        .kernel = text_of(o, "kernel"),
        .variant = text_of(o, "variant"),
        .program = text_of(o, "program"),
        .backend = text_of(o, "backend"),
        .status = text_of(o, "status"),
    };
    if (!p->kernel[0] || !p->program[0])
        return refuse(r, "a point without \"kernel\" or \"program\"");
    if (!resolved || !json_is_object(resolved))
        return refuse(r, "a point without \"resolved\", the keys that name it");
    if (median && !time_of(median, &p->median_us))
        return refuse(r, "\"median_us\" is no time");
    out->point_count++;
    return read_samples(r, p);
}

static enum status read_run(struct reader *r, json_t *o)
{
    struct records *out = r->out;
    json_int_t schema = json_integer_value(json_object_get(o, "schema"));

    if (schema != RECORD_SCHEMA) {
        log_error("%s:%zu: schema %lld, expected %d", out->path, r->line, (long long)schema, RECORD_SCHEMA);
        return ST_INPUT;
    }
    out->runs = realloc(out->runs, (out->run_count + 1) * sizeof *out->runs);
    assert(out->runs);
    out->runs[out->run_count++] = o;
    return ST_OK;
}

static enum status read_line(struct reader *r, const char *text, size_t size)
{
    json_error_t error;
    json_t *o = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    const char *kind;

    if (!o) {
        log_error("%s:%zu:%d: not JSON: %s", r->out->path, r->line, error.column, error.text);
        return ST_INPUT;
    }
    json_array_append_new(r->out->lines, o);
    kind = text_of(o, "record");
    r->ended = strcmp(kind, "end") == 0;
    if (r->ended && json_is_true(json_object_get(o, "interrupted")))
        log_warn("%s:%zu: this run was interrupted, not all of its points are there", r->out->path, r->line);
    if (strcmp(kind, "run") == 0)
        return read_run(r, o);
    if (strcmp(kind, "point") == 0)
        return read_point(r, o);
    if (!kind[0])
        return refuse(r, "no \"record\": expected a line of a result file of mkernel");
    return ST_OK; /* checks, ends and what later versions add */
}

/* ---- files ---- */

static size_t count_lines(const char *text, size_t size)
{
    size_t count = 1;

    for (size_t i = 0; i < size; i++)
        count += text[i] == '\n';
    return count;
}

static enum status read_lines(struct reader *r, const char *text, size_t size)
{
    while (size > 0) {
        const char *end = memchr(text, '\n', size);
        size_t length = end ? (size_t)(end - text) : size;

        r->line++;
        if (length > 0)
            TRY(read_line(r, text, length));
        length += end != NULL;
        text += length;
        size -= length;
    }
    if (r->out->run_count == 0)
        return refuse(r, "no \"run\" record: expected a result file of mkernel");
    if (!r->ended)
        log_warn("%s:%zu: no \"end\" record at its end: the file is cut short, or not yet complete", r->out->path,
                 r->line);
    return ST_OK;
}

enum status records_parse(const char *path, const char *text, size_t text_bytes, struct records *out)
{
    struct reader r = {.out = out};
    size_t lines = count_lines(text, text_bytes);
    enum status st;

    *out = (struct records){.path = path, .lines = json_array()};
    out->points = calloc(lines < RECORDS_POINTS_MAX ? lines : RECORDS_POINTS_MAX, sizeof *out->points);
    assert(out->lines && out->points);
    st = read_lines(&r, text, text_bytes);
    if (st < 0)
        records_fini(out);
    return st;
}

enum status records_load(const char *path, struct records *out)
{
    size_t size;
    char *text;
    enum status st;

    *out = (struct records){0};
    TRY(file_read(path, "a result file of mkernel, at most 256 MiB", RECORDS_BYTES_MAX, &text, &size));
    st = records_parse(path, text, size, out);
    free(text);
    return st;
}

void records_fini(struct records *r)
{
    json_decref(r->lines);
    free(r->runs);
    free(r->points);
    *r = (struct records){0};
}

bool records_has_time(const struct records_point *p)
{
    return p->median_us > 0 && strcmp(p->status, "done") == 0;
}

const char *records_key(const struct records_point *p, const char *name)
{
    return json_string_value(json_object_get(json_object_get(p->json, "resolved"), name));
}
