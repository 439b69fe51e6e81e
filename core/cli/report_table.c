#include <inttypes.h>
#include <stdio.h>

#include "core/build.h"
#include "core/cli/report.h"
#include "core/cli/table.h"
#include "core/run/metrics.h"
#include "core/results/record.h"

static const struct column columns[] = {
    {"kernel", "", true}, /* and the problem's keys */
    {"world", "nodes x GPUs", true},
    {"variant", "", true},
    {"parameters", "", true},
    {"mode", "", true},
    {"time", "us", false},
    {"TFLOP/s", "per GPU", false},
    {"busbw", "GB/s", false},
    {"speed-up", "over nccl", false},
    {"verdict", "", true},
    {"baseline", "", true},
    {NULL, NULL, false},
};

static const struct run_result *first_result(const struct run_unit *units, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (units[i].result && units[i].result->model[0] && !point_is_baseline(units[i].point))
            return units[i].result;
    return NULL;
}

static bool one_world(const struct run_plan *plan)
{
    for (uint64_t i = 1; i < plan->check_count; i++) {
        struct world a = plan->checks[0].point->world, b = plan->checks[i].point->world;

        if (a.nodes != b.nodes || a.gpus_per_node != b.gpus_per_node)
            return false;
    }
    return true;
}

static void print_check(const struct run_plan *plan, FILE *f)
{
    const struct check_plan *check = &plan->scenario->check;
    uint64_t exact = 0;
    char text[PROBLEM_TEXT_BYTES];

    if (plan->check_count == 0) {
        fprintf(f, "# checked: no%s\n", check->wanted ? " (no program to check)" : " (check: off)");
        return;
    }
    for (uint64_t i = 0; i < plan->check_count; i++)
        exact += plan->checks[i].result && plan->checks[i].result->status >= 0;
    fprintf(f, "# checked: %s, ", check->backend->name);
    if (one_world(plan))
        fprintf(f, "%" PRIu32 " x %" PRIu32 ", ", plan->checks[0].point->world.nodes,
                plan->checks[0].point->world.gpus_per_node);
    else
        fprintf(f, "every world, ");
    fprintf(f, "%s, %" PRIu32 " epochs: ", problem_text(plan->scenario->family, &check->problem, text), check->epochs);
    if (exact == plan->check_count)
        fprintf(f, "%" PRIu64 " program%s exact\n", exact, exact == 1 ? "" : "s");
    else
        fprintf(f, "%" PRIu64 " of %" PRIu64 " programs exact\n", exact, plan->check_count);
}

static void print_proofs(const struct run_plan *plan, FILE *f)
{
    uint64_t proved = 0;

    for (uint64_t i = 0; i < plan->proof_count; i++)
        proved += plan->proofs[i].result && plan->proofs[i].result->status >= 0;
    if (proved == 0)
        fprintf(f, "# verified: no\n");
    else
        fprintf(f, "# verified: %" PRIu64 " program%s proved free of deadlocks and races\n", proved,
                proved == 1 ? "" : "s");
}

static void print_head(const struct run_plan *plan, FILE *f)
{
    const struct scenario *s = plan->scenario;
    const struct run_result *r = first_result(plan->points, plan->point_count);

    fprintf(f, "# mkernel %s (%.12s)\n", build_version, build_commit);
    fprintf(f, "# scenario: %s\n", s->path);
    fprintf(f, "# machine: %s%s%s\n", s->machine.name, s->machine.title[0] ? ", " : "", s->machine.title);
    fprintf(f, "# backend: %s%s%s\n", s->backend->name, r ? ", " : "", r ? r->model : "");
    print_proofs(plan, f);
    print_check(plan, f);
    fprintf(f,
            "# time: median of the iterations; TFLOP/s per GPU: " METRICS_TFLOPS_FORMULA
            "; busbw: the collective's, as in nccl-tests, over the whole time\n#\n",
            s->family->flops_formula);
}

static void add_numbers(struct table *t, const struct compare *c, uint64_t i)
{
    const struct run_unit *u = &c->points[i];
    uint64_t time = c->times[i].median;
    double speedup = compare_speedup(c, i);

    if (time == 0) {
        for (int column = 0; column < 4; column++)
            table_add(t, "-");
        return;
    }
    table_add(t, "%.2f", (double)time / 1e6);
    table_add(t, "%.1f", metrics_tflops(u->point->kernel, &u->problem, u->point->world, time));
    table_add(t, "%.1f", metrics_busbw(u->point->kernel, &u->problem, u->point->world, time));
    if (speedup > 0)
        table_add(t, "%.3f", speedup);
    else
        table_add(t, "-");
}

/* What produced the time; of NCCL also what its collective takes alone, and what its simulation
 * says. */
static void add_baseline(struct table *t, const struct run_result *r)
{
    char alone[80] = "";

    if (r->flow_ps > 0)
        snprintf(alone, sizeof alone, "; alone %.1f us, NCCL flow %.1f us", (double)r->collective_ps / 1e6,
                 (double)r->flow_ps / 1e6);
    table_add(t, "%s%s%s%s", r->model, r->choice[0] ? ", " : "", r->choice, alone);
}

static void add_row(struct table *t, const struct report_params *shown, const struct compare *c, uint64_t i)
{
    const struct run_unit *u = &c->points[i];
    const struct point *p = u->point;
    const struct run_result *r = u->result;
    char params[REPORT_PARAMS_BYTES];

    report_params_print(shown, p, params);
    table_add(t, "%s", p->kernel->name);
    report_add_problem(t, p->kernel->family, &p->problem);
    table_add(t, "%" PRIu32 " x %" PRIu32, p->world.nodes, p->world.gpus_per_node);
    table_add(t, "%s", p->variant);
    table_add(t, "%s", params);
    table_add(t, "%s", record_mode_name(p->timing.mode));
    add_numbers(t, c, i);
    table_add(t, "%s", compare_verdict(c, i));
    if (point_is_baseline(p) && r)
        add_baseline(t, r);
    else
        table_add(t, "%s", "");
}

void report_table(const struct run_plan *plan, const struct compare *c, bool colour, FILE *f)
{
    struct report_params shown;
    struct column all[TABLE_COLUMNS_MAX];
    struct table t;

    report_params_find(plan, &shown);
    print_head(plan, f);
    report_columns(columns, plan->scenario->family, all);
    table_begin(&t, all);
    for (uint64_t i = 0; i < plan->point_count; i++)
        add_row(&t, &shown, c, i);
    table_print(&t, colour, f);
    table_end(&t);
    fprintf(f, "#\n");
}
