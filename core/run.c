#include "core/run.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/child.h"
#include "core/log.h"

#define JOBS_MAX 256
#define TICK_MS  200 /* how often Ctrl-C, deadlines and progress are looked at */
#define GIB      (1024.0 * 1024 * 1024)

bool point_is_baseline(const struct point *p)
{
    return p->program == PROGRAM_NCCL || p->program == PROGRAM_STREAMS;
}

bool run_unit_skipped(const struct run_unit *u)
{
    return point_is_baseline(u->point) && !u->backend->baseline;
}

enum status status_worse(enum status a, enum status b)
{
    static const int precedence[] = {130, 1, 4, 2, 5, 3, 0};

    for (size_t i = 0; i < sizeof precedence / sizeof *precedence; i++) {
        if (status_exit_code(a) == precedence[i])
            return a;
        if (status_exit_code(b) == precedence[i])
            return b;
    }
    return a;
}

/* ---- planning ---- */

static enum status emit(const struct run_unit *u, struct program *p, struct complaint *c)
{
    const struct point *point = u->point;

    memset(p, 0, sizeof *p);
    memset(c, 0, sizeof *c);
    return point->kernel->emit(&u->problem, point->world, point->machine,
                               point->program == PROGRAM_FUSED ? FORM_FUSED : FORM_UNFUSED,
                               point->params, p, c);
}

static struct job unit_job(const struct run_unit *u, const struct program *p)
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
    };
}

static enum status refuse_memory(const struct scenario *s, const struct run_unit *u, uint64_t available)
{
    const struct point *p = u->point;

    log_error("%s: %s %s, m %llu n %llu k %llu on %u x %u GPUs%s needs up to %.2f GiB of memory (%llu "
              "bytes), %.2f GiB are available: make the problem or the world smaller",
              s->path, p->kernel->name, p->variant, (unsigned long long)u->problem.m,
              (unsigned long long)u->problem.n, (unsigned long long)u->problem.k, p->world.nodes,
              p->world.gpus_per_node, u->data ? ", checked with real data," : "",
              (double)u->memory_bytes / GIB, (unsigned long long)u->memory_bytes,
              (double)available / GIB);
    return ST_MEMORY;
}

/* Emits the unit's program to see that it can be, and asks the backend for an estimate. */
static enum status plan_unit(const struct scenario *s, struct run_unit *u, uint64_t available)
{
    struct complaint c;
    struct program   program;
    struct job       job;
    enum status      st;

    if (point_is_baseline(u->point))
        return ST_OK;
    st = emit(u, &program, &c);
    if (st < 0) {
        scenario_complain(s, u->point, &c);
        return st;
    }
    job = unit_job(u, &program);
    u->memory_bytes = u->backend->memory_bytes(&job);
    program_fini(&program);
    return u->memory_bytes > available ? refuse_memory(s, u, available) : ST_OK;
}

/* The same program for the same world needs one check, however many points time it. */
static bool same_program(const struct point *a, const struct point *b)
{
    return a->kernel == b->kernel && a->world.nodes == b->world.nodes &&
           a->world.gpus_per_node == b->world.gpus_per_node && a->program == b->program &&
           a->machine == b->machine && memcmp(a->params, b->params, a->kernel->params_size) == 0;
}

static bool is_checked(const struct run_plan *plan, const struct point *p)
{
    for (uint64_t i = 0; i < plan->check_count; i++)
        if (same_program(plan->checks[i].point, p))
            return true;
    return false;
}

static void plan_checks(const struct scenario *s, struct run_plan *plan)
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
        };
    }
}

static void plan_points(const struct scenario *s, struct run_plan *plan)
{
    for (uint64_t i = 0; i < s->point_count; i++) {
        const struct point *p = &s->points[i];

        plan->points[plan->point_count++] = (struct run_unit){
            .point = p,
            .problem = p->problem,
            .backend = s->backend,
            .options = s->backend_options,
            .timing = p->timing,
        };
    }
}

enum status run_plan_create(const struct scenario *s, uint64_t memory_bytes, struct run_plan *out)
{
    struct run_plan plan = {.scenario = s};
    enum status     st = ST_OK;

    plan.checks = calloc(s->point_count + 1, sizeof *plan.checks);
    plan.points = calloc(s->point_count + 1, sizeof *plan.points);
    assert(plan.checks && plan.points);
    plan_checks(s, &plan);
    plan_points(s, &plan);
    for (uint64_t i = 0; st >= 0 && i < plan.point_count; i++)
        st = plan_unit(s, &plan.points[i], memory_bytes);
    for (uint64_t i = 0; st >= 0 && i < plan.check_count; i++)
        st = plan_unit(s, &plan.checks[i], memory_bytes);
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
    free_units(plan->checks, plan->check_count);
    free_units(plan->points, plan->point_count);
    *plan = (struct run_plan){0};
}

/* ---- running ---- */

struct slot {
    struct child     child;
    struct run_unit *unit; /* NULL: free */
};

struct pool {
    const struct run_config *config;
    struct run_unit         *units;
    uint64_t                 count, next, finished;
    uint64_t                 memory_bytes; /* of the runs in progress */
    uint32_t                 running, slots_used;
    struct slot              slots[JOBS_MAX];
};

static void run_in_child(void *arg, struct run_result *r)
{
    const struct run_unit *u = arg;
    const struct point    *p = u->point;
    struct complaint       c;
    struct program         program = {0};
    struct job             job = unit_job(u, NULL);

    if (point_is_baseline(p)) {
        r->status = u->backend->baseline(
            &job, p->program == PROGRAM_NCCL ? BASELINE_NCCL : BASELINE_STREAMS, r);
        return;
    }
    r->status = emit(u, &program, &c); /* planning has seen it succeed */
    job.program = &program;
    if (r->status >= 0)
        r->status = u->backend->run(&job, r);
    program_fini(&program);
}

/* A run that fits waits only for runs that do not leave it room. */
static bool fits(const struct pool *p, const struct run_unit *u)
{
    if (p->running == 0)
        return true;
    if (p->running >= p->slots_used || (u->backend->exclusive && p->running > 0))
        return false;
    return p->memory_bytes + u->memory_bytes <= p->config->memory_bytes;
}

static enum status start_next(struct pool *p)
{
    struct run_unit   *u = &p->units[p->next];
    struct run_result *r = calloc(1, sizeof *r);
    struct slot       *slot = p->slots;
    enum status        st;

    assert(r);
    while (slot->unit)
        slot++;
    st = child_start(&slot->child, run_in_child, u, p->config->timeout_ns, r);
    if (st < 0) {
        free(r);
        return st;
    }
    u->result = r;
    slot->unit = u;
    p->memory_bytes += u->memory_bytes;
    p->running++;
    p->next++;
    return ST_OK;
}

static enum status start_what_fits(struct pool *p)
{
    while (p->next < p->count) {
        if (run_unit_skipped(&p->units[p->next])) {
            p->next++;
            p->finished++;
        } else if (fits(p, &p->units[p->next])) {
            TRY(start_next(p));
        } else {
            break;
        }
    }
    return ST_OK;
}

static void wait_for_some(struct pool *p)
{
    struct pollfd fds[JOBS_MAX];
    struct slot  *of[JOBS_MAX];
    nfds_t        n = 0;

    for (uint32_t i = 0; i < p->slots_used; i++) {
        if (!p->slots[i].unit)
            continue;
        of[n] = &p->slots[i];
        fds[n++] = (struct pollfd){.fd = p->slots[i].child.pipe, .events = POLLIN};
    }
    if (poll(fds, n, TICK_MS) < 0)
        return; /* a signal: the caller looks */
    for (nfds_t i = 0; i < n; i++) {
        bool late = child_clock_ns() >= of[i]->child.deadline_ns;

        if ((fds[i].revents || late) && child_step(&of[i]->child)) {
            p->memory_bytes -= of[i]->unit->memory_bytes;
            of[i]->unit = NULL;
            p->running--;
            p->finished++;
        }
    }
}

static void kill_all(struct pool *p)
{
    for (uint32_t i = 0; i < p->slots_used; i++) {
        if (!p->slots[i].unit)
            continue;
        child_kill(&p->slots[i].child);
        free(p->slots[i].unit->result);
        p->slots[i].unit->result = NULL;
        p->slots[i].unit = NULL;
    }
}

enum status run_units(struct run_unit *units, uint64_t count, const struct run_config *config)
{
    uint32_t    jobs = config->jobs < JOBS_MAX ? config->jobs : JOBS_MAX;
    struct pool p = {.config = config, .units = units, .count = count, .slots_used = jobs};
    enum status st = ST_OK;

    while (p.finished < count && st >= 0) {
        if (*config->interrupted)
            st = ST_INTERRUPTED;
        else
            st = start_what_fits(&p);
        if (st >= 0 && p.running > 0)
            wait_for_some(&p);
        if (config->progress)
            config->progress(config->arg, p.finished, count);
    }
    kill_all(&p);
    return st;
}
