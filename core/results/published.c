#include "core/results/published.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/parse/keys.h"
#include "core/log.h"

#define TABLE_BYTES_MAX (1u << 20)
#define AT(member) offsetof(struct published_keys, member)

const struct option published_options[] = {
    {.name = "table",
     .type = OPTION_TEXT,
     .offset = AT(table),
     .help = "CSV file of published results, relative to the scenario"},
    {.name = "hardware",
     .type = OPTION_TEXT,
     .offset = AT(hardware),
     .help = "what the hardware of its rows begins with"},
    {.name = "system", .type = OPTION_TEXT, .offset = AT(system), .help = "the published kernel's name there"},
    {.name = "library",
     .type = OPTION_TEXT,
     .offset = AT(library),
     .help = "the name of the library that it is compared with"},
    {.name = "variant",
     .type = OPTION_TEXT,
     .offset = AT(variant),
     .initial = "published",
     .help = "the variant that stands for the published kernel"},
    {0},
};

enum column { KERNEL, HARDWARE, SHAPE, SYSTEM, METRIC, VALUE, COLUMNS };

struct published_row {
    bool library; /* else the published kernel */
    char kernel[32];
    uint64_t size; /* the problem's first key */
    double value;
    bool milliseconds; /* else TFLOP/s per GPU */
};

struct published {
    struct published_keys keys;
    struct published_row *rows;
    uint64_t count;
};

/* ---- the table ---- */

/* The next field of a CSV line; quotes may hold commas.  Returns what follows it. */
static const char *next_field(const char *at, char *out, size_t out_bytes)
{
    size_t used = 0;
    bool quoted = false;

    for (; *at && *at != '\n' && (quoted || *at != ','); at++)
        if (*at == '"')
            quoted = !quoted;
        else if (used + 1 < out_bytes)
            out[used++] = *at;
    out[used] = 0;
    return *at == ',' ? at + 1 : at;
}

static void add_row(struct published *p, const struct published_row *row)
{
    p->rows = realloc(p->rows, (p->count + 1) * sizeof *p->rows);
    assert(p->rows);
    p->rows[p->count++] = *row;
}

/* Takes the line if it is about the hardware and one of the two systems, and holds a number ("failed" is none). */
static const char *take_line(struct published *p, const char *at)
{
    char fields[COLUMNS][160], *end;
    struct published_row row = {0};
    const char *number;

    for (int i = 0; i < COLUMNS; i++)
        at = next_field(at, fields[i], sizeof fields[i]);
    at += strcspn(at, "\n");
    at += *at == '\n';
    row.library = strcmp(fields[SYSTEM], p->keys.library) == 0;
    row.value = strtod(fields[VALUE], &end);
    row.milliseconds = strcmp(fields[METRIC], "ms") == 0;
    number = strchr(fields[SHAPE], '=');
    if ((!row.library && strcmp(fields[SYSTEM], p->keys.system) != 0) || !number || *end || row.value <= 0 ||
        strncmp(fields[HARDWARE], p->keys.hardware, strlen(p->keys.hardware)) != 0 ||
        (!row.milliseconds && strcmp(fields[METRIC], "TFLOPS_per_GPU") != 0))
        return at;
    snprintf(row.kernel, sizeof row.kernel, "%.31s", fields[KERNEL]);
    row.size = strtoull(number + 1, NULL, 10);
    add_row(p, &row);
    return at;
}

static enum status read_table(struct published *p, const char *scenario_path, const struct yaml_node *map)
{
    const char *slash = strrchr(scenario_path, '/');
    char path[1024], *text;
    size_t bytes;

    snprintf(path, sizeof path, "%.*s%s", (int)(slash ? slash + 1 - scenario_path : 0), scenario_path, p->keys.table);
    if (access(path, F_OK) != 0)
        snprintf(path, sizeof path, "%s", p->keys.table);
    if (access(path, F_OK) != 0) {
        place_error(&yaml_get(map, "table")->place,
                    "published.table: there is no file \"%s\", neither beside the scenario nor here", path);
        return ST_INPUT;
    }
    TRY(file_read(path, "a table of at most 1 MiB", TABLE_BYTES_MAX, &text, &bytes));
    for (const char *at = text; *at;)
        at = take_line(p, at);
    free(text);
    if (p->count > 0)
        return ST_OK;
    place_error(&map->place, "published: %s holds nothing of \"%s\" or \"%s\" on hardware that begins with \"%s\"",
                path, p->keys.system, p->keys.library, p->keys.hardware);
    return ST_INPUT;
}

enum status published_read(struct scenario *s)
{
    const struct keys keys = {.section = "published.", .table = published_options};
    const struct yaml_node *map = yaml_get(s->source->root, "published");

    if (!map)
        return ST_OK;
    s->published = calloc(1, sizeof *s->published);
    assert(s->published);
    TRY(keys_read(&keys, map, map->place, &s->published->keys));
    return read_table(s->published, s->path, map);
}

void published_destroy(struct published *p)
{
    if (!p)
        return;
    free(p->rows);
    free(p);
}

/* ---- points ---- */

static double row_us(const struct published_row *row, const struct point *point)
{
    if (row->milliseconds)
        return row->value * 1e3;
    return point->kernel->family->flops(&point->problem, point->world) / (row->value * 1e6);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const double *sorted, uint64_t count)
{
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

bool published_find(const struct scenario *s, const struct point *point, struct published_value *out)
{
    const struct published *p = s->published;
    bool library = point->program == PROGRAM_NCCL;
    double *found;
    uint64_t size;
    uint32_t count = 0;

    if (!p || (!library && strcmp(point->variant, p->keys.variant) != 0))
        return false;
    memcpy(&size, (const char *)&point->problem + point->kernel->family->keys[0].offset, sizeof size);
    found = calloc(p->count, sizeof *found);
    assert(found);
    for (uint64_t i = 0; i < p->count; i++)
        if (p->rows[i].library == library && p->rows[i].size == size &&
            strcmp(p->rows[i].kernel, point->kernel->name) == 0)
            found[count++] = row_us(&p->rows[i], point);
    qsort(found, count, sizeof *found, compare_doubles);
    if (count > 0)
        *out = (struct published_value){median(found, count), found[0], found[count - 1], count};
    free(found);
    return count > 0;
}

/* ---- totals ---- */

void published_total_add(struct published_total *t, double error)
{
    t->errors = realloc(t->errors, (t->count + 1) * sizeof *t->errors);
    assert(t->errors);
    t->errors[t->count++] = fabs(error);
}

void published_total_print(const struct published_total *t, const char *what, FILE *f)
{
    double *sorted = calloc(t->count + 1, sizeof *sorted);
    uint64_t rank90 = (9 * t->count + 9) / 10; /* nearest rank */

    assert(sorted);
    if (t->count > 0) {
        memcpy(sorted, t->errors, t->count * sizeof *sorted);
        qsort(sorted, t->count, sizeof *sorted, compare_doubles);
        fprintf(f, "%s: against %llu published values: median error %.1f %%, p90 %.1f %%, worst %.1f %%", what,
                (unsigned long long)t->count, 100 * median(sorted, t->count), 100 * sorted[rank90 - 1],
                100 * sorted[t->count - 1]);
        if (t->pairs > 0)
            fprintf(f, "; who is faster agrees at %llu of %llu", (unsigned long long)t->agreed,
                    (unsigned long long)t->pairs);
        fprintf(f, ".\n");
    }
    free(sorted);
}

void published_total_fini(struct published_total *t)
{
    free(t->errors);
    *t = (struct published_total){0};
}
