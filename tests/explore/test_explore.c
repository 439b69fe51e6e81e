/* Exploration against the verifier.  What the verifier accepts must pass every seed, mutants included.  What it
 * refuses after waits or signals were dropped, waits halved or credits taken an epoch early must fail within
 * SEEDS_MAX seeds, at every shape. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mutants/mutant.h"
#include "../shard.h"
#include "../suite.h"
#include "backends/sim/sim.h"
#include "core/verify/verify.h"
#include "kernels/kernels.h"
#include "sim/engine.h"

#define SEEDS_MAX 20     /* a mutant and shape */
#define ACCEPTED_SEEDS 4 /* an undamaged program */
#define HARMLESS_SEEDS 2 /* a mutant that the verifier accepts, or a redundant wait */
#define EPOCHS 4

static struct machine machine;

static void open_machine(void)
{
    ck_assert_int_eq(machine_load("hgx-h200-cx7", &machine), ST_OK);
    machine.gpu.sms = 32; /* crews as small as the problems */
    /* Which seed finds what must not move when copies are measured anew. */
    machine.copy.push_rate = 37.5e9;
    machine.copy.pull_rate = 39e9;
    machine.copy.drained_ps = 3700000;
    machine.copy.pipelined_ps = 2200000;
}

static enum status run(const struct kernel *k, const struct problem *problem, const struct program *p, uint64_t seed,
                       struct run_result *r)
{
    struct sim_options options;
    struct job job = {
        .program = p,
        .world = p->world,
        .kernel = k,
        .problem = problem,
        .machine = &machine,
        .timing = {.mode = TIMING_PIPELINED, .iterations = EPOCHS},
        .options = &options,
        .seed = seed,
        .data = true,
    };

    option_defaults(sim_backend.options, &options);
    options.engine = ENGINE_ALONE;
    options.disorder = 100;
    return sim_backend.run(&job, r);
}

/* The first seed that fails; 0: none. */
static uint64_t find_failure(const struct kernel *k, const struct problem *problem, const struct program *p,
                             uint64_t seeds, struct run_result *r)
{
    for (uint64_t seed = 1; seed <= seeds; seed++)
        if (run(k, problem, p, seed, r) < 0)
            return seed;
    return 0;
}

START_TEST(accepted_programs_pass)
{
    const struct kernel *k = kernels[_i / 2];
    enum form form = _i % 2 ? FORM_UNFUSED : FORM_FUSED;
    static struct run_result r;
    uint32_t runs = 0;

    for (int i = 0; i < mutant_shape_count; i++) {
        const struct mutant_shape *shape = &mutant_shapes[i];
        struct program p;
        uint64_t seed;

        if (!mutant_shape_emit(k, form, shape, &machine, &p))
            continue;
        seed = find_failure(k, &shape->problem, &p, ACCEPTED_SEEDS, &r);
        ck_assert_msg(seed == 0, "%s, %u x %u, %s: fails with seed %lu: %s", k->name, shape->world.nodes,
                      shape->world.gpus_per_node, shape->setting, (unsigned long)seed, r.report);
        runs += ACCEPTED_SEEDS;
        program_fini(&p);
    }
    printf("# %s %s: %u runs passed\n", k->name, form == FORM_FUSED ? "fused" : "unfused", runs);
    fflush(stdout);
}
END_TEST

/* A seed is all that is needed to see a failure again. */
START_TEST(a_seed_repeats_its_failure)
{
    static struct run_result first, again;
    const struct kernel *k = kernels[0];
    const struct mutant_shape *shape = &mutant_shapes[0];
    struct mutant m = {.mutation = DROP_WAIT, .buffer = UINT32_MAX};
    uint64_t seed = 0;
    struct program p;

    ck_assert(mutant_shape_emit(k, FORM_FUSED, shape, &machine, &m.inner));
    for (m.group = 0; m.group < m.inner.flag_group_count && seed == 0; m.group++) {
        p = mutant_program(&m);
        seed = find_failure(k, &shape->problem, &p, SEEDS_MAX, &first);
        if (seed > 0)
            run(k, &shape->problem, &p, seed, &again);
    }
    ck_assert_uint_gt(seed, 0);
    ck_assert_int_eq(again.status, first.status);
    ck_assert_str_eq(again.report, first.report);
    program_fini(&m.inner);
}
END_TEST

/* ---- mutants ---- */

/* Waits that the verifier wants and that no schedule needs.  In an all-reduce each rank's result depends on
 * every rank's input, and the closing task waits for all of it (done).  So a rank that begins epoch e + 1 knows
 * that epoch e's data have been received and read everywhere; the verifier follows that chain across the
 * epochs' border only where it is short. */
static const struct {
    const char *kernel, *queue, *flags;
} redundant[] = {
    {"gemm_ar", "compute", "open"},
    {"gemm_ar", "scatter", "open"},
    {"gemm_ar", "send", "rail_open"},
    {"gemm_ar", "share", "sent"},
};

static bool is_redundant(const struct kernel *k, const struct mutant *m)
{
    for (size_t i = 0; i < sizeof redundant / sizeof *redundant; i++)
        if (m->mutation == DROP_WAIT && strcmp(redundant[i].kernel, k->name) == 0 &&
            strcmp(redundant[i].queue, m->inner.queues[m->queue].name) == 0 &&
            strcmp(redundant[i].flags, m->inner.flag_groups[m->group].name) == 0)
            return true;
    return false;
}

/* What is dropped, wherever a program has a queue and flags of these names. */
struct damage {
    enum mutation mutation;
    const char *queue, *flags;
    uint32_t tried, found; /* shapes */
    uint64_t seeds;        /* at most until it was found */
};

#define DAMAGES_MAX 128

struct board {
    struct damage rows[DAMAGES_MAX];
    uint32_t count, harmless;
};

static struct damage *find_row(struct board *b, const struct mutant *m)
{
    const char *queue = m->inner.queues[m->queue].name, *flags = m->inner.flag_groups[m->group].name;
    struct damage *d = b->rows;

    for (; d < b->rows + b->count; d++)
        if (d->mutation == m->mutation && strcmp(d->queue, queue) == 0 && strcmp(d->flags, flags) == 0)
            return d;
    ck_assert_uint_lt(b->count++, DAMAGES_MAX);
    *d = (struct damage){.mutation = m->mutation, .queue = queue, .flags = flags};
    return d;
}

static void try_mutant(const struct kernel *k, const struct problem *problem, struct mutant *m, struct board *b)
{
    static struct verify_report report;
    static struct run_result r;
    struct problem global = k->global(problem, m->inner.world);
    struct program p;
    struct damage *d;
    uint64_t seed;
    bool refused;

    if (!mutant_applies(m))
        return;
    p = mutant_program(m);
    refused = verify_program(&p, &global, 1024, &report) < 0;
    if (!refused || is_redundant(k, m)) {
        seed = find_failure(k, problem, &p, HARMLESS_SEEDS, &r);
        ck_assert_msg(seed == 0, "%s without waits of queue %s for %s: fails with seed %lu: %s", k->name,
                      m->inner.queues[m->queue].name, m->inner.flag_groups[m->group].name, (unsigned long)seed,
                      r.report);
        b->harmless++;
        return;
    }
    d = find_row(b, m);
    d->tried++;
    seed = find_failure(k, problem, &p, SEEDS_MAX, &r);
    d->found += seed > 0;
    d->seeds = seed > d->seeds ? seed : d->seeds;
}

static void try_program(const struct kernel *k, const struct problem *problem, const struct program *inner,
                        struct board *b)
{
    struct mutant m = {.inner = *inner, .buffer = UINT32_MAX};

    for (m.mutation = DROP_WAIT; m.mutation <= EARLY_REUSE; m.mutation++)
        for (m.queue = 0; m.queue < inner->queue_count; m.queue++)
            for (m.group = 0; m.group < inner->flag_group_count; m.group++)
                try_mutant(k, problem, &m, b);
}

/* Returns how many damages no seed has shown at some shape. */
static uint32_t report_board(const char *name, const struct board *b)
{
    uint32_t tried = 0, missed = 0;
    uint64_t most = 0;

    for (const struct damage *d = b->rows; d < b->rows + b->count; d++) {
        most = d->seeds > most ? d->seeds : most;
        tried += d->tried;
        missed += d->found < d->tried;
        if (d->found < d->tried)
            printf("# %s: %s, queue %s, %s: found at %u of %u shapes\n", name, mutation_names[d->mutation], d->queue,
                   d->flags, d->found, d->tried);
    }
    printf("# %s: %u of %u kinds found, %u mutants, %lu seeds at most; %u harmless mutants passed\n", name,
           b->count - missed, b->count, tried, (unsigned long)most, b->harmless);
    fflush(stdout);
    return missed;
}

/* Whether data decide how much work there is.  A damaged program of that kind may read its work list too early,
 * which the ops answer with an assertion: that is a failure, but ends the test. */
static bool has_control_buffers(const struct program *p)
{
    return program_control_bytes(p) > 0;
}

START_TEST(dropped_waits_and_signals_are_found)
{
    static struct board board; /* a fork each: starts empty */
    const struct kernel *k = kernels[_i / 2];
    enum form form = _i % 2 ? FORM_UNFUSED : FORM_FUSED;
    char name[64];

    for (int i = 0; i < mutant_shape_count; i++) {
        struct program p;

        if (!mutant_shape_emit(k, form, &mutant_shapes[i], &machine, &p))
            continue;
        if (!has_control_buffers(&p))
            try_program(k, &mutant_shapes[i].problem, &p, &board);
        program_fini(&p);
    }
    snprintf(name, sizeof name, "%s %s", k->name, form == FORM_FUSED ? "fused" : "unfused");
    ck_assert_uint_eq(report_board(name, &board), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("explore");
    TCase *tc = tcase_create("explore");
    int kernel_count = 0;

    while (kernels[kernel_count])
        kernel_count++;
    tcase_set_timeout(tc, 600);
    tcase_add_checked_fixture(tc, open_machine, NULL);
    shard_add_loop_test(tc, accepted_programs_pass, 2 * kernel_count);
    tcase_add_test(tc, a_seed_repeats_its_failure);
    shard_add_loop_test(tc, dropped_waits_and_signals_are_found, 2 * kernel_count);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
