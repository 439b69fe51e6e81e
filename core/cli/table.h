/* Aligned columns of any width: nothing is cut, the widest cell decides. */
#ifndef CORE_CLI_TABLE_H
#define CORE_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct column {
    const char *name, *unit; /* two header lines; NULL name ends the list */
    bool left;               /* else right-aligned */
};

struct table {
    const struct column *columns;
    size_t column_count;
    char **cells; /* row by row */
    size_t cell_count, cell_space;
};

#define TABLE_COLUMNS_MAX 40

void table_begin(struct table *t, const struct column *columns);
void table_add(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The two header lines begin with "#", rows with a space.  `colour`: verdicts "best" green, "slower" and
 * failures red. */
void table_print(const struct table *t, bool colour, FILE *f);
void table_end(struct table *t);

#endif
