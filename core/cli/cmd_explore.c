#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/run/child.h"
#include "core/cli/args.h"
#include "core/cli/commands.h"
#include "core/cli/progress.h"
#include "core/clock.h"
#include "core/verify/explore.h"
#include "core/host.h"
#include "core/log.h"
#include "core/parse/option.h"

enum { SEEDS, FIRST, SET, QUIET, JOBS, TIMEOUT, MEMORY };

static const struct flag flags[] = {
    [SEEDS] = {"--seeds", "N", "seeds to run of every program (default: 200)"},
    [FIRST] = {"--first", "SEED", "the first of them (default: 1)"},
    [SET] = {"--set", "KEY=VALUE", "override a key of the scenario; may be repeated"},
    [QUIET] = {"--quiet", NULL, "print only failures"},
    [JOBS] = {"--jobs", "N", "programs at once (default: one a core)"},
    [TIMEOUT] = {"--timeout", "TIME", "kill 50 seeds of a program after this much real time (default: 600s)"},
    [MEMORY] = {"--memory", "SIZE", "let all runs together use this much (default: what is free)"},
    {NULL, NULL, NULL},
};

static const struct usage usage = {
    .line = "explore FILE [options]",
    .about = "Runs every program of a scenario many times with real data on a simulated machine in disorder:\n"
             "each seed stretches delays by up to 100 times, slows ranks and links, reorders puts and takes\n"
             "workers away.  A wrong element, two conflicting accesses at a time, or a hang ends the search\n"
             "with the seed and the command that repeats it.  Exit codes: 0 nothing found, 1 wrong result,\n"
             "2 bad input, 4 hang or time-out, 5 not enough memory, 130 interrupted.",
    .example = "mkernel explore scenarios/quickstart.yaml --seeds 500",
    .flags = flags,
};

struct request {
    const char  *file;
    const char **sets;
    uint32_t     set_count;
    bool         quiet;
    uint64_t     seeds, first, jobs, timeout_ps, memory_bytes;
};

static const struct option values[] = {
    {"--seeds", OPTION_COUNT, offsetof(struct request, seeds), "200", 1, 1e9, NULL, ""},
    {"--first", OPTION_COUNT, offsetof(struct request, first), "1", 0, 1e18, NULL, ""},
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
    case QUIET:     q->quiet = true; return -1;
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
    struct host host = host_read();
    struct args a;
    int         flag, code;

    option_defaults(values, q);
    q->jobs = host.cores;
    q->memory_bytes = host.available_bytes;
    args_begin(&a, &usage, argc, argv);
    while ((flag = args_next(&a)) != ARGS_END)
        if ((code = take(&a, flag, q)) >= 0)
            return code;
    return q->file ? -1 : args_error(&a, "which scenario? mkernel %s", usage.line);
}

/* The backend that can run in disorder. */
static const struct backend *find_backend(const struct registry *r)
{
    const struct backend *const *b = r->backends;

    while (*b && !option_find((*b)->options, "disorder"))
        b++;
    assert(*b);
    return *b;
}

static void say_failure(const struct request *q, const struct explore_result *found)
{
    const struct run_unit *u = found->failed;
    const struct point    *p = u->point;

    log_error("%s: %s %s, m %" PRIu64 " n %" PRIu64 " k %" PRIu64 ", %" PRIu32 " x %" PRIu32
              " GPUs, fails with seed %" PRIu64 ": %s",
              q->file, p->kernel->name, p->variant, u->problem.m, u->problem.n, u->problem.k,
              p->world.nodes, p->world.gpus_per_node, found->seed, status_text(u->result->status));
    fprintf(stderr, "repeat it with: mkernel explore %s --first %" PRIu64 " --seeds 1", q->file,
            found->seed);
    for (uint32_t i = 0; i < q->set_count; i++)
        fprintf(stderr, " --set '%s'", q->sets[i]);
    fprintf(stderr, "\n%s\n", u->result->report);
}

static enum status search(const struct request *q, struct explore_plan *plan)
{
    struct progress   progress;
    uint64_t          since_ns = clock_now_ns();
    struct explore_result found;
    struct run_config config = {
        .jobs = (uint32_t)q->jobs,
        .timeout_ns = q->timeout_ps / 1000,
        .memory_bytes = q->memory_bytes,
        .interrupted = &interrupted,
        .progress = progress_update,
        .arg = &progress,
    };
    enum status st;

    progress_begin(&progress, "programs", q->quiet);
    st = explore_run(plan, q->first, q->seeds, &config, &found);
    progress_end(&progress);
    if (found.failed)
        say_failure(q, &found);
    else if (st >= 0 && !q->quiet)
        printf("%s: %" PRIu64 " runs of %" PRIu64 " program%s in %.1f s, seeds %" PRIu64 " to %" PRIu64
               ": nothing found\n",
               q->file, found.runs, plan->count, plan->count > 1 ? "s" : "",
               (double)(clock_now_ns() - since_ns) / 1e9, q->first, q->first + q->seeds - 1);
    return st;
}

static enum status explore(const struct request *q, const struct registry *r)
{
    const struct backend *backend = find_backend(r);
    struct explore_plan   plan = {0};
    struct scenario       s = {0};
    enum status           st;

    st = scenario_load(q->file, r, NULL, q->sets, q->set_count, &s);
    if (st >= 0)
        st = explore_plan_create(&s, backend, q->memory_bytes, &plan);
    if (st >= 0)
        st = search(q, &plan);
    if (st == ST_INTERRUPTED)
        log_error("interrupted");
    explore_plan_destroy(&plan);
    scenario_fini(&s);
    return st;
}

int cmd_explore(int argc, char **argv, const struct registry *r)
{
    struct sigaction stop = {.sa_handler = on_signal};
    struct request   q = {0};
    int              code;

    q.sets = calloc((size_t)argc, sizeof *q.sets);
    assert(q.sets);
    code = parse(argc, argv, &q);
    if (code < 0) {
        sigaction(SIGINT, &stop, NULL);
        sigaction(SIGTERM, &stop, NULL);
        log_set_quiet(q.quiet);
        code = status_exit_code(explore(&q, r));
    }
    free(q.sets);
    return code;
}
