/* The problem's keys as columns: which there are follows from the kernels' family. */
#include <assert.h>

#include "core/cli/report.h"

void report_columns(const struct column *columns, const struct problem_family *family,
                    struct column out[TABLE_COLUMNS_MAX])
{
    uint32_t count = 0;

    out[count++] = columns[0];
    for (const struct option *key = family->keys; key->name; key++)
        out[count++] = (struct column){key->name, "", false};
    for (columns++; columns->name; columns++) {
        assert(count < TABLE_COLUMNS_MAX - 1);
        out[count++] = *columns;
    }
    out[count] = (struct column){NULL, NULL, false};
}

void report_add_problem(struct table *t, const struct problem_family *family, const struct problem *p)
{
    char value[64];

    for (const struct option *key = family->keys; key->name; key++) {
        option_print(key, p, value, sizeof value);
        table_add(t, "%s", value);
    }
}
