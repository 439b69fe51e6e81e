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

/* In characters: texts are UTF-8. */
static int text_width(const char *text)
{
    int count = 0;

    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static int wider(int w, const char *text)
{
    int other = text_width(text);

    return other > w ? other : w;
}

static int width(const struct table *t, size_t column)
{
    int w = wider(text_width(t->columns[column].name), t->columns[column].unit);

    for (size_t i = column; i < t->cell_count; i += t->column_count)
        w = wider(w, t->cells[i]);
    return w;
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
    int pad = w - text_width(text);

    fprintf(f, " %*s%s%s%s", c->left ? 0 : pad, "", on ? on : "", text, on ? "\033[0m" : "");
    if (c->left && !last)
        fprintf(f, "%*s", pad, "");
}

/* Without blanks at the line's end.  `more`: of the first column's width. */
static void print_row(const struct table *t, const int *widths, int more, const char *const *row, bool colour, FILE *f)
{
    size_t last = t->column_count - 1;

    while (last > 0 && row[last][0] == 0)
        last--;
    for (size_t c = 0; c <= last; c++)
        print_cell(&t->columns[c], widths[c] + (c == 0 ? more : 0), c == last, row[c], colour, f);
    fprintf(f, "\n");
}

void table_print(const struct table *t, bool colour, FILE *f)
{
    int widths[32];
    const char *row[32];

    assert(t->column_count <= 32);
    for (size_t c = 0; c < t->column_count; c++)
        widths[c] = width(t, c);
    for (int line = 0; line < 2; line++) {
        for (size_t c = 0; c < t->column_count; c++)
            row[c] = line == 0 ? t->columns[c].name : t->columns[c].unit;
        fprintf(f, "#");
        print_row(t, widths, 0, row, false, f);
    }
    for (size_t i = 0; i < t->cell_count; i += t->column_count) {
        for (size_t c = 0; c < t->column_count; c++)
            row[c] = t->cells[i + c];
        print_row(t, widths, 1, row, colour, f);
    }
}

void table_end(struct table *t)
{
    for (size_t i = 0; i < t->cell_count; i++)
        free(t->cells[i]);
    free(t->cells);
    *t = (struct table){0};
}
