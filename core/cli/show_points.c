#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli/show.h"
#include "core/run/run.h"

#define KEYS_MAX 96
#define VALUES_MAX 24 /* distinct values of one key that are told apart */
#define VALUE_BYTES 128
#define POINTS_LISTED 32

/* A key and the values it takes over the points. */
struct dimension {
    char key[VALUE_BYTES];
    char values[VALUES_MAX][VALUE_BYTES];
    uint64_t counts[VALUES_MAX];
    uint32_t value_count;
    uint64_t others; /* points whose value found no place */
};

struct dimensions {
    struct dimension of[KEYS_MAX];
    uint32_t count;
    FILE *f;
};

static struct dimension *dimension_of(struct dimensions *d, const char *key)
{
    uint32_t i = 0;

    while (i < d->count && strcmp(d->of[i].key, key) != 0)
        i++;
    if (i == d->count) {
        assert(d->count < KEYS_MAX);
        snprintf(d->of[d->count++].key, VALUE_BYTES, "%s", key);
    }
    return &d->of[i];
}

static void count_value(void *arg, const char *key, const char *value)
{
    struct dimension *x = dimension_of(arg, key);
    uint32_t i = 0;

    while (i < x->value_count && strcmp(x->values[i], value) != 0)
        i++;
    if (i == VALUES_MAX) {
        x->others++;
        return;
    }
    if (i == x->value_count)
        snprintf(x->values[x->value_count++], VALUE_BYTES, "%s", value);
    x->counts[i]++;
}

/* Baselines lack the keys of programs: what all points that have a key agree on is common. */
static bool is_common(const struct dimension *x)
{
    return x->value_count == 1 && x->others == 0;
}

static void print_if_own(void *arg, const char *key, const char *value)
{
    struct dimensions *d = arg;

    if (!is_common(dimension_of(d, key)))
        fprintf(d->f, "  %s=%s", key, value);
}

static void print_counts(const struct dimension *x, FILE *f)
{
    fprintf(f, "  %-26s", x->key);
    for (uint32_t i = 0; i < x->value_count; i++)
        fprintf(f, " %s (%" PRIu64 ")", x->values[i], x->counts[i]);
    if (x->others)
        fprintf(f, " and others (%" PRIu64 ")", x->others);
    fprintf(f, "\n");
}

static void print_head(const struct scenario *s, FILE *f)
{
    char text[PROBLEM_TEXT_BYTES];

    fprintf(f, "scenario %s (%s)\n", s->name, s->path);
    fprintf(f, "machine  %s%s%s\n", s->machine.name, s->machine.title[0] ? ": " : "", s->machine.title);
    fprintf(f, "backend  %s\n", s->backend->name);
    if (s->check.wanted)
        fprintf(f, "check    on %s, %s, %" PRIu32 " epochs\n", s->check.backend->name,
                problem_text(s->family, &s->check.problem, text), s->check.epochs);
    else
        fprintf(f, "check    none\n");
    if (s->threshold > 0)
        fprintf(f, "fused has to be at least %.3f times as fast as nccl\n", s->threshold);
    fprintf(f, "points   %" PRIu64 "\n", s->point_count);
}

void show_points(const struct scenario *s, FILE *f)
{
    struct dimensions *d = calloc(1, sizeof *d);

    assert(d);
    d->f = f;
    for (uint64_t i = 0; i < s->point_count; i++)
        scenario_point_keys(s, &s->points[i], count_value, d);
    print_head(s, f);
    fprintf(f, "\nthe same for all points that have the key:\n");
    for (uint32_t i = 0; i < d->count; i++)
        if (is_common(&d->of[i]))
            fprintf(f, "  %-26s %s\n", d->of[i].key, d->of[i].values[0]);
    if (s->point_count > 1 && s->point_count <= POINTS_LISTED) {
        fprintf(f, "\neach point's own:\n");
        for (uint64_t i = 0; i < s->point_count; i++) {
            fprintf(f, "  %3" PRIu64, i);
            scenario_point_keys(s, &s->points[i], print_if_own, d);
            fprintf(f, "\n");
        }
    } else if (s->point_count > 1) {
        fprintf(f, "\nwhat varies, with the number of points:\n");
        for (uint32_t i = 0; i < d->count; i++)
            if (!is_common(&d->of[i]))
                print_counts(&d->of[i], f);
    }
    free(d);
}
