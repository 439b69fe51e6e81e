#include "core/validate/validate.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/parse/csv.h"
#include "core/log.h"

void validation_add(struct validation *v, const struct validate_row *row)
{
    assert(row->measured_us > 0 && row->predicted_us > 0);
    if (v->count == v->capacity) {
        v->capacity = v->capacity > 0 ? 2 * v->capacity : 256;
        v->rows = realloc(v->rows, v->capacity * sizeof(v->rows[0]));
        assert(v->rows != NULL);
    }
    v->rows[v->count++] = *row;
}

void validation_free(struct validation *v)
{
    free(v->rows);
    *v = (struct validation){0};
}

/* ---- groups ---- */

typedef void name_fn(const struct validate_row *r, char *out, size_t out_bytes);

static void name_class(const struct validate_row *r, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s %s, %s", r->set, r->place, r->size);
}

static void name_what(const struct validate_row *r, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s %s, %s", r->set, r->what, r->place);
}

static void name_machine(const struct validate_row *r, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s %s", r->set, r->machine);
}

static void name_source(const struct validate_row *r, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s %s, %s", r->set, r->source, r->place);
}

static const struct {
    const char *by;
    name_fn *name;
} views[] = {{"class", name_class}, {"what", name_what}, {"machine", name_machine}, {"source", name_source}};

static double error_of(double predicted, double measured)
{
    return fabs(predicted / measured - 1) * 100;
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The smallest value that at least this share does not exceed; `values` are sorted. */
static double quantile(const double *values, uint32_t count, double share)
{
    return values[(uint32_t)ceil(share * count) - 1];
}

static void measure(const struct validation *v, name_fn *name, struct validate_group *g)
{
    double *errors = calloc(2 * (size_t)v->count, sizeof(errors[0])), *bare = errors + v->count;
    uint32_t bare_count = 0;
    char text[sizeof(g->name)];

    assert(errors != NULL);
    g->held_out = true;
    for (uint32_t i = 0; i < v->count; i++) {
        const struct validate_row *r = &v->rows[i];
        name(r, text, sizeof text);
        if (strcmp(text, g->name) != 0)
            continue;
        errors[g->count++] = error_of(r->predicted_us, r->measured_us);
        if (r->bare_us > 0)
            bare[bare_count++] = error_of(r->bare_us, r->measured_us);
        g->held_out = g->held_out && r->held_out;
    }
    qsort(errors, g->count, sizeof(errors[0]), compare_double);
    qsort(bare, bare_count, sizeof(bare[0]), compare_double);
    g->median = quantile(errors, g->count, 0.5);
    g->p90 = quantile(errors, g->count, 0.9);
    g->worst = errors[g->count - 1];
    g->bare_median = bare_count > 0 ? quantile(bare, bare_count, 0.5) : -1;
    free(errors);
}

static bool is_known(const struct validate_group *groups, uint32_t count, const char *by, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(groups[i].by, by) == 0 && strcmp(groups[i].name, name) == 0)
            return true;
    return false;
}

struct validate_group *validate_groups(const struct validation *v, uint32_t *count_out)
{
    struct validate_group *groups = NULL;
    uint32_t count = 0;

    for (uint32_t k = 0; k < sizeof(views) / sizeof(views[0]); k++)
        for (uint32_t i = 0; i < v->count; i++) {
            struct validate_group g = {.count = 0};
            views[k].name(&v->rows[i], g.name, sizeof(g.name));
            if (is_known(groups, count, views[k].by, g.name))
                continue;
            snprintf(g.by, sizeof(g.by), "%s", views[k].by);
            measure(v, views[k].name, &g);
            groups = realloc(groups, (count + 1) * sizeof(groups[0]));
            assert(groups != NULL);
            groups[count++] = g;
        }
    *count_out = count;
    return groups;
}

/* ---- bounds ---- */

struct bound {
    const char *name;
    double median, p90;
};

static const struct validate_group *class_named(const struct validate_group *groups, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(groups[i].by, "class") == 0 && strcmp(groups[i].name, name) == 0)
            return &groups[i];
    return NULL;
}

static enum status hold(const struct bound *b, const struct validate_group *g, const char *path)
{
    if (g == NULL) {
        log_error("%s: no row of the class \"%s\" was replayed", path, b->name);
        return ST_WRONG;
    }
    if (g->median <= b->median && g->p90 <= b->p90)
        return ST_OK;
    log_error("%s: error %.1f %% in the median, %.1f %% in nine of ten; at most %.1f and %.1f are "
              "recorded in %s",
              b->name, g->median, g->p90, b->median, b->p90, path);
    return ST_WRONG;
}

enum status validate_bounds(const struct validate_group *groups, uint32_t count, const char *path)
{
    struct csv csv = {0};
    uint32_t name, median, p90;
    enum status worst = ST_OK, st = csv_read(path, &csv);

    if (st >= 0)
        st = csv_column(&csv, "name", &name);
    if (st >= 0)
        st = csv_column(&csv, "median", &median);
    if (st >= 0)
        st = csv_column(&csv, "p90", &p90);
    for (uint32_t i = 1; st >= 0 && i < csv.row_count; i++) {
        struct bound b = {.name = csv_field(&csv, i, name)};
        st = csv_number(&csv, i, median, &b.median);
        if (st >= 0)
            st = csv_number(&csv, i, p90, &b.p90);
        if (st >= 0 && hold(&b, class_named(groups, count, b.name), path) < 0)
            worst = ST_WRONG;
    }
    csv_free(&csv);
    return st < 0 ? st : worst;
}
