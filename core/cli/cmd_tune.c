#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli/args.h"
#include "core/cli/commands.h"
#include "core/cli/limits.h"
#include "core/cli/progress.h"
#include "core/cli/signals.h"
#include "core/cli/tune_report.h"
#include "core/host.h"
#include "core/log.h"
#include "core/run/nodes.h"
#include "core/results/record.h"
#include "core/results/result.h"

#define POINTS_INITIAL 160

struct request {
    const struct args *args; /* the scenario and its sets, and the command for the record */
    const char *backend, *output, *scenario;
    bool quiet, json;
    uint64_t points, time_ps, seed;
    struct limits limits;
    struct host host;
};

static const struct flag flags[] = {
    {"--points", "N", "programs to time per problem, at most (default: 160; with --time: no bound)", FLAG_COUNT,
     offsetof(struct request, points), 1, 100000},
    {"--time", "TIME", "stop after about this much real time; the result then depends on the computer", FLAG_TIME,
     offsetof(struct request, time_ps), 1e9, 1e18},
    {"--seed", "N", "of the spread that the search begins with (default: 1)", FLAG_COUNT,
     offsetof(struct request, seed), 0, 9007199254740991},
    {"--scenario", "PATH", "write the answer as a scenario; several problems: PATH-1.yaml, ...", FLAG_TEXT,
     offsetof(struct request, scenario), 0, 0},
    FLAG_SET_ROW,
    {"--backend", "NAME", "time on this backend instead of the scenario's", FLAG_TEXT,
     offsetof(struct request, backend), 0, 0},
    {"--quiet", NULL, "print only the answers and errors", FLAG_SWITCH, offsetof(struct request, quiet), 0, 0},
    {"--json", NULL, "print the records of the result file (JSON lines) instead", FLAG_SWITCH,
     offsetof(struct request, json), 0, 0},
    {"--output", "PATH", "result file, or \"none\" (default: results/local/NAME-tune-DATE.jsonl)", FLAG_TEXT,
     offsetof(struct request, output), 0, 0},
    LIMITS_FLAGS(request, "runs", "kill a run"),
    {0},
};

static const struct usage usage = {
    .name = "tune",
    .takes = "FILE [options]",
    .about = "Searches, for each problem of a scenario, program (fused or not) and parameters (crews, chunk, order,\n"
             "algorithm) for the shortest time, beside NCCL + cuBLAS and hand-overlapped streams.  Prints what\n"
             "each value costs, the answer, and the --set options that repeat it; keeps every run as a record.\n"
             "Same scenario, seed and points: same answer.  Exit codes: 0 ok, 1 wrong result, 2 bad input,\n"
             "4 hang or time-out, 5 not enough memory, 130 interrupted.",
    .example = "mkernel tune scenarios/quickstart.yaml --set problem.m=8192 --points 60",
    .flags = flags,
    .words = "scenario",
    .words_min = 1,
    .words_max = 1,
};

/* ---- results ---- */

static enum status open_file(const struct request *q, const struct scenario *s, struct result_file *f)
{
    char path[RESULT_PATH_BYTES], stamp[40];

    if (q->output && strcmp(q->output, "none") == 0)
        return ST_OK;
    record_date(true, stamp, sizeof stamp);
    snprintf(path, sizeof path, "results/local/%s-tune-%s.jsonl", s->name, stamp);
    return result_open(f, q->output ? q->output : path);
}

static void put_record(const struct request *q, struct result_file *f, char *line)
{
    result_write(f, line);
    if (q->json)
        printf("%s\n", line);
    free(line);
}

static enum status write_records(const struct request *q, const struct tune *t, struct result_file *f)
{
    static const struct nodes alone = {.count = 1};
    char path[RESULT_PATH_BYTES];
    struct compare c;
    uint64_t failed = 0, written = 0;
    enum status st;

    compare_create(t->units, t->unit_count, &c);
    put_record(q, f, record_run(t->scenario, &q->host, &alone, q->args->argc, q->args->argv));
    for (uint64_t i = 0; i < t->unit_count; i++) {
        if (!t->units[i].result)
            continue;
        failed += t->units[i].result->status < 0 && !point_is_baseline(t->units[i].point);
        put_record(q, f, record_point(t->scenario, &c, i));
        written++;
    }
    for (uint64_t i = 0; i < t->problem_count; i++)
        put_record(q, f, record_tuned(t, i, q->seed));
    put_record(q, f, record_end(written, failed, signals_interrupted != 0));
    compare_destroy(&c);
    if (!f->file)
        return f->status;
    st = result_commit(f, path);
    if (st >= 0)
        log_info("results: %s", path);
    return st;
}

static enum status report(const struct request *q, const struct tune *t)
{
    enum status st = ST_OK;

    for (uint64_t i = 0; i < t->problem_count; i++) {
        if (!q->quiet && !q->json)
            tune_report_landscape(t, &t->problems[i], stdout);
        if (!q->json)
            tune_report_answer(t, &t->problems[i], stdout);
        if (q->scenario)
            st = status_worse(st, tune_write_scenario(t, i, q->scenario, q->args->argc, q->args->argv));
    }
    return st;
}

/* The program that ended the search. */
static void explain_failure(const struct tune *t)
{
    for (uint64_t i = 0; i < t->unit_count; i++) {
        const struct run_unit *u = &t->units[i];
        char text[PROBLEM_TEXT_BYTES], params[TUNE_TEXT_BYTES];

        if (!u->result || u->result->status >= 0 || point_is_baseline(u->point))
            continue;
        tune_params_text(u->point, params);
        log_error("%s: %s, %s %s: %s", t->scenario->path, u->point->kernel->name,
                  problem_text(u->point->kernel->family, &u->problem, text), params, status_text(u->result->status));
        if (u->result->report[0])
            fprintf(stderr, "%s\n", u->result->report);
        return;
    }
}

static enum status search(const struct request *q, const struct scenario *s, struct tune *t)
{
    struct progress progress;
    struct tune_config config = {
        .points = q->points,
        .time_ns = q->time_ps / 1000,
        .seed = q->seed,
        .run = limits_config(&q->limits, &progress),
    };
    enum status st;

    progress_begin(&progress, "programs of a batch", q->quiet);
    st = tune_run(s, &config, t);
    progress_end(&progress);
    if (st == ST_INTERRUPTED)
        log_error("interrupted");
    else if (st < 0)
        explain_failure(t);
    return st;
}

static enum status check_available(const struct scenario *s)
{
    char why[256] = "";
    enum status st = s->backend->available(why, sizeof why);

    if (st < 0)
        log_error("backend %s cannot run here: %s", s->backend->name, why);
    return st;
}

static enum status tune(const struct request *q, const struct registry *r)
{
    struct result_file f = {0};
    struct scenario s = {0};
    struct tune t = {0};
    enum status st;

    st = scenario_load(q->args->words[0], r, q->backend, q->args->sets, q->args->set_count, &s);
    if (st >= 0)
        st = check_available(&s);
    if (st >= 0)
        st = open_file(q, &s, &f);
    if (st >= 0) {
        st = search(q, &s, &t);
        if (t.unit_count > 0)
            st = status_worse(st, write_records(q, &t, &f));
        st = status_worse(st, report(q, &t));
    }
    result_close(&f);
    tune_destroy(&t);
    scenario_fini(&s);
    return st;
}

int cmd_tune(int argc, char **argv, const struct registry *r)
{
    struct host host = host_read();
    struct args a;
    struct request q = {.args = &a, .host = host, .limits = limits_of(&host), .seed = 1};
    int code = args_parse(&a, &usage, argc, argv, &q);

    if (code < 0) {
        if (q.points == 0 && q.time_ps == 0)
            q.points = POINTS_INITIAL;
        signals_catch();
        log_set_quiet(q.quiet);
        code = status_exit_code(tune(&q, r));
    }
    args_fini(&a);
    return code;
}
