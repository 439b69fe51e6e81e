#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/run/child.h"
#include "core/cli/args.h"
#include "core/cli/commands.h"
#include "core/cli/progress.h"
#include "core/cli/tune_report.h"
#include "core/host.h"
#include "core/log.h"
#include "core/run/nodes.h"
#include "core/results/record.h"
#include "core/results/result.h"

enum { POINTS, TIME, SEED, SCENARIO, SET, BACKEND, QUIET, JSON, OUTPUT, JOBS, TIMEOUT, MEMORY };

static const struct flag flags[] = {
    [POINTS] = {"--points", "N", "programs to time per problem, at most (default: 160; with --time: no bound)"},
    [TIME] = {"--time", "TIME", "stop after about this much real time; the result then depends on the computer"},
    [SEED] = {"--seed", "N", "of the spread that the search begins with (default: 1)"},
    [SCENARIO] = {"--scenario", "PATH", "write the answer as a scenario; several problems: PATH-1.yaml, ..."},
    [SET] = {"--set", "KEY=VALUE", "override a key of the scenario; may be repeated"},
    [BACKEND] = {"--backend", "NAME", "time on this backend instead of the scenario's"},
    [QUIET] = {"--quiet", NULL, "print only the answers and errors"},
    [JSON] = {"--json", NULL, "print the records of the result file (JSON lines) instead"},
    [OUTPUT] = {"--output", "PATH", "result file, or \"none\" (default: results/local/NAME-tune-DATE.jsonl)"},
    [JOBS] = {"--jobs", "N", "runs at once (default: one a core)"},
    [TIMEOUT] = {"--timeout", "TIME", "kill a run after this much real time (default: 600s)"},
    [MEMORY] = {"--memory", "SIZE", "let all runs together use this much (default: what is free)"},
    {NULL, NULL, NULL},
};

static const struct usage usage = {
    .line = "tune FILE [options]",
    .about = "Searches, for each problem of a scenario, program (fused or not) and parameters (crews, chunk, order,\n"
             "algorithm) for the shortest time, beside NCCL + cuBLAS and hand-overlapped streams.  Prints what\n"
             "each value costs, the answer, and the --set options that repeat it; keeps every run as a record.\n"
             "Same scenario, seed and points: same answer.  Exit codes: 0 ok, 1 wrong result, 2 bad input,\n"
             "4 hang or time-out, 5 not enough memory, 130 interrupted.",
    .example = "mkernel tune scenarios/quickstart.yaml --set problem.m=8192 --points 60",
    .flags = flags,
};

#define POINTS_INITIAL 160

struct request {
    const char  *file, *backend, *output, *scenario;
    const char **sets;
    uint32_t     set_count;
    bool         quiet, json;
    uint64_t     points, time_ps, seed, jobs, timeout_ps, memory_bytes;
    struct host  host;
    int          argc;
    char *const *argv;
};

static const struct option values[] = {
    {"--points", OPTION_COUNT, offsetof(struct request, points), "0", 1, 100000, NULL, ""},
    {"--time", OPTION_TIME, offsetof(struct request, time_ps), "0ps", 1e9, 1e18, NULL, ""},
    {"--seed", OPTION_COUNT, offsetof(struct request, seed), "1", 0, 1e18, NULL, ""},
    {"--jobs", OPTION_COUNT, offsetof(struct request, jobs), "1", 1, 256, NULL, ""},
    {"--timeout", OPTION_TIME, offsetof(struct request, timeout_ps), "600s", 1e9, 1e18, NULL, ""},
    {"--memory", OPTION_SIZE, offsetof(struct request, memory_bytes), "1GiB", 1, 1e18, NULL, ""},
    {0},
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

/* -1: go on; else the exit code. */
static int take(struct args *a, int flag, struct request *q)
{
    switch (flag) {
    case ARGS_HELP: return 0;
    case ARGS_BAD:  return status_exit_code(ST_INPUT);
    case SET:       q->sets[q->set_count++] = a->value; return -1;
    case BACKEND:   q->backend = a->value; return -1;
    case SCENARIO:  q->scenario = a->value; return -1;
    case OUTPUT:    q->output = a->value; return -1;
    case QUIET:     q->quiet = true; return -1;
    case JSON:      q->json = true; return -1;
    case ARGS_WORD:
        if (q->file)
            return args_error(a, "one scenario at a time, not \"%s\" as well", a->value);
        q->file = a->value;
        return -1;
    default: return args_value(a, values, flag, q);
    }
}

static int parse(int argc, char **argv, struct request *q)
{
    struct args a;
    int         flag, code;

    q->host = host_read();
    q->jobs = q->host.cores;
    q->memory_bytes = q->host.available_bytes;
    q->seed = 1;
    q->timeout_ps = 600 * 1000000000000ull;
    args_begin(&a, &usage, argc, argv);
    while ((flag = args_next(&a)) != ARGS_END)
        if ((code = take(&a, flag, q)) >= 0)
            return code;
    if (q->points == 0 && q->time_ps == 0)
        q->points = POINTS_INITIAL;
    return q->file ? -1 : args_error(&a, "which scenario? mkernel %s", usage.line);
}

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
    char           path[RESULT_PATH_BYTES];
    struct compare c;
    uint64_t       failed = 0, written = 0;
    enum status    st;

    compare_create(t->units, t->unit_count, &c);
    put_record(q, f, record_run(t->scenario, &q->host, &alone, q->argc, q->argv));
    for (uint64_t i = 0; i < t->unit_count; i++) {
        if (!t->units[i].result)
            continue;
        failed += t->units[i].result->status < 0 && !point_is_baseline(t->units[i].point);
        put_record(q, f, record_point(t->scenario, &c, i));
        written++;
    }
    for (uint64_t i = 0; i < t->problem_count; i++)
        put_record(q, f, record_tuned(t, i, q->seed));
    put_record(q, f, record_end(written, failed, interrupted != 0));
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
            st = status_worse(st, tune_write_scenario(t, i, q->scenario, q->argc, q->argv));
    }
    return st;
}

/* The program that ended the search. */
static void explain_failure(const struct tune *t)
{
    for (uint64_t i = 0; i < t->unit_count; i++) {
        const struct run_unit *u = &t->units[i];
        char                   text[PROBLEM_TEXT_BYTES], params[TUNE_TEXT_BYTES];

        if (!u->result || u->result->status >= 0 || point_is_baseline(u->point))
            continue;
        tune_params_text(u->point, params);
        log_error("%s: %s, %s %s: %s", t->scenario->path, u->point->kernel->name,
                  problem_text(u->point->kernel->family, &u->problem, text), params,
                  status_text(u->result->status));
        if (u->result->report[0])
            fprintf(stderr, "%s\n", u->result->report);
        return;
    }
}

static enum status search(const struct request *q, const struct scenario *s, struct tune *t)
{
    struct progress    progress;
    struct tune_config config = {
        .points = q->points,
        .time_ns = q->time_ps / 1000,
        .seed = q->seed,
        .run = {.jobs = (uint32_t)q->jobs,
                .timeout_ns = q->timeout_ps / 1000,
                .memory_bytes = q->memory_bytes,
                .interrupted = &interrupted,
                .progress = progress_update,
                .arg = &progress},
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
    char        why[256] = "";
    enum status st = s->backend->available(why, sizeof why);

    if (st < 0)
        log_error("backend %s cannot run here: %s", s->backend->name, why);
    return st;
}

static enum status tune(const struct request *q, const struct registry *r)
{
    struct result_file f = {0};
    struct scenario    s = {0};
    struct tune        t = {0};
    enum status        st;

    st = scenario_load(q->file, r, q->backend, q->sets, q->set_count, &s);
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
    struct sigaction stop = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    struct request   q = {.argc = argc, .argv = argv};
    int              code;

    q.sets = calloc((size_t)argc, sizeof *q.sets);
    assert(q.sets);
    code = parse(argc, argv, &q);
    if (code < 0) {
        sigaction(SIGINT, &stop, NULL);
        sigaction(SIGTERM, &stop, NULL);
        sigaction(SIGPIPE, &ignore, NULL);
        log_set_quiet(q.quiet);
        code = status_exit_code(tune(&q, r));
    }
    free(q.sets);
    return code;
}
