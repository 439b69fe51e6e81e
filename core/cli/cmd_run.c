#include <assert.h>
#include <stddef.h>
#include <stdio.h>

#include "core/cli/args.h"
#include "core/cli/commands.h"
#include "core/cli/report.h"
#include "core/cli/run_scenario.h"
#include "core/cli/signals.h"
#include "core/log.h"
#include "core/run/nodes.h"

#define TRACE_LIMIT_BYTES (64 << 20)

#define SET_BYTES 64
#define TRANSPORTING_MAX 2 /* backends with transports: the words "--transport NAME" leave room for as many sets */

#define REQUEST(member) offsetof(struct run_request, member)

#define SHARED_FLAGS                                                                                                   \
    FLAG_SET_ROW, {"--quiet", NULL, "print only the final sentences and errors", FLAG_SWITCH, REQUEST(quiet), 0, 0},   \
        LIMITS_FLAGS(run_request, "runs", "kill a run")

static const struct flag run_flags[] = {
    SHARED_FLAGS,
    {"--backend", "NAME", "run on this backend instead of the scenario's", FLAG_TEXT, REQUEST(backend), 0, 0},
    {"--transport", "NAME", "what carries puts between nodes: --set cpu.transport=NAME, and cuda's", FLAG_TEXT,
     REQUEST(transport), 0, 0},
    {"--json", NULL, "print the records of the result file (JSON lines) instead of the table", FLAG_SWITCH,
     REQUEST(json), 0, 0},
    {"--csv", NULL, "print one row a point instead of the table", FLAG_SWITCH, REQUEST(csv), 0, 0},
    {"--output", "PATH", "result file, or \"none\" (default: results/local/NAME-DATE.jsonl)", FLAG_TEXT,
     REQUEST(output), 0, 0},
    {"--no-verify", NULL, "do not prove programs first; the records say so", FLAG_SWITCH, REQUEST(no_verify), 0, 0},
    {"--trace", "FILE", "write what each program did, for Perfetto; .gz compresses (docs/trace.md)", FLAG_TEXT,
     REQUEST(trace), 0, 0},
    {"--trace-limit", "SIZE", "largest trace before compression (default: 64MiB)", FLAG_SIZE,
     REQUEST(trace_limit_bytes), 1 << 20, 1e12},
    {0},
};

static const struct flag verify_flags[] = {
    SHARED_FLAGS,
    {0},
};

static const struct usage run_usage = {
    .name = "run",
    .takes = "FILE... [options]",
    .about = "Runs scenario files: proves every program, checks it with real data, times every point, prints\n"
             "a table and a sentence a kernel, and keeps the results as JSON lines.  Under mpirun or srun, one\n"
             "process a node, the cpu and cuda backends run across them (docs/launch.md).\n"
             "Exit codes: 0 ok, 1 wrong result, 2 bad input, 3 slower than the scenario's threshold,\n"
             "4 hang or time-out, 5 something is missing (memory, disk, device), 130 interrupted.\n"
             "Several failures: 130 before 1 before 4 before 2 before 5 before 3.",
    .example = "mkernel run scenarios/quickstart.yaml --set problem.m=4096",
    .flags = run_flags,
    .words = "scenario",
    .words_min = 1,
    .words_max = WORDS_ANY,
};

static const struct usage verify_usage = {
    .name = "verify",
    .takes = "FILE... [options]",
    .about = "Proves every program of scenario files before it runs: no deadlock and no race for any timing and\n"
             "any number of workers, every output element written once with the right sum.  A violation names\n"
             "the tasks, the bytes and the flag.  Exit codes: 0 proved, 1 refused, 2 bad input, 4 time-out,\n"
             "5 too large to be proved here, 130 interrupted.",
    .example = "mkernel verify scenarios/quickstart.yaml",
    .flags = verify_flags,
    .words = "scenario",
    .words_min = 1,
    .words_max = WORDS_ANY,
};

static int run_files(struct run_request *q, const struct registry *r)
{
    const struct problem_family *csv_family = NULL;
    struct published_total published = {0};
    const struct args *a = q->args;
    enum status worst = ST_OK;

    q->csv_family = &csv_family;
    q->published = &published;
    log_set_quiet(q->quiet);
    for (uint32_t i = 0; i < a->word_count && !signals_interrupted; i++)
        worst = status_worse(worst, run_scenario(q, a->words[i], r));
    if (!q->json && !q->csv && (a->word_count > 1 || q->quiet))
        published_total_print(&published, a->word_count > 1 ? "all files" : a->words[0], stdout);
    published_total_fini(&published);
    return status_exit_code(worst);
}

/* Alone, or as one of several processes that mpirun has started.  Node 0 speaks for all. */
static int run_with_nodes(struct run_request *q, const struct registry *r)
{
    struct nodes nodes = {.count = 1};
    int code;

    signals_catch();
    if (!q->verify_only) {
        enum status st;

        log_set_mute(nodes_start().node > 0);
        st = nodes_open(&nodes, r->launcher);
        if (st < 0)
            return status_exit_code(st);
    }
    nodes.interrupted = &signals_interrupted;
    q->nodes = &nodes;
    code = run_files(q, r);
    fflush(stdout); /* mpirun ends everybody soon after the first has ended */
    nodes_close(&nodes);
    return code;
}

/* For every backend that has transports, since the check may run on another one.  -1: go on; else the exit code. */
static int set_transport(struct args *a, const struct registry *r, const char *name, char out[][SET_BYTES])
{
    uint32_t count = 0;

    for (size_t i = 0; r->backends[i]; i++) {
        if (!option_find(r->backends[i]->options, "transport"))
            continue;
        assert(count < TRANSPORTING_MAX);
        if (snprintf(out[count], SET_BYTES, "%s.transport=%s", r->backends[i]->name, name) >= SET_BYTES)
            return args_error(a, "--transport %.40s...: no transport has so long a name", name);
        a->sets[a->set_count++] = out[count++];
    }
    return -1;
}

static int run_or_verify(const struct usage *usage, int argc, char **argv, const struct registry *r)
{
    struct host host = host_read();
    struct args a;
    struct run_request q = {.args = &a,
                            .verify_only = usage == &verify_usage,
                            .host = host,
                            .limits = limits_of(&host),
                            .trace_limit_bytes = TRACE_LIMIT_BYTES};
    char transports[TRANSPORTING_MAX][SET_BYTES];
    int code = args_parse(&a, usage, argc, argv, &q);

    if (code < 0 && q.json && q.csv)
        code = args_error(&a, "--json and --csv are two forms; expected one of them");
    if (code < 0 && q.transport)
        code = set_transport(&a, r, q.transport, transports);
    if (code < 0)
        code = run_with_nodes(&q, r);
    args_fini(&a);
    return code;
}

int cmd_run(int argc, char **argv, const struct registry *r)
{
    return run_or_verify(&run_usage, argc, argv, r);
}

int cmd_verify(int argc, char **argv, const struct registry *r)
{
    return run_or_verify(&verify_usage, argc, argv, r);
}
