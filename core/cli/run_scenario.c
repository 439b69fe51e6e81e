#include "core/cli/run_scenario.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cli/progress.h"
#include "core/cli/report.h"
#include "core/cli/run_nodes.h"
#include "core/cli/run_trace.h"
#include "core/cli/signals.h"
#include "core/results/compare.h"
#include "core/log.h"
#include "core/verify/prove.h"
#include "core/results/record.h"
#include "core/results/result.h"
#include "core/run/run.h"
#include "core/run/run_across.h"

#define SECOND_PS 1000000000000u

struct session {
    const struct run_request *request;
    struct scenario scenario;
    struct run_plan plan;
    struct compare compare;
    struct result_file file;
    struct trace_request *traces; /* by point; NULL: none */
    struct node_link link;        /* of several processes: which this is */
    enum status status;           /* the worst so far */
};

static void note(struct session *s, enum status st)
{
    s->status = status_worse(s->status, st);
}

/* Of several processes one prints, keeps results and proves. */
static bool speaks(const struct session *s)
{
    return s->request->nodes->node == 0;
}

static bool several_nodes(const struct session *s)
{
    return s->request->nodes->count > 1;
}

/* ---- what went wrong with a run ---- */

static void explain(const struct run_unit *u)
{
    const struct point *p = u->point;
    char text[PROBLEM_TEXT_BYTES];

    log_error("%s: %s %s, %s, %" PRIu32 " x %" PRIu32 " GPUs, on %s: %s",
              u->backend == &prove_backend ? "proof"
              : u->data                    ? "check"
                                           : "run",
              p->kernel->name, p->variant, problem_text(p->kernel->family, &u->problem, text), p->world.nodes,
              p->world.gpus_per_node, u->backend->name, status_text(u->result->status));
    if (u->result->report[0])
        fprintf(stderr, "%s\n", u->result->report);
}

/* Each reason once. */
static void say_skipped(const struct session *s, const struct run_unit *u, const char **told)
{
    const char *why = u->result->report;

    if (speaks(s) && (!*told || strcmp(*told, why) != 0))
        log_info("%s: skipped: %s", u->point->variant, why);
    *told = why;
}

static uint64_t note_failures(struct session *s, const struct run_unit *units, uint64_t count)
{
    const char *told = NULL;
    uint64_t failed = 0;

    for (uint64_t i = 0; i < count; i++) {
        if (!units[i].result || units[i].result->status >= 0)
            continue;
        if (run_unit_skipped(&units[i])) {
            say_skipped(s, &units[i], &told);
            continue;
        }
        if (speaks(s))
            explain(&units[i]);
        note(s, units[i].result->status);
        failed++;
    }
    return failed;
}

/* ---- running ---- */

static enum status run_all(struct session *s, struct run_unit *units, uint64_t count, const char *what)
{
    const struct run_request *q = s->request;
    struct progress progress;
    struct run_config config = limits_config(&q->limits, &progress);
    enum status st;

    progress_begin(&progress, what, q->quiet || !speaks(s));
    st = several_nodes(s) && units != s->plan.proofs ? run_units_across(q->nodes, units, count, &config)
                                                     : run_units(units, count, &config);
    progress_end(&progress);
    note(s, st);
    return st;
}

static enum status check_available(const struct backend *b)
{
    char why[256] = "";
    enum status st = b->available(why, sizeof why);

    if (st < 0)
        log_error("backend %s cannot run here: %s", b->name, why);
    return st;
}

static enum status prepare(struct session *s, const char *path, const struct registry *registry)
{
    const struct run_request *q = s->request;

    TRY(scenario_load(path, registry, q->backend, q->args->sets, q->args->set_count, &s->scenario));
    TRY(check_available(s->scenario.backend));
    if (s->scenario.check.wanted)
        TRY(check_available(s->scenario.check.backend));
    TRY(run_nodes_check(&s->scenario, q->nodes));
    if (several_nodes(s))
        s->link = (struct node_link){.node = q->nodes->node, .count = q->nodes->count};
    TRY(run_plan_create(&s->scenario, q->limits.memory_bytes, several_nodes(s) ? &s->link : NULL, &s->plan));
    if (!q->trace)
        return ST_OK;
    return run_trace_plan(&s->plan, &trace_chrome, q->trace, q->trace_limit_bytes, &s->traces);
}

/* Planning walks programs that can be huge: it has the time-out of a run, too. */
static enum status prepare_in_time(struct session *s, const char *path, const struct registry *registry)
{
    const struct run_request *q = s->request;
    enum status st;

    signals_planning = 1;
    alarm((unsigned)(q->limits.timeout_ps / SECOND_PS) + 1);
    st = prepare(s, path, registry);
    alarm(0);
    signals_planning = 0;
    return st;
}

/* ---- several nodes ---- */

/* Node 0 goes first, for what it finds wrong with the scenario the others would find, too; what only they lack
 * they say themselves. */
static enum status prepare_on_all(struct session *s, const char *path, const struct registry *registry)
{
    struct nodes *n = s->request->nodes;
    char prefix[NODE_HOST_BYTES + 32];
    enum status st = ST_OK;

    if (!several_nodes(s))
        return prepare_in_time(s, path, registry);
    n->timeout_ns = s->request->limits.timeout_ps / 1000 + NODES_EXTRA_NS;
    TRY(nodes_agree(n, speaks(s) ? prepare_in_time(s, path, registry) : ST_OK));
    if (!speaks(s)) {
        snprintf(prefix, sizeof prefix, "node %" PRIu32 " on %s: ", n->node, n->hosts[n->node]);
        log_set_prefix(prefix);
        log_set_mute(false);
        st = prepare_in_time(s, path, registry);
        log_set_mute(true);
        log_set_prefix("");
    }
    TRY(nodes_agree(n, st));
    return run_nodes_compare(&s->scenario, n);
}

/* Said once for all programs alike: a reader of the table should not take silence for a proof.  Who asked for
 * nothing but proofs has not got what he asked for. */
static void say_unproved(struct session *s)
{
    const struct run_plan *plan = &s->plan;
    uint64_t unproved = 0, first = 0;

    for (uint64_t i = plan->point_count; i-- > 0;) {
        if (point_is_baseline(plan->points[i].point) || plan->points[i].proof)
            continue;
        unproved++;
        first = i;
    }
    if (unproved > 0)
        log_warn("%s: %" PRIu64 " point%s not proved: %s", s->scenario.path, unproved, unproved > 1 ? "s are" : " is",
                 plan->points[first].unproved);
    if (unproved > 0 && s->request->verify_only)
        note(s, ST_MEMORY);
}

/* Whether everything that could be proved has been. */
static bool prove_here(struct session *s)
{
    say_unproved(s);
    return run_all(s, s->plan.proofs, s->plan.proof_count, "proofs") >= 0 &&
           note_failures(s, s->plan.proofs, s->plan.proof_count) == 0;
}

static bool prove(struct session *s)
{
    if (!several_nodes(s))
        return prove_here(s);
    if (speaks(s))
        prove_here(s);
    s->request->nodes->timeout_ns = s->request->limits.timeout_ps / 1000 * (s->plan.proof_count + 1) + NODES_EXTRA_NS;
    note(s, nodes_agree(s->request->nodes, s->status));
    return s->status >= 0;
}

/* Times of a wrong program mean nothing: a refused proof or a failed check ends the run. */
static void execute(struct session *s)
{
    if (!s->request->no_verify && !prove(s)) {
        if (s->status != ST_INTERRUPTED)
            log_error("%s: not run, because the verifier refused a program", s->scenario.path);
        return;
    }
    if (run_all(s, s->plan.checks, s->plan.check_count, "checks") < 0)
        return;
    if (note_failures(s, s->plan.checks, s->plan.check_count) > 0) {
        log_error("%s: not timed, because its check failed", s->scenario.path);
        return;
    }
    run_all(s, s->plan.points, s->plan.point_count, "points");
}

/* ---- results ---- */

static void open_file(struct session *s)
{
    char path[RESULT_PATH_BYTES], stamp[40];
    const char *wanted = s->request->output;

    if (!speaks(s) || (wanted && strcmp(wanted, "none") == 0))
        return;
    record_date(true, stamp, sizeof stamp);
    snprintf(path, sizeof path, "results/local/%s-%s.jsonl", s->scenario.name, stamp);
    note(s, result_open(&s->file, wanted ? wanted : path));
    if (s->file.status < 0)
        log_error("results of %s will not be kept (--output PATH chooses another place, --output none "
                  "keeps none)",
                  s->scenario.path);
}

static void put_record(struct session *s, char *line)
{
    result_write(&s->file, line);
    if (s->request->json)
        printf("%s\n", line);
    free(line);
}

static void write_records(struct session *s, uint64_t failed)
{
    uint64_t written = 0;

    put_record(s, record_run(&s->scenario, &s->request->host, s->request->nodes, s->request->args->argc,
                             s->request->args->argv));
    for (uint64_t i = 0; i < s->plan.check_count; i++)
        if (s->plan.checks[i].result)
            put_record(s, record_check(&s->scenario, &s->plan.checks[i]));
    for (uint64_t i = 0; i < s->plan.point_count; i++) {
        if (!s->plan.points[i].result && !run_unit_skipped(&s->plan.points[i]))
            continue;
        put_record(s, record_point(&s->scenario, &s->compare, i));
        written++;
    }
    put_record(s, record_end(written, failed, signals_interrupted != 0));
}

static void commit_file(struct session *s)
{
    char path[RESULT_PATH_BYTES];

    if (!s->file.file)
        return;
    note(s, result_commit(&s->file, path));
    if (s->file.status >= 0)
        log_info("results: %s", path);
}

/* The terminal that a launcher gives its processes need not be the reader's. */
static bool use_colour(const struct session *s)
{
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");

    return !several_nodes(s) && isatty(STDOUT_FILENO) && !(no_colour && *no_colour) &&
           !(terminal && strcmp(terminal, "dumb") == 0);
}

static void print(struct session *s)
{
    const struct run_request *q = s->request;

    if (q->csv && *q->csv_family != s->scenario.family) {
        *q->csv_family = s->scenario.family;
        report_csv_header(s->scenario.family, stdout);
    }
    if (q->csv)
        report_csv(&s->plan, &s->compare, stdout);
    if (q->csv || q->json)
        return;
    if (!q->quiet)
        report_table(&s->plan, &s->compare, use_colour(s), stdout);
    report_published(&s->plan, &s->compare, q->published, q->quiet ? NULL : stdout);
    if (s->status != ST_INTERRUPTED)
        report_conclusion(&s->plan, &s->compare, stdout);
}

/* The scenario may state how much fused has to win by. */
static void hold_to_threshold(struct session *s)
{
    const struct compare *c = &s->compare;

    for (uint64_t i = 0; i < c->group_count; i++) {
        const struct compare_group *g = &c->groups[i];
        const struct point *p = c->points[g->first].point;
        double ratio = compare_ratio(c, g->nccl, g->fused);
        char text[PROBLEM_TEXT_BYTES];

        if (ratio <= 0 || ratio >= s->scenario.threshold)
            continue;
        log_error("%s, %s, %s: the best fused speed-up is %.3f, below the threshold of %.3f", p->kernel->name,
                  problem_text(p->kernel->family, &p->problem, text), record_mode_name(p->timing.mode), ratio,
                  s->scenario.threshold);
        note(s, ST_SLOW);
    }
}

static void finish(struct session *s)
{
    uint64_t failed = note_failures(s, s->plan.points, s->plan.point_count);
    uint64_t done = 0;

    for (uint64_t i = 0; i < s->plan.point_count; i++)
        done += s->plan.points[i].result != NULL;
    compare_create(s->plan.points, s->plan.point_count, &s->compare);
    if (!speaks(s)) {
        hold_to_threshold(s);
        return;
    }
    write_records(s, failed);
    if (done > 0)
        print(s);
    fflush(stdout);
    run_trace_report(&s->plan);
    commit_file(s);
    hold_to_threshold(s);
    if (s->status == ST_INTERRUPTED)
        log_error("interrupted: %" PRIu64 " of %" PRIu64 " points are complete", done, s->plan.point_count);
}

static void verify(struct session *s)
{
    prove(s);
    if (s->status == ST_INTERRUPTED)
        log_error("interrupted: %s is not proved", s->scenario.path);
    else
        report_proofs(&s->plan, s->request->quiet, stdout);
}

static void run(struct session *s)
{
    open_file(s);
    execute(s);
    finish(s);
}

enum status run_scenario(const struct run_request *q, const char *path, const struct registry *registry)
{
    struct session s = {.request = q};

    note(&s, prepare_on_all(&s, path, registry));
    if (s.status >= 0 && q->verify_only)
        verify(&s);
    else if (s.status >= 0)
        run(&s);
    result_close(&s.file);
    compare_destroy(&s.compare);
    run_plan_destroy(&s.plan);
    free(s.traces);
    scenario_fini(&s.scenario);
    return s.status;
}
