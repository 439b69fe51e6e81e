#include <inttypes.h>

#include "core/cli/report.h"
#include "core/cli/table.h"
#include "core/results/record.h"

static const struct column columns[] = {
    {"kernel", "", true}, /* and the problem's keys */
    {"world", "nodes x GPUs", true},
    {"variant", "", true},
    {"parameters", "", true},
    {"tasks", "", false},
    {"epochs", "", false},
    {"ordered pairs", "", false},
    {"CPU", "s", false},
    {"verdict", "", true},
    {NULL, NULL, false},
};

static void add_row(struct table *t, const struct report_params *params, const struct run_unit *u,
                    const struct run_result *r, const char *verdict)
{
    const struct point *p = u->point;
    char text[REPORT_PARAMS_BYTES];

    report_params_print(params, p, text);
    table_add(t, "%s", p->kernel->name);
    report_add_problem(t, p->kernel->family, &u->problem);
    table_add(t, "%" PRIu32 " x %" PRIu32, p->world.nodes, p->world.gpus_per_node);
    table_add(t, "%s", p->variant);
    table_add(t, "%s", text);
    table_add(t, "%" PRIu64, u->tasks);
    if (r) {
        table_add(t, "%" PRIu64, r->epochs);
        table_add(t, "%" PRIu64, r->orderings);
        table_add(t, "%.2f", r->cpu_seconds);
    } else {
        for (int i = 0; i < 3; i++)
            table_add(t, "-");
    }
    table_add(t, "%s", verdict);
}

void report_proofs(const struct run_plan *plan, bool quiet, FILE *f)
{
    struct report_params params;
    struct column all[TABLE_COLUMNS_MAX];
    struct table t;
    uint64_t proved = 0, unproved = 0;

    report_params_find(plan, &params);
    report_columns(columns, plan->scenario->family, all);
    table_begin(&t, all);
    for (uint64_t i = 0; i < plan->proof_count; i++) {
        const struct run_result *r = plan->proofs[i].result;
        bool ok = r && r->status >= 0;

        proved += ok;
        add_row(&t, &params, &plan->proofs[i], r, ok ? "proved" : r ? "REFUSED" : "not run");
    }
    for (uint64_t i = 0; i < plan->point_count; i++) {
        const struct run_unit *u = &plan->points[i];
        char verdict[128];

        if (point_is_baseline(u->point) || u->proof)
            continue;
        unproved++;
        run_unit_verified(u, verdict, sizeof verdict);
        add_row(&t, &params, u, NULL, verdict);
    }
    if (!quiet)
        table_print(&t, false, f);
    table_end(&t);
    fprintf(f, "%s: %" PRIu64 " of %" PRIu64 " programs proved, %" PRIu64 " points not proved\n", plan->scenario->name,
            proved, plan->proof_count, unproved);
}
