#include "core/run/run.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/run/child.h"
#include "core/clock.h"
#include "core/log.h"

#define JOBS_MAX 256
#define TICK_MS 200 /* how often Ctrl-C, deadlines and progress are looked at */

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

struct slot {
    struct child child;
    struct run_unit *unit; /* NULL: free */
};

struct pool {
    const struct run_config *config;
    struct run_unit *units;
    uint64_t count, next, finished;
    uint64_t memory_bytes; /* of the runs in progress */
    uint32_t running, slots_used;
    struct slot slots[JOBS_MAX];
};

/* A run that failed leaves its trace all the same: it shows how far it came. */
static void run_traced(const struct run_unit *u, struct job *job, struct run_result *r)
{
    const struct trace_request *q = u->trace;
    struct trace_result written = {0};
    enum status st;

    r->status = q->format->open(job, u->backend->name, q->path, q->limit_bytes, &job->trace);
    if (r->status < 0)
        return;
    r->status = u->backend->run(job, r);
    st = q->format->close(job->trace, true, &written);
    r->trace = written;
    if (r->status >= 0 && st < 0)
        r->status = st;
}

void run_unit_execute(const struct run_unit *u, const struct node_link *nodes, struct run_result *r)
{
    const struct point *p = u->point;
    struct complaint c;
    struct program program = {0};
    struct job job = run_unit_job(u, NULL);

    if (nodes)
        job.nodes = nodes;
    if (point_is_baseline(p)) {
        r->status = u->backend->baseline(&job, p->program == PROGRAM_NCCL ? BASELINE_NCCL : BASELINE_STREAMS, r);
        return;
    }
    r->status = run_unit_emit(u, &program, &c); /* planning has seen it succeed */
    job.program = &program;
    job.interrupted = child_interrupt();
    if (r->status >= 0 && u->trace)
        run_traced(u, &job, r);
    else if (r->status >= 0)
        r->status = u->backend->run(&job, r);
    program_fini(&program);
}

static void run_in_child(void *arg, struct run_result *r)
{
    run_unit_execute(arg, NULL, r);
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
    struct run_unit *u = &p->units[p->next];
    struct run_result *r = calloc(1, sizeof *r);
    struct slot *slot = p->slots;
    enum status st;

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
    struct slot *of[JOBS_MAX];
    nfds_t n = 0;

    for (uint32_t i = 0; i < p->slots_used; i++) {
        if (!p->slots[i].unit)
            continue;
        of[n] = &p->slots[i];
        fds[n++] = (struct pollfd){.fd = p->slots[i].child.pipe, .events = POLLIN};
    }
    if (poll(fds, n, TICK_MS) < 0)
        return; /* a signal: the caller looks */
    for (nfds_t i = 0; i < n; i++) {
        bool late = clock_now_ns() >= of[i]->child.deadline_ns;

        if ((fds[i].revents || late) && child_step(&of[i]->child)) {
            p->memory_bytes -= of[i]->unit->memory_bytes;
            of[i]->unit = NULL;
            p->running--;
            p->finished++;
        }
    }
}

static void drop_result(struct slot *s)
{
    free(s->unit->result);
    s->unit->result = NULL;
    s->unit = NULL;
}

/* A screen is enough: the first run that says where it stood speaks for all. */
static void say_where(const struct run_unit *u, bool *said)
{
    const struct run_result *r = u->result;

    if (*said || r->status != ST_INTERRUPTED || !r->report[0])
        return;
    *said = true;
    fprintf(stderr, "%s %s: %s", u->point->kernel->name, u->point->variant, r->report);
}

/* All are asked first, so that they stop side by side. */
static void stop_all(struct pool *p)
{
    bool said = false;

    for (uint32_t i = 0; i < p->slots_used; i++)
        if (p->slots[i].unit)
            child_stop(&p->slots[i].child);
    for (uint32_t i = 0; i < p->slots_used; i++) {
        struct slot *s = &p->slots[i];

        if (!s->unit)
            continue;
        while (!child_step(&s->child))
            poll(&(struct pollfd){.fd = s->child.pipe, .events = POLLIN}, 1, TICK_MS);
        say_where(s->unit, &said);
        drop_result(s);
    }
}

enum status run_units(struct run_unit *units, uint64_t count, const struct run_config *config)
{
    uint32_t jobs = config->jobs < JOBS_MAX ? config->jobs : JOBS_MAX;
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
    stop_all(&p);
    return st;
}
