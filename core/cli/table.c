#include "core/cli/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void table_begin(struct table *t, const struct column *columns)
{
    *t = (struct table){.columns = columns};
    while (columns[t->column_count].name)
        t->column_count++;
}

void table_add(struct table *t, const char *format, ...)
{
    va_list args;
    int n;

    if (t->cell_count == t->cell_space) {
        t->cell_space = t->cell_space ? 2 * t->cell_space : 256;
        t->cells = realloc(t->cells, t->cell_space * sizeof *t->cells);
        assert(t->cells);
    }
    va_start(args, format);
    n = vasprintf(&t->cells[t->cell_count++], format, args);
    va_end(args);
    assert(n >= 0);
}

static int width(const struct table *t, size_t column)
{
    size_t w = strlen(t->columns[column].name), unit = strlen(t->columns[column].unit);

    w = unit > w ? unit : w;
    for (size_t i = column; i < t->cell_count; i += t->column_count)
        if (strlen(t->cells[i]) > w)
            w = strlen(t->cells[i]);
    return (int)w;
}

static const char *colour_of(const char *text)
{
    if (strcmp(text, "best") == 0)
        return "\033[32m";
    if (strcmp(text, "slower") == 0 || strcmp(text, "wrong") == 0 || strcmp(text, "hang") == 0)
        return "\033[31m";
    return NULL;
}

static void print_cell(const struct column *c, int w, bool last, const char *text, bool colour, FILE *f)
{
    const char *on = colour ? colour_of(text) : NULL;
    int pad = w - (int)strlen(text);

    if (last && text[0] == 0) /* no blanks at a line's end */
        return;
    fprintf(f, " %*s%s%s%s", c->left ? 0 : pad, "", on ? on : "", text, on ? "\033[0m" : "");
    if (c->left && !last)
        fprintf(f, "%*s", pad, "");
}

void table_print(const struct table *t, bool colour, FILE *f)
{
    int widths[32];
    size_t last = t->column_count - 1;

    assert(t->column_count <= 32);
    for (size_t c = 0; c < t->column_count; c++)
        widths[c] = width(t, c);
    for (int line = 0; line < 2; line++) {
        fprintf(f, "#");
        for (size_t c = 0; c <= last; c++)
            print_cell(&t->columns[c], widths[c], c == last, line == 0 ? t->columns[c].name : t->columns[c].unit, false,
                       f);
        fprintf(f, "\n");
    }
    for (size_t i = 0; i < t->cell_count; i++) {
        size_t c = i % t->column_count;

        print_cell(&t->columns[c], widths[c] + (c == 0), c == last, t->cells[i], colour, f);
        if (c == last)
            fprintf(f, "\n");
    }
}

void table_end(struct table *t)
{
    for (size_t i = 0; i < t->cell_count; i++)
        free(t->cells[i]);
    free(t->cells);
    *t = (struct table){0};
}
