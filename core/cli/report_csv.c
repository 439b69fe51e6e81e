#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/cli/report.h"
#include "core/parse/csv.h"
#include "core/run/metrics.h"
#include "core/results/record.h"

void report_csv_header(const struct problem_family *family, FILE *f)
{
    fprintf(f, "scenario,kernel,variant,program,");
    for (const struct option *key = family->keys; key->name; key++)
        fprintf(f, "%s,", key->name);
    fprintf(f, "nodes,gpus_per_node,machine,params,mode,seed,backend,"
               "model,choice,status,verdict,median_us,p95_us,min_us,samples,tflops_per_gpu,"
               "busbw_gb_per_s,speedup_over_nccl,tasks,puts,flows,cpu_seconds,peak_bytes\n");
}

static void field(FILE *f, const char *text)
{
    csv_put(text, f);
    fputc(',', f);
}

static void print_keys(const struct run_plan *plan, const struct report_params *shown, const struct run_unit *u,
                       FILE *f)
{
    const struct point *p = u->point;
    char params[REPORT_PARAMS_BYTES], value[64];

    report_params_print(shown, p, params);
    for (char *comma = strchr(params, ','); comma; comma = strchr(comma, ','))
        *comma = ' ';
    field(f, plan->scenario->name);
    field(f, p->kernel->name);
    field(f, p->variant);
    field(f, record_program_name(p->program));
    for (const struct option *key = p->kernel->family->keys; key->name; key++) {
        option_print(key, &p->problem, value, sizeof value);
        field(f, value);
    }
    fprintf(f, "%" PRIu32 ",%" PRIu32 ",", p->world.nodes, p->world.gpus_per_node);
    field(f, p->machine->name);
    field(f, params);
    field(f, record_mode_name(p->timing.mode));
    fprintf(f, "%" PRIu64 ",", p->seed);
    field(f, u->backend->name);
}

/* Empty fields where there is no number. */
static void print_times(const struct compare *c, uint64_t i, FILE *f)
{
    const struct run_unit *u = &c->points[i];
    const struct stats *t = &c->times[i];
    double speedup = compare_speedup(c, i);

    if (t->median == 0) {
        fprintf(f, ",,,,,,,");
        return;
    }
    fprintf(f, "%.6f,%.6f,%.6f,%" PRIu32 ",%.3f,%.3f,", (double)t->median / 1e6, (double)t->p95 / 1e6,
            (double)t->min / 1e6, u->result->sample_count,
            metrics_tflops(u->point->kernel, &u->problem, u->point->world, t->median),
            metrics_busbw(u->point->kernel, &u->problem, u->point->world, t->median));
    if (speedup > 0)
        fprintf(f, "%.4f", speedup);
    fputc(',', f);
}

void report_csv(const struct run_plan *plan, const struct compare *c, FILE *f)
{
    struct report_params shown;

    report_params_find(plan, &shown);
    for (uint64_t i = 0; i < plan->point_count; i++) {
        const struct run_result *r = plan->points[i].result;

        print_keys(plan, &shown, &plan->points[i], f);
        field(f, r ? r->model : "");
        field(f, r ? r->choice : "");
        field(f, r ? status_text(r->status) : "");
        field(f, compare_verdict(c, i));
        print_times(c, i, f);
        if (r)
            fprintf(f, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.3f,%" PRIu64 "\n", r->tasks, r->puts, r->flows,
                    r->cpu_seconds, r->peak_bytes);
        else
            fprintf(f, ",,,,\n");
    }
}
