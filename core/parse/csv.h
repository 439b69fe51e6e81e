/* Comma-separated files with a header line, as results/reference has them: fields may be quoted,
 * "" in quotes is a quote, a field does not span lines. */
#ifndef CORE_PARSE_CSV_H
#define CORE_PARSE_CSV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

#define CSV_COLUMNS_MAX 24

struct csv {
    char *path;
    char *text;    /* the file, cut into fields in place */
    char **fields; /* row * column_count + column; the header is row 0 */
    uint32_t row_count, column_count;
};

/* Errors are logged with file and line. */
enum status csv_read(const char *path, struct csv *out);
void csv_free(struct csv *c); /* a zeroed one is fine */

/* Index of a column that must be there; ST_INPUT (logged, with the nearest name) otherwise. */
enum status csv_column(const struct csv *c, const char *name, uint32_t *out);

/* Data rows count from 1. */
const char *csv_field(const struct csv *c, uint32_t row, uint32_t column);
/* A number, or ST_INPUT (logged). */
enum status csv_number(const struct csv *c, uint32_t row, uint32_t column, double *out);

/* Writes a field, in quotes where it has to be; no comma. */
void csv_put(const char *text, FILE *f);

#endif
