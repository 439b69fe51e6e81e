#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli/report.h"

#define VALUE_BYTES 256

static uint32_t kind_of(const struct report_params *r, const struct point *p)
{
    uint32_t i = 0;

    while (i < r->kind_count && (r->kinds[i].kernel != p->kernel || r->kinds[i].program != p->program))
        i++;
    return i;
}

uint64_t report_params_differing(const struct point *p)
{
    void *initial = calloc(1, p->kernel->params_size + 1);
    uint64_t mask = 0;

    assert(initial);
    option_defaults(p->kernel->options, initial);
    for (size_t i = 0; i < 64 && p->kernel->options[i].name; i++) {
        const struct option *o = &p->kernel->options[i];
        char value[VALUE_BYTES], standard[VALUE_BYTES];

        option_print(o, p->params, value, sizeof value);
        option_print(o, initial, standard, sizeof standard);
        if (!o->initial || strcmp(value, standard) != 0)
            mask |= (uint64_t)1 << i;
    }
    free(initial);
    return mask;
}

void report_params_find(const struct run_plan *plan, struct report_params *out)
{
    *out = (struct report_params){0};
    for (uint64_t i = 0; i < plan->point_count; i++) {
        const struct point *p = plan->points[i].point;
        uint32_t kind = kind_of(out, p);

        if (point_is_baseline(p))
            continue;
        if (kind == out->kind_count) {
            assert(kind < REPORT_KINDS_MAX);
            out->kinds[out->kind_count].kernel = p->kernel;
            out->kinds[out->kind_count++].program = p->program;
        }
        out->kinds[kind].shown |= report_params_differing(p);
    }
}

void report_params_print(const struct report_params *r, const struct point *p, char out[REPORT_PARAMS_BYTES])
{
    uint32_t kind = kind_of(r, p);
    size_t used = 0;

    strcpy(out, "-");
    for (size_t i = 0; kind < r->kind_count && i < 64 && p->kernel->options[i].name; i++) {
        const struct option *o = &p->kernel->options[i];
        char value[VALUE_BYTES];

        if (!(r->kinds[kind].shown >> i & 1))
            continue;
        option_print(o, p->params, value, sizeof value);
        used += (size_t)snprintf(out + used, REPORT_PARAMS_BYTES - used, "%s%s=%s", used ? "," : "", o->name, value);
        if (used >= REPORT_PARAMS_BYTES) {
            strcpy(out + REPORT_PARAMS_BYTES - 4, "...");
            return;
        }
    }
}
