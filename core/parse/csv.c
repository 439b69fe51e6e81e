#include "core/parse/csv.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/log.h"
#include "core/parse/nearest.h"

#define FILE_BYTES_MAX (UINT64_C(64) << 20)

/* Lines may end as on Windows. */
static void drop_returns(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++)
        if (*from != '\r' || from[1] != '\n')
            *to++ = *from;
    *to = '\0';
}

static enum status read_whole(const char *path, char **text_out)
{
    size_t size;

    TRY(file_read(path, "a table of at most 64 MiB", FILE_BYTES_MAX, text_out, &size));
    if (strlen(*text_out) != size) {
        log_error("%s: holds a byte of 0; expected a table of text", path);
        free(*text_out);
        *text_out = NULL;
        return ST_INPUT;
    }
    drop_returns(*text_out);
    return ST_OK;
}

/* Ends the field at *at with a NUL, in place, and moves *at behind it.  Returns the character that
 * followed the field: ',' or '\n' or 0; anything else is an error. */
static char cut_field(char **at, char **field_out)
{
    char *from = *at, *to;

    if (*from != '"') {
        *field_out = from;
        to = from + strcspn(from, ",\n");
    } else {
        *field_out = to = ++from;
        while (*from != '\0' && *from != '\n' && (*from != '"' || from[1] == '"')) {
            from += *from == '"';
            *to++ = *from++;
        }
        if (*from != '"')
            return '"';
        from++;
        *at = *from ? from + 1 : from;
        char end = *from;
        *to = '\0';
        return end;
    }
    char end = *to;
    *at = end ? to + 1 : to;
    *to = '\0';
    return end;
}

static enum status refuse_line(const struct csv *c, const char *what)
{
    log_error("%s:%u: %s", c->path, c->row_count + 1, what);
    return ST_INPUT;
}

static enum status cut_row(struct csv *c, char **at)
{
    char *fields[CSV_COLUMNS_MAX], end = ',';
    uint32_t count = 0;

    while (end == ',') {
        if (count == CSV_COLUMNS_MAX)
            return refuse_line(c, "more than 24 columns");
        end = cut_field(at, &fields[count++]);
    }
    if (end != '\n' && end != '\0')
        return refuse_line(c, "a quoted field does not end, or is followed by text");
    if (c->row_count == 0)
        c->column_count = count;
    if (count != c->column_count)
        return refuse_line(c, "another number of columns than in the header");
    c->fields = realloc(c->fields, (c->row_count + 1) * sizeof(fields[0]) * count);
    assert(c->fields != NULL);
    memcpy(c->fields + (size_t)c->row_count * count, fields, sizeof(fields[0]) * count);
    c->row_count++;
    return ST_OK;
}

enum status csv_read(const char *path, struct csv *out)
{
    struct csv c = {.path = strdup(path)};
    enum status st = read_whole(path, &c.text);
    char *at = c.text;

    assert(c.path != NULL);
    while (st >= 0 && *at != '\0')
        st = cut_row(&c, &at);
    if (st >= 0 && c.row_count == 0)
        st = refuse_line(&c, "no header");
    if (st < 0) {
        csv_free(&c);
        return st;
    }
    *out = c;
    return ST_OK;
}

void csv_free(struct csv *c)
{
    free(c->path);
    free(c->text);
    free(c->fields);
    *c = (struct csv){0};
}

enum status csv_column(const struct csv *c, const char *name, uint32_t *out)
{
    struct nearest n;
    char guess[128];

    nearest_begin(&n, name);
    for (uint32_t i = 0; i < c->column_count; i++) {
        if (strcmp(c->fields[i], name) == 0) {
            *out = i;
            return ST_OK;
        }
        nearest_offer(&n, c->fields[i]);
    }
    log_error("%s:1: no column \"%s\"%s", c->path, name, nearest_text(&n, guess, sizeof guess));
    return ST_INPUT;
}

const char *csv_field(const struct csv *c, uint32_t row, uint32_t column)
{
    assert(row < c->row_count && column < c->column_count);
    return c->fields[(size_t)row * c->column_count + column];
}

enum status csv_number(const struct csv *c, uint32_t row, uint32_t column, double *out)
{
    const char *text = csv_field(c, row, column);
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !isfinite(value)) {
        log_error("%s:%u: %s: \"%s\" is no number", c->path, row + 1, csv_field(c, 0, column), text);
        return ST_INPUT;
    }
    *out = value;
    return ST_OK;
}

void csv_put(const char *text, FILE *f)
{
    bool quoted = text[strcspn(text, ",\"\r\n")] != '\0';

    if (quoted)
        fputc('"', f);
    for (; *text; text++)
        fprintf(f, *text == '"' ? "\"\"" : "%c", *text);
    if (quoted)
        fputc('"', f);
}
