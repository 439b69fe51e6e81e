#include <inttypes.h>

#include "core/cli/report.h"

static const struct column columns[] = {
    {"kernel", "", true},       {"size", "", false},        {"variant", "", true},
    {"simulated", "us", false}, {"published", "us", false}, {"lowest", "us", false},
    {"highest", "us", false},   {"error", "%", false},      {NULL, NULL, false},
};

static void add_point(struct table *t, const struct point *p, double us, const struct published_value *v)
{
    char text[PROBLEM_TEXT_BYTES];

    table_add(t, "%s", p->kernel->name);
    table_add(t, "%s", problem_size_text(p->kernel->family, &p->problem, text));
    table_add(t, "%s", p->variant);
    table_add(t, "%.1f", us);
    table_add(t, "%.1f", v->us);
    table_add(t, "%.1f", v->low_us);
    table_add(t, "%.1f", v->high_us);
    table_add(t, "%+.1f", 100 * (us / v->us - 1));
}

/* Whether the library is the faster one, published and simulated; false: not both are known. */
static bool sides(const struct run_plan *plan, const struct compare *c, uint64_t point, bool *published,
                  bool *simulated)
{
    uint64_t nccl = c->groups[c->group_of[point]].nccl;
    struct published_value kernel, library;

    if (c->points[point].point->program == PROGRAM_NCCL || nccl == COMPARE_NONE || c->times[point].median == 0 ||
        !published_find(plan->scenario, c->points[point].point, &kernel) ||
        !published_find(plan->scenario, c->points[nccl].point, &library))
        return false;
    *published = library.us < kernel.us;
    *simulated = c->times[nccl].median < c->times[point].median;
    return true;
}

void report_published(const struct run_plan *plan, const struct compare *c, struct published_total *total, FILE *f)
{
    struct published_total own = {0};
    struct table t;

    table_begin(&t, columns);
    for (uint64_t i = 0; i < c->count; i++) {
        struct published_value v;
        double us = (double)c->times[i].median / 1e6;
        bool published, simulated;

        if (us <= 0 || !published_find(plan->scenario, c->points[i].point, &v))
            continue;
        add_point(&t, c->points[i].point, us, &v);
        published_total_add(&own, us / v.us - 1);
        published_total_add(total, us / v.us - 1);
        if (!sides(plan, c, i, &published, &simulated))
            continue;
        own.pairs++;
        total->pairs++;
        own.agreed += published == simulated;
        total->agreed += published == simulated;
    }
    if (own.count > 0 && f) {
        fprintf(f, "#\n");
        table_print(&t, false, f);
        fprintf(f, "#\n");
        published_total_print(&own, plan->scenario->name, f);
    }
    table_end(&t);
    published_total_fini(&own);
}
