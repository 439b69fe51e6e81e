#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "core/cli/args.h"
#include "core/cli/commands.h"
#include "core/cli/limits.h"
#include "core/cli/progress.h"
#include "core/cli/signals.h"
#include "core/clock.h"
#include "core/verify/explore.h"
#include "core/host.h"
#include "core/log.h"
#include "core/parse/option.h"

struct request {
    const struct args *args; /* the scenario and its sets */
    bool quiet;
    uint64_t seeds, first;
    struct limits limits;
};

static const struct flag flags[] = {
    {"--seeds", "N", "seeds to run of every program (default: 200)", FLAG_COUNT, offsetof(struct request, seeds), 1,
     1e9},
    {"--first", "SEED", "the first of them (default: 1)", FLAG_COUNT, offsetof(struct request, first), 0, 1e18},
    FLAG_SET_ROW,
    {"--quiet", NULL, "print only failures", FLAG_SWITCH, offsetof(struct request, quiet), 0, 0},
    LIMITS_FLAGS(request, "programs", "stop 50 seeds of a program"),
    {0},
};

static const struct usage usage = {
    .name = "explore",
    .takes = "FILE [options]",
    .about = "Runs every program of a scenario many times with real data on a simulated machine in disorder:\n"
             "each seed stretches delays by up to 100 times, slows ranks and links, reorders puts and takes\n"
             "workers away.  A wrong element, two conflicting accesses at a time, or a hang ends the search\n"
             "with the seed and the command that repeats it.  Exit codes: 0 nothing found, 1 wrong result,\n"
             "2 bad input, 4 hang or time-out, 5 not enough memory, 130 interrupted.",
    .example = "mkernel explore scenarios/quickstart.yaml --seeds 500",
    .flags = flags,
    .words = "scenario",
    .words_min = 1,
    .words_max = 1,
};

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
    const struct point *p = u->point;
    char text[PROBLEM_TEXT_BYTES];

    log_error("%s: %s %s, %s, %" PRIu32 " x %" PRIu32 " GPUs, fails with seed %" PRIu64 ": %s", q->args->words[0],
              p->kernel->name, p->variant, problem_text(p->kernel->family, &u->problem, text), p->world.nodes,
              p->world.gpus_per_node, found->seed, status_text(u->result->status));
    fprintf(stderr, "repeat it with: mkernel explore '%s' --first %" PRIu64 " --seeds 1", q->args->words[0],
            found->seed);
    for (uint32_t i = 0; i < q->args->set_count; i++)
        fprintf(stderr, " --set '%s'", q->args->sets[i]);
    fprintf(stderr, "\n%s\n", u->result->report);
}

static enum status search(const struct request *q, struct explore_plan *plan)
{
    struct progress progress;
    uint64_t since_ns = clock_now_ns();
    struct explore_result found;
    struct run_config config = limits_config(&q->limits, &progress);
    enum status st;

    progress_begin(&progress, "programs", q->quiet);
    st = explore_run(plan, q->first, q->seeds, &config, &found);
    progress_end(&progress);
    if (found.failed)
        say_failure(q, &found);
    else if (st >= 0 && !q->quiet)
        printf("%s: %" PRIu64 " runs of %" PRIu64 " program%s in %.1f s, seeds %" PRIu64 " to %" PRIu64
               ": nothing found\n",
               q->args->words[0], found.runs, plan->count, plan->count > 1 ? "s" : "",
               (double)(clock_now_ns() - since_ns) / 1e9, q->first, q->first + q->seeds - 1);
    return st;
}

static enum status explore(const struct request *q, const struct registry *r)
{
    const struct backend *backend = find_backend(r);
    struct explore_plan plan = {0};
    struct scenario s = {0};
    enum status st;

    st = scenario_load(q->args->words[0], r, NULL, q->args->sets, q->args->set_count, &s);
    if (st >= 0)
        st = explore_plan_create(&s, backend, q->limits.memory_bytes, &plan);
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
    struct host host = host_read();
    struct args a;
    struct request q = {.args = &a, .seeds = 200, .first = 1, .limits = limits_of(&host)};
    int code = args_parse(&a, &usage, argc, argv, &q);

    if (code < 0) {
        signals_catch();
        log_set_quiet(q.quiet);
        code = status_exit_code(explore(&q, r));
    }
    args_fini(&a);
    return code;
}
