#include "core/run/plan.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/verify/prove.h"

#define GIB (1024.0 * 1024 * 1024)

bool point_is_baseline(const struct point *p)
{
    return p->program == PROGRAM_NCCL || p->program == PROGRAM_STREAMS;
}

bool run_unit_skipped(const struct run_unit *u)
{
    if (!point_is_baseline(u->point))
        return false;
    return !u->backend->baseline || (u->result && u->result->status == ST_UNSUPPORTED);
}

/* A program that no such GPU can hold would be simulated as willingly as any other. */
static enum status fit_on_gpu(const struct machine *m, const struct program *p, struct complaint *c)
{
    uint64_t bytes = program_window_bytes(p);

    if (bytes <= m->gpu.memory_bytes)
        return ST_OK;
    return complain(c, "",
                    "the buffers of this program take %.4g GB of each GPU; expected at most the %.4g GB that an %s has",
                    (double)bytes / 1e9, (double)m->gpu.memory_bytes / 1e9, m->gpu.model);
}

enum status run_unit_emit(const struct run_unit *u, struct program *p, struct complaint *c)
{
    const struct point *point = u->point;
    enum status st;

    memset(p, 0, sizeof *p);
    memset(c, 0, sizeof *c);
    TRY(point->kernel->emit(&u->problem, point->world, point->machine,
                            point->program == PROGRAM_FUSED ? FORM_FUSED : FORM_UNFUSED, point->params, p, c));
    st = fit_on_gpu(point->machine, p, c);
    if (st < 0)
        program_fini(p);
    return st;
}

struct job run_unit_job(const struct run_unit *u, const struct program *p)
{
    return (struct job){
        .program = p,
        .kernel = u->point->kernel,
        .problem = &u->problem,
        .machine = u->point->machine,
        .world = u->point->world,
        .timing = u->timing,
        .options = u->options,
        .seed = u->point->seed,
        .data = u->data,
        .nodes = u->nodes,
    };
}

static enum status refuse_memory(const struct scenario *s, const struct run_unit *u, uint64_t available)
{
    const struct point *p = u->point;
    char text[PROBLEM_TEXT_BYTES];

    log_error("%s: %s %s, %s on %u x %u GPUs%s needs up to %.2f GiB of memory (%llu "
              "bytes), %.2f GiB are available: make the problem or the world smaller",
              s->path, p->kernel->name, p->variant, problem_text(p->kernel->family, &u->problem, text), p->world.nodes,
              p->world.gpus_per_node, u->data ? ", checked with real data," : "", (double)u->memory_bytes / GIB,
              (unsigned long long)u->memory_bytes, (double)available / GIB);
    return ST_MEMORY;
}

/* Emits the unit's program to see that it can be, and asks the backend for an estimate. */
enum status run_unit_plan(const struct scenario *s, struct run_unit *u, uint64_t available)
{
    struct complaint c;
    struct program program;
    struct job job;
    enum status st;

    if (point_is_baseline(u->point))
        return ST_OK;
    st = run_unit_emit(u, &program, &c);
    if (st < 0) {
        scenario_complain(s, u->point, &c);
        return st;
    }
    job = run_unit_job(u, &program);
    u->memory_bytes = u->backend->memory_bytes(&job);
    u->tasks = program_task_count(&program);
    program_fini(&program);
    return u->memory_bytes > available ? refuse_memory(s, u, available) : ST_OK;
}

bool point_same_problem(const struct point *a, const struct point *b)
{
    return a->kernel == b->kernel && a->machine == b->machine &&
           problem_equal(a->kernel->family, &a->problem, &b->problem) && a->world.nodes == b->world.nodes &&
           a->world.gpus_per_node == b->world.gpus_per_node && a->timing.mode == b->timing.mode &&
           a->timing.launch == b->timing.launch && a->seed == b->seed;
}

bool point_same_program(const struct point *a, const struct point *b)
{
    return a->kernel == b->kernel && a->world.nodes == b->world.nodes &&
           a->world.gpus_per_node == b->world.gpus_per_node && a->program == b->program && a->machine == b->machine &&
           memcmp(a->params, b->params, a->kernel->params_size) == 0;
}

/* The same program for the same world needs one check, however many points time it. */
static bool is_checked(const struct run_plan *plan, const struct point *p)
{
    for (uint64_t i = 0; i < plan->check_count; i++)
        if (point_same_program(plan->checks[i].point, p))
            return true;
    return false;
}

static void plan_checks(const struct scenario *s, const struct node_link *nodes, struct run_plan *plan)
{
    for (uint64_t i = 0; s->check.wanted && i < s->point_count; i++) {
        const struct point *p = &s->points[i];

        if (point_is_baseline(p) || is_checked(plan, p))
            continue;
        plan->checks[plan->check_count++] = (struct run_unit){
            .point = p,
            .problem = s->check.problem,
            .backend = s->check.backend,
            .options = s->check_options,
            .timing = {.mode = TIMING_PIPELINED, .iterations = s->check.epochs},
            .data = true,
            .nodes = nodes,
        };
    }
}

static void plan_points(const struct scenario *s, const struct node_link *nodes, struct run_plan *plan)
{
    for (uint64_t i = 0; i < s->point_count; i++) {
        const struct point *p = &s->points[i];

        plan->points[plan->point_count++] = (struct run_unit){
            .point = p,
            .problem = p->problem,
            .backend = s->backend,
            .options = s->backend_options,
            .timing = p->timing,
            .nodes = nodes,
        };
    }
}

/* ---- proofs ---- */

static struct run_unit *find_proof(struct run_plan *plan, const struct run_unit *u)
{
    for (uint64_t i = 0; i < plan->proof_count; i++)
        if (point_same_program(plan->proofs[i].point, u->point) &&
            problem_equal(u->point->kernel->family, &plan->proofs[i].problem, &u->problem))
            return &plan->proofs[i];
    return NULL;
}

/* A program that is too large to prove is timed all the same, but said to be unproved. */
static void plan_proof(struct run_plan *plan, struct run_unit *u, uint64_t available)
{
    struct run_unit *proof = find_proof(plan, u);

    if (!proof && u->tasks > PLAN_PROVE_TASKS_MAX) {
        snprintf(u->unproved, sizeof u->unproved, "%llu tasks, more than %d", (unsigned long long)u->tasks,
                 PLAN_PROVE_TASKS_MAX);
        return;
    }
    if (!proof) {
        struct complaint c;
        struct program program;

        proof = &plan->proofs[plan->proof_count];
        *proof =
            (struct run_unit){.point = u->point, .problem = u->problem, .backend = &prove_backend, .tasks = u->tasks};
        if (run_unit_emit(proof, &program, &c) < 0)
            return; /* it was emitted a moment ago */
        if (prove_guards(&program) > PLAN_PROVE_GUARDS_MAX) {
            snprintf(u->unproved, sizeof u->unproved, "%llu reads behind flags by index, more than %d",
                     (unsigned long long)prove_guards(&program), PLAN_PROVE_GUARDS_MAX);
            program_fini(&program);
            return;
        }
        proof->memory_bytes = prove_backend.memory_bytes(&(struct job){.program = &program});
        program_fini(&program);
        if (proof->memory_bytes > available) {
            snprintf(u->unproved, sizeof u->unproved, "a proof needs up to %.1f GiB of memory",
                     (double)proof->memory_bytes / GIB);
            return;
        }
        plan->proof_count++;
    }
    u->proof = proof;
}

void run_unit_verified(const struct run_unit *u, char *out, size_t out_bytes)
{
    if (point_is_baseline(u->point))
        snprintf(out, out_bytes, "%s", "");
    else if (!u->proof)
        snprintf(out, out_bytes, "no: %s", u->unproved);
    else if (!u->proof->result)
        snprintf(out, out_bytes, "no: not asked for");
    else
        snprintf(out, out_bytes, "%s", u->proof->result->status >= 0 ? "yes" : "refused");
}

enum status run_plan_create(const struct scenario *s, uint64_t memory_bytes, const struct node_link *nodes,
                            struct run_plan *out)
{
    struct run_plan plan = {.scenario = s};
    enum status st = ST_OK;

    plan.proofs = calloc(s->point_count + 1, sizeof *plan.proofs);
    plan.checks = calloc(s->point_count + 1, sizeof *plan.checks);
    plan.points = calloc(s->point_count + 1, sizeof *plan.points);
    assert(plan.proofs && plan.checks && plan.points);
    plan_checks(s, nodes, &plan);
    plan_points(s, nodes, &plan);
    for (uint64_t i = 0; st >= 0 && i < plan.point_count; i++)
        st = run_unit_plan(s, &plan.points[i], memory_bytes);
    for (uint64_t i = 0; st >= 0 && i < plan.check_count; i++)
        st = run_unit_plan(s, &plan.checks[i], memory_bytes);
    for (uint64_t i = 0; st >= 0 && i < plan.point_count; i++)
        if (!point_is_baseline(plan.points[i].point))
            plan_proof(&plan, &plan.points[i], memory_bytes);
    if (st < 0)
        run_plan_destroy(&plan);
    else
        *out = plan;
    return st;
}

static void free_units(struct run_unit *units, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        free(units[i].result);
    free(units);
}

void run_plan_destroy(struct run_plan *plan)
{
    free_units(plan->proofs, plan->proof_count);
    free_units(plan->checks, plan->check_count);
    free_units(plan->points, plan->point_count);
    *plan = (struct run_plan){0};
}
