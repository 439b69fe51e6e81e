#include "core/tune/tune.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/results/record.h"

static bool add_value(struct tune_axis *a, const char *text)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (strcmp(a->values[i], text) == 0)
            return true;
    if (a->count == TUNE_VALUES_MAX)
        return false;
    snprintf(a->values[a->count++], OPTION_TEXT_BYTES, "%s", text);
    return true;
}

/* The row's own values, one by one, as option_print() writes them; `base` is room for the kernel's parameters. */
static bool add_choices(struct tune_axis *a, void *base)
{
    const char *at = a->option->choices;
    char text[OPTION_TEXT_BYTES], why[200];

    while (at && *at) {
        size_t size = strcspn(at, "|");

        snprintf(text, sizeof text, "%.*s", (int)size, at);
        if (option_parse(a->option, base, text, NULL, why, sizeof why) < 0) {
            fprintf(stderr, "%s: %s\n", a->option->name, why);
            assert(!"a table of ours offers a value that it does not take");
        }
        option_print(a->option, base, text, sizeof text);
        if (!add_value(a, text))
            return false;
        at += size + (at[size] == '|');
    }
    return true;
}

static void value_of(const struct tune_axis *a, const struct point *p, char out[OPTION_TEXT_BYTES])
{
    if (a->option)
        option_print(a->option, p->params, out, OPTION_TEXT_BYTES);
    else
        snprintf(out, OPTION_TEXT_BYTES, "%s", record_program_name(p->program));
}

/* Keeps the axis if there is something to choose. */
static bool end_axis(struct tune_space *s, const struct point *const *points, uint64_t count)
{
    struct tune_axis *a = &s->axes[s->axis_count];
    char text[OPTION_TEXT_BYTES];

    for (uint64_t i = 0; i < count; i++) {
        if (point_is_baseline(points[i]))
            continue;
        value_of(a, points[i], text);
        if (!add_value(a, text))
            return false;
    }
    s->axis_count += a->count > 1;
    return s->axis_count < TUNE_AXES_MAX;
}

static bool add_axes(struct tune_space *s, const struct point *const *points, uint64_t count, void *base)
{
    add_value(&s->axes[0], record_program_name(PROGRAM_FUSED));
    add_value(&s->axes[0], record_program_name(PROGRAM_UNFUSED));
    if (!end_axis(s, points, count))
        return false;
    for (const struct option *o = s->model->kernel->options; o && o->name; o++) {
        s->axes[s->axis_count] = (struct tune_axis){.option = o};
        if (!add_choices(&s->axes[s->axis_count], base) || !end_axis(s, points, count))
            return false;
    }
    return true;
}

bool tune_space_create(const struct point *const *points, uint64_t count, struct tune_space *out)
{
    void *base;
    bool fits;

    *out = (struct tune_space){.model = points[0]};
    for (uint64_t i = 0; i < count && point_is_baseline(out->model); i++)
        out->model = points[i];
    base = calloc(1, out->model->kernel->params_size + 1);
    assert(base && !point_is_baseline(out->model));
    fits = add_axes(out, points, count, base);
    free(base);
    return fits;
}

struct tune_place tune_space_place(const struct tune_space *s, const struct point *p)
{
    struct tune_place place = {0};
    char text[OPTION_TEXT_BYTES];

    for (uint32_t i = 0; i < s->axis_count; i++) {
        value_of(&s->axes[i], p, text);
        while (strcmp(s->axes[i].values[place.at[i]], text) != 0)
            place.at[i]++;
    }
    return place;
}

void tune_space_apply(const struct tune_space *s, struct tune_place place, struct point *p)
{
    for (uint32_t i = 0; i < s->axis_count; i++) {
        const struct tune_axis *a = &s->axes[i];
        const char *text = a->values[place.at[i]];
        char why[200];

        if (!a->option)
            p->program = strcmp(text, record_program_name(PROGRAM_FUSED)) == 0 ? PROGRAM_FUSED : PROGRAM_UNFUSED;
        else if (option_parse(a->option, p->params, text, NULL, why, sizeof why) < 0)
            assert(!"a value was read before");
    }
    snprintf(p->variant, sizeof p->variant, "%s", record_program_name(p->program));
}
