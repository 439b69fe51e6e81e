#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cli/page.h"
#include "core/file.h"
#include "core/log.h"

#define COLUMNS_MAX 32
#define BYTES_MAX (4u << 20)

struct csv {
    const char *path;
    char *at;
    size_t line;
};

/* One field, unquoted in place; *more: another one follows in its row. */
static char *next_field(struct csv *c, bool *more)
{
    char *begin = c->at, *in = c->at, *out = c->at;
    bool quoted = false;

    for (; *in && (quoted || (*in != ',' && *in != '\n')); in++) {
        if (*in == '"' && quoted && in[1] == '"')
            *out++ = *in++;
        else if (*in == '"')
            quoted = !quoted;
        else if (*in != '\r')
            *out++ = *in;
        c->line += *in == '\n';
    }
    *more = *in == ',';
    c->line += *in == '\n';
    c->at = in + (*in != 0);
    *out = 0;
    return begin;
}

static size_t next_row(struct csv *c, char *fields[COLUMNS_MAX])
{
    size_t count = 0;
    bool more = true;

    while (more && count < COLUMNS_MAX)
        fields[count++] = next_field(c, &more);
    return count;
}

static bool has_kernel(const struct records *files, size_t count, const char *kernel)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < files[i].point_count; k++)
            if (strcmp(files[i].points[k].kernel, kernel) == 0)
                return true;
    return false;
}

static enum status read_rows(struct csv *c, const struct records *files, size_t count, json_t *rows)
{
    char *names[COLUMNS_MAX], *fields[COLUMNS_MAX];
    size_t columns = next_row(c, names);

    while (*c->at) {
        size_t line = c->line, found = next_row(c, fields);
        json_t *o;

        if (found != columns) {
            log_error("%s:%zu: %zu fields, expected %zu as in the first line", c->path, line, found, columns);
            return ST_INPUT;
        }
        if (!has_kernel(files, count, fields[0]))
            continue;
        o = json_object();
        for (size_t i = 0; i < columns; i++)
            json_object_set_new(o, names[i], json_string(fields[i]));
        json_array_append_new(rows, o);
    }
    return ST_OK;
}

enum status page_published(const char *path, const struct records *files, size_t count, json_t **out)
{
    struct csv c = {.path = path, .line = 1};
    size_t size;
    char *text;
    enum status st;

    *out = json_array();
    if (access(path, F_OK) != 0)
        return ST_OK;
    st = file_read(path, "a table of published results", BYTES_MAX, &text, &size);
    if (st >= 0) {
        c.at = text;
        st = read_rows(&c, files, count, *out);
        free(text);
    }
    if (st < 0) {
        json_decref(*out);
        *out = NULL;
    }
    return st;
}
