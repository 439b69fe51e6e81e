/* Result files read back (docs/results.md): what `compare` and `report` look at.  Members that they do not
 * know are kept in the JSON. */
#ifndef CORE_RESULTS_RECORDS_H
#define CORE_RESULTS_RECORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

#define RECORDS_BYTES_MAX ((size_t)256 << 20) /* of a file */
#define RECORDS_POINTS_MAX 100000

struct records_point {
    const json_t *json;
    size_t run; /* index of the run record that it follows */
    size_t line;
    const char *kernel, *variant, *program, *backend, *status; /* never NULL */
    double median_us;                                          /* 0: it has no time */
    double low_us, high_us; /* first and third quartile of the samples; the median where there is one */
    size_t sample_count;
};

struct records {
    const char *path; /* borrowed */
    json_t **runs;
    size_t run_count;
    struct records_point *points;
    size_t point_count;
    json_t *lines; /* owns all of it */
};

/* ST_INPUT: not a result file, or damaged; logged with file:line:column. */
enum status records_load(const char *path, struct records *out);

/* The same for text in memory. */
enum status records_parse(const char *path, const char *text, size_t text_bytes, struct records *out);

void records_fini(struct records *r); /* safe on a zeroed one */

/* Whether it ended well and has a time. */
bool records_has_time(const struct records_point *p);

/* A key of the point as scenarios write it ("problem.m", "params.comm_sms"); NULL: it has none of that name. */
const char *records_key(const struct records_point *p, const char *name);

#endif
