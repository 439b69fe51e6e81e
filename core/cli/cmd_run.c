#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cli/args.h"
#include "core/cli/commands.h"
#include "core/cli/report.h"
#include "core/cli/run_scenario.h"
#include "core/log.h"
#include "core/run/nodes.h"
#include "core/parse/option.h"

/* The rows that verify has, too, come first. */
enum { SET, QUIET, JOBS, TIMEOUT, MEMORY, BACKEND, TRANSPORT, JSON, CSV, OUTPUT, NO_VERIFY, TRACE, TRACE_LIMIT };

#define SHARED_FLAGS                                                                               \
    [SET] = {"--set", "KEY=VALUE", "override a key of the scenario; may be repeated"},             \
    [QUIET] = {"--quiet", NULL, "print only the final sentences and errors"},                      \
    [JOBS] = {"--jobs", "N", "runs at once (default: one a core)"},                                \
    [TIMEOUT] = {"--timeout", "TIME", "kill a run after this much real time (default: 600s)"},     \
    [MEMORY] = {"--memory", "SIZE", "let all runs together use this much (default: what is free)"}

static const struct flag run_flags[] = {
    SHARED_FLAGS,
    [BACKEND] = {"--backend", "NAME", "run on this backend instead of the scenario's"},
    [TRANSPORT] = {"--transport", "NAME", "what carries puts between nodes: --set cpu.transport=NAME"},
    [JSON] = {"--json", NULL, "print the records of the result file (JSON lines) instead of the table"},
    [CSV] = {"--csv", NULL, "print one row a point instead of the table"},
    [OUTPUT] = {"--output", "PATH", "result file, or \"none\" (default: results/local/NAME-DATE.jsonl)"},
    [NO_VERIFY] = {"--no-verify", NULL, "do not prove programs first; the records say so"},
    [TRACE] = {"--trace", "FILE", "write what each program did, for Perfetto; .gz compresses (docs/trace.md)"},
    [TRACE_LIMIT] = {"--trace-limit", "SIZE", "largest trace before compression (default: 64MiB)"},
    {NULL, NULL, NULL},
};

static const struct flag verify_flags[] = {
    SHARED_FLAGS,
    {NULL, NULL, NULL},
};

static const struct usage run_usage = {
    .line = "run FILE... [options]",
    .about = "Runs scenario files: proves every program, checks it with real data, times every point, prints\n"
             "a table and a sentence a kernel, and keeps the results as JSON lines.  Under mpirun or srun, one\n"
             "process a node, the cpu backend runs across them (docs/launch.md).\n"
             "Exit codes: 0 ok, 1 wrong result, 2 bad input, 3 slower than the scenario's threshold,\n"
             "4 hang or time-out, 5 something is missing (memory, disk, device), 130 interrupted.\n"
             "Several failures: 130 before 1 before 4 before 2 before 5 before 3.",
    .example = "mkernel run scenarios/quickstart.yaml --set problem.m=4096",
    .flags = run_flags,
};

static const struct usage verify_usage = {
    .line = "verify FILE... [options]",
    .about = "Proves every program of scenario files before it runs: no deadlock and no race for any timing and\n"
             "any number of workers, every output element written once with the right sum.  A violation names\n"
             "the tasks, the bytes and the flag.  Exit codes: 0 proved, 1 refused, 2 bad input, 4 time-out,\n"
             "5 not enough memory.",
    .example = "mkernel verify scenarios/quickstart.yaml",
    .flags = verify_flags,
};

/* The flags that hold a value with a unit. */
static const struct option values[] = {
    {"--jobs", OPTION_COUNT, offsetof(struct run_request, jobs), "1", 1, 256, NULL, ""},
    {"--timeout", OPTION_TIME, offsetof(struct run_request, timeout_ps), "600s", 1e9, 1e18, NULL, ""},
    {"--memory", OPTION_SIZE, offsetof(struct run_request, memory_bytes), "1GiB", 1, 1e18, NULL, ""},
    {"--trace-limit", OPTION_SIZE, offsetof(struct run_request, trace_limit_bytes), "64MiB", 1 << 20, 1e12, NULL, ""},
    {0},
};

static volatile sig_atomic_t interrupted, planning;

/* As much as a signal handler may do; where stderr is gone there is no one to tell. */
static void say(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));

    (void)written;
}

/* Before anything runs there is nothing to lose; later the loop looks at `interrupted`. */
static void on_signal(int number)
{
    if (number != SIGALRM)
        interrupted = 1;
    if (!planning)
        return;
    if (number == SIGALRM) {
        say("mkernel: error: planning the runs takes longer than --timeout\n");
        _exit(status_exit_code(ST_HANG));
    }
    say("mkernel: error: interrupted before anything ran\n");
    _exit(status_exit_code(ST_INTERRUPTED));
}

static void catch_signals(void)
{
    struct sigaction stop = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};

    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGALRM, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL); /* "mkernel run | head" still keeps its results */
}

struct words {
    const char **files, **sets;
    char         transport[OPTION_TEXT_BYTES];
    uint32_t     file_count, set_count;
};

static int take_transport(const struct args *a, struct words *w)
{
    int n = snprintf(w->transport, sizeof w->transport, "cpu.transport=%s", a->value);

    if (n >= (int)sizeof w->transport)
        return args_error(a, "--transport %s is too long", a->value);
    w->sets[w->set_count++] = w->transport;
    return 0;
}

/* -1: go on; else the exit code. */
static int take_flag(struct args *a, int flag, struct run_request *q, struct words *w)
{
    int code = 0;

    switch (flag) {
    case ARGS_HELP: return 0;
    case ARGS_BAD:  return status_exit_code(ST_INPUT);
    case ARGS_WORD: w->files[w->file_count++] = a->value; break;
    case BACKEND:   q->backend = a->value; break;
    case SET:       w->sets[w->set_count++] = a->value; break;
    case TRANSPORT: code = take_transport(a, w); break;
    case JSON:      q->format = OUTPUT_JSON; break;
    case CSV:       q->format = OUTPUT_CSV; break;
    case QUIET:     q->quiet = true; break;
    case OUTPUT:    q->output = a->value; break;
    case TRACE:     q->trace = a->value; break;
    case NO_VERIFY: q->no_verify = true; break;
    default:        return args_value(a, values, flag, q);
    }
    return code ? code : -1;
}

static int parse(const struct usage *usage, int argc, char **argv, struct run_request *q,
                 struct words *w)
{
    struct args a;
    int         flag, code;

    args_begin(&a, usage, argc, argv);
    while ((flag = args_next(&a)) != ARGS_END)
        if ((code = take_flag(&a, flag, q, w)) >= 0)
            return code;
    if (w->file_count == 0)
        return args_error(&a, "which scenario? mkernel %s", usage->line);
    return -1;
}

static int run_files(struct run_request *q, const struct words *w, const struct registry *r)
{
    const struct problem_family *csv_family = NULL;
    struct published_total published = {0};
    enum status worst = ST_OK;

    q->csv_family = &csv_family;
    q->published = &published;
    log_set_quiet(q->quiet);
    for (uint32_t i = 0; i < w->file_count && !interrupted; i++)
        worst = status_worse(worst, run_scenario(q, w->files[i], r));
    if (q->format == OUTPUT_TABLE && (w->file_count > 1 || q->quiet))
        published_total_print(&published, w->file_count > 1 ? "all files" : w->files[0], stdout);
    published_total_fini(&published);
    return status_exit_code(worst);
}

/* Alone, or as one of several processes that mpirun has started.  Node 0 speaks for all. */
static int run_with_nodes(struct run_request *q, const struct words *w, const struct registry *r)
{
    struct nodes nodes = {.count = 1};
    int          code;

    catch_signals();
    if (!q->verify_only) {
        enum status st;

        log_set_mute(nodes_start().node > 0);
        st = nodes_open(&nodes, r->launcher);
        if (st < 0)
            return status_exit_code(st);
    }
    nodes.interrupted = &interrupted;
    q->nodes = &nodes;
    code = run_files(q, w, r);
    fflush(stdout); /* mpirun ends everybody soon after the first has ended */
    nodes_close(&nodes);
    return code;
}

static int run_or_verify(const struct usage *usage, struct run_request q, const struct registry *r)
{
    struct words w = {0};
    int          code;

    w.files = calloc((size_t)q.argc, sizeof *w.files);
    w.sets = calloc((size_t)q.argc, sizeof *w.sets);
    assert(w.files && w.sets);
    q.interrupted = &interrupted;
    q.planning = &planning;
    q.host = host_read();
    q.jobs = q.host.cores;
    q.timeout_ps = 600 * 1000000000000ull;
    q.trace_limit_bytes = 64 << 20;
    q.memory_bytes = q.host.available_bytes;
    code = parse(usage, q.argc, (char **)q.argv, &q, &w);
    q.sets = w.sets;
    q.set_count = w.set_count;
    if (code < 0)
        code = run_with_nodes(&q, &w, r);
    free(w.files);
    free(w.sets);
    return code;
}

int cmd_run(int argc, char **argv, const struct registry *r)
{
    return run_or_verify(&run_usage, (struct run_request){.argc = argc, .argv = argv}, r);
}

int cmd_verify(int argc, char **argv, const struct registry *r)
{
    return run_or_verify(&verify_usage,
                         (struct run_request){.argc = argc, .argv = argv, .verify_only = true}, r);
}
