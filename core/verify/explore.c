#include "core/verify/explore.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

#define BATCH_SEEDS 50 /* of one child process: a fork costs as much as a small run */

/* What a unit's options point to. */
struct explore_batch {
    const struct backend *backend;
    const void *options;
    uint64_t first, count; /* seeds */
};

/* ---- a batch in the shape of a backend, so that batches run like everything else ---- */

static uint64_t batch_memory_bytes(const struct job *job)
{
    const struct explore_batch *b = job->options;
    struct job one = *job;

    one.options = b->options;
    return b->backend->memory_bytes(&one);
}

static enum status batch_run(const struct job *job, struct run_result *r)
{
    const struct explore_batch *b = job->options;
    struct job one = *job;
    uint64_t runs = 0;

    one.options = b->options;
    do {
        one.seed = b->first + runs++;
        b->backend->run(&one, r);
    } while (r->status >= 0 && runs < b->count);
    r->runs = runs;
    return r->status;
}

static const struct backend batch_backend = {
    .name = "exploration",
    .title = "runs a program in disorder, a seed after the other",
    .memory_bytes = batch_memory_bytes,
    .run = batch_run,
};

/* ---- the plan ---- */

static void set_option(const struct backend *b, void *options, const char *name, const char *value)
{
    const struct option *o = option_find(b->options, name);
    char why[256];
    enum status st;

    assert(o);
    st = option_parse(o, options, value, NULL, why, sizeof why);
    assert(st == ST_OK);
    (void)st;
}

/* What the scenario says of this backend stays, a disorder of its own too. */
static void *disordered(const struct scenario *s, const struct backend *b)
{
    const struct option *disorder = option_find(b->options, "disorder");
    void *options = calloc(1, b->options_size);
    char text[OPTION_TEXT_BYTES];

    assert(options && disorder);
    if (s->backend == b)
        memcpy(options, s->backend_options, b->options_size);
    else
        option_defaults(b->options, options);
    option_print(disorder, options, text, sizeof text);
    if (strcmp(text, disorder->initial) == 0)
        set_option(b, options, "disorder", "100");
    set_option(b, options, "engine", "alone");
    set_option(b, options, "data", "true");
    return options;
}

static bool is_planned(const struct explore_plan *plan, const struct point *p, const struct problem *problem)
{
    for (uint64_t i = 0; i < plan->count; i++)
        if (point_same_program(plan->units[i].point, p) &&
            memcmp(&plan->units[i].problem, problem, sizeof *problem) == 0)
            return true;
    return false;
}

static enum status plan_unit(const struct scenario *s, struct explore_plan *plan, const struct backend *backend,
                             const struct point *p, uint64_t memory_bytes)
{
    struct run_unit *u = &plan->units[plan->count];
    struct explore_batch *b = &plan->batches[plan->count];
    uint64_t epochs = s->check.wanted ? s->check.epochs : EXPLORE_EPOCHS;

    *b = (struct explore_batch){.backend = backend, .options = plan->options};
    *u = (struct run_unit){
        .point = p,
        .problem = s->check.wanted ? s->check.problem : p->problem,
        .backend = &batch_backend,
        .options = b,
        .timing = {.mode = TIMING_PIPELINED, .iterations = (uint32_t)max_u64(epochs, EXPLORE_EPOCHS)},
        .data = true,
    };
    if (is_planned(plan, p, &u->problem))
        return ST_OK;
    TRY(run_unit_plan(s, u, memory_bytes));
    plan->count++;
    return ST_OK;
}

enum status explore_plan_create(const struct scenario *s, const struct backend *backend, uint64_t memory_bytes,
                                struct explore_plan *out)
{
    struct explore_plan plan = {0};
    enum status st = ST_OK;

    plan.units = calloc(s->point_count + 1, sizeof *plan.units);
    plan.batches = calloc(s->point_count + 1, sizeof *plan.batches);
    assert(plan.units && plan.batches);
    plan.options = disordered(s, backend);
    for (uint64_t i = 0; st >= 0 && i < s->point_count; i++)
        if (!point_is_baseline(&s->points[i]))
            st = plan_unit(s, &plan, backend, &s->points[i], memory_bytes);
    if (st >= 0 && plan.count == 0) {
        log_error("%s: no program to explore: all variants are baselines", s->path);
        st = ST_INPUT;
    }
    if (st < 0)
        explore_plan_destroy(&plan);
    else
        *out = plan;
    return st;
}

static void drop_results(struct explore_plan *plan)
{
    for (uint64_t i = 0; i < plan->count; i++) {
        free(plan->units[i].result);
        plan->units[i].result = NULL;
    }
}

void explore_plan_destroy(struct explore_plan *plan)
{
    drop_results(plan);
    free(plan->units);
    free(plan->batches);
    free(plan->options);
    *plan = (struct explore_plan){0};
}

/* ---- running ---- */

static void tally(const struct explore_plan *plan, struct explore_result *out)
{
    for (uint64_t i = 0; i < plan->count; i++) {
        const struct run_unit *u = &plan->units[i];
        uint64_t seed;

        if (!u->result)
            continue;
        out->runs += u->result->runs;
        seed = plan->batches[i].first + max_u64(u->result->runs, 1) - 1;
        if (u->result->status < 0 && (!out->failed || seed < out->seed)) {
            out->failed = u;
            out->seed = seed;
        }
    }
}

/* Seeds in rounds: the first failure ends the search, and it is the same one however many jobs run. */
enum status explore_run(struct explore_plan *plan, uint64_t first, uint64_t count, const struct run_config *config,
                        struct explore_result *out)
{
    *out = (struct explore_result){0};
    for (uint64_t done = 0; done < count && !out->failed; done += BATCH_SEEDS) {
        drop_results(plan);
        for (uint64_t i = 0; i < plan->count; i++) {
            plan->batches[i].first = first + done;
            plan->batches[i].count = min_u64(BATCH_SEEDS, count - done);
        }
        TRY(run_units(plan->units, plan->count, config));
        tally(plan, out);
    }
    return out->failed ? out->failed->result->status : ST_OK;
}
