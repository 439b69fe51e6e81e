#include "backends/net/proxy.h"

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "backends/net/proxy_numa.h"
#include "core/clock.h"
#include "core/world.h"

#define BATCH 16          /* commands handed over together, completions taken together */
#define SPINS 200         /* rounds without anything to do, before the thread rests */
#define REST_MIN_NS 20000 /* a peer's put can come at any time, and is noticed late by as much */
#define REST_MAX_NS 500000
#define REST_LONG_NS 20000000 /* nothing can come but by a command */

struct flight {
    uint64_t id, started_ns;
};

struct lane {
    struct proxy_lane_config config;
    struct put waiting[BATCH]; /* taken, not started yet */
    uint32_t waiting_count;
    struct flight *flights; /* by the id that the endpoint is told */
    uint32_t *free;         /* ids */
    uint32_t free_count;
    uint64_t done[BATCH];
    uint32_t done_count;
};

struct proxy {
    struct proxy_config config;
    struct lane *lanes;
    struct proxy_counters counters;
    pthread_t thread;
    _Atomic uint64_t completed;
    _Atomic uint32_t failed_lane; /* lane_count: none */
    _Atomic int failed;           /* enum status */
    _Atomic bool closed, abandoned;
};

/* ---- one lane ---- */

static void take(struct lane *l)
{
    uint64_t now = 0; /* the clock is asked once for all that are there together */

    while (l->waiting_count < BATCH && l->free_count > 0) {
        struct put *p = &l->waiting[l->waiting_count];
        uint32_t flight;

        if (!l->config.source->take(l->config.owner, p))
            return;
        now = now ? now : clock_now_ns();
        flight = l->free[--l->free_count];
        l->flights[flight] = (struct flight){.id = p->id, .started_ns = now};
        p->id = flight;
        l->waiting_count++;
    }
}

/* Takes commands and starts what the endpoint accepts. */
static enum status start(struct proxy *p, struct lane *l, bool *moved)
{
    uint32_t started = 0, depth;
    enum status st;

    take(l);
    if (l->waiting_count == 0)
        return ST_OK;
    st = endpoint_put(l->config.endpoint, l->waiting, l->waiting_count, &started);
    depth = endpoint_pending(l->config.endpoint);
    for (uint32_t i = 0; i < started; i++) {
        p->counters.bytes += l->waiting[i].bytes;
        p->counters.depth_sum += depth - (started - 1 - i);
    }
    p->counters.puts += started;
    p->counters.depth_max = max_u64(p->counters.depth_max, started > 0 ? depth : 0);
    for (uint32_t i = started; i < l->waiting_count; i++)
        l->waiting[i - started] = l->waiting[i];
    l->waiting_count -= started;
    *moved |= started > 0;
    return st;
}

static enum status poll_lane(struct lane *l, bool *moved)
{
    enum status st = endpoint_poll(l->config.endpoint, l->done, BATCH, &l->done_count);

    *moved |= l->done_count > 0;
    return st;
}

static bool look(struct lane *l)
{
    return l->config.source->look && l->config.source->look(l->config.owner);
}

static void complete(struct proxy *p, struct lane *l)
{
    uint64_t now = l->done_count > 0 ? clock_now_ns() : 0;

    for (uint32_t i = 0; i < l->done_count; i++) {
        struct flight *f = &l->flights[l->done[i]];

        histogram_add(&p->counters.latency, now - f->started_ns);
        l->free[l->free_count++] = (uint32_t)l->done[i];
        l->config.source->complete(l->config.owner, f->id);
    }
    atomic_fetch_add_explicit(&p->completed, l->done_count, memory_order_relaxed);
    l->done_count = 0;
}

static bool on_its_way(const struct proxy *p)
{
    for (uint32_t i = 0; i < p->config.lane_count; i++)
        if (p->lanes[i].free_count < p->config.depth)
            return true;
    return false;
}

/* ---- the thread ---- */

static enum status fail(struct proxy *p, uint32_t lane, enum status st)
{
    atomic_store(&p->failed_lane, lane);
    atomic_store(&p->failed, st);
    return st;
}

/* Once around all lanes. */
static enum status turn(struct proxy *p, bool *moved)
{
    for (uint32_t i = 0; i < p->config.lane_count; i++) {
        enum status st = start(p, &p->lanes[i], moved);

        if (st >= 0)
            st = poll_lane(&p->lanes[i], moved);
        if (st < 0)
            return fail(p, i, st);
    }
    for (uint32_t i = 0; i < p->config.lane_count; i++)
        *moved |= look(&p->lanes[i]);
    for (uint32_t i = 0; i < p->config.lane_count; i++)
        complete(p, &p->lanes[i]);
    return ST_OK;
}

/* The longer nothing happens, the longer it sleeps. */
static void rest(const struct proxy *p, uint32_t idle, uint32_t heard)
{
    uint64_t ns = min_u64(REST_MIN_NS * (uint64_t)(idle - SPINS), REST_MAX_NS);

    if (idle <= SPINS)
        return;
    if (!p->config.rest)
        sched_yield();
    else
        p->config.rest->sleep(p->config.rest_owner, heard, p->config.alone && !on_its_way(p) ? REST_LONG_NS : ns);
}

static void *proxy_main(void *arg)
{
    struct proxy *p = arg;
    uint32_t idle = 0;

    pthread_setname_np(pthread_self(), PROXY_THREAD_NAME);
    proxy_numa_keep_to(p->config.numa_node);
    while (!atomic_load(&p->abandoned)) {
        bool closed = atomic_load(&p->closed), moved = false;
        uint32_t heard = p->config.rest ? p->config.rest->listen(p->config.rest_owner) : 0;

        if (turn(p, &moved) < 0)
            return NULL;
        idle = moved ? 0 : idle + 1;
        if (closed && !moved && !on_its_way(p))
            return NULL;
        rest(p, idle, heard);
    }
    return NULL;
}

/* ---- start and stop ---- */

static bool lane_init(struct lane *l, const struct proxy_lane_config *c, uint32_t depth)
{
    l->config = *c;
    l->flights = calloc(depth, sizeof *l->flights);
    l->free = calloc(depth, sizeof *l->free);
    if (!l->flights || !l->free)
        return false;
    while (l->free_count < depth) {
        l->free[l->free_count] = l->free_count;
        l->free_count++;
    }
    return true;
}

static void destroy(struct proxy *p)
{
    for (uint32_t i = 0; p->lanes && i < p->config.lane_count; i++) {
        free(p->lanes[i].flights);
        free(p->lanes[i].free);
    }
    free(p->lanes);
    free(p);
}

struct proxy *proxy_start(const struct proxy_config *c)
{
    struct proxy *p = calloc(1, sizeof *p);
    bool ok;

    if (!p)
        return NULL;
    p->config = *c;
    p->failed_lane = c->lane_count;
    p->lanes = calloc(c->lane_count, sizeof *p->lanes);
    ok = p->lanes != NULL;
    for (uint32_t i = 0; ok && i < c->lane_count; i++)
        ok = lane_init(&p->lanes[i], &c->lanes[i], c->depth);
    if (ok && pthread_create(&p->thread, NULL, proxy_main, p) == 0)
        return p;
    destroy(p);
    return NULL;
}

void proxy_stop(struct proxy *p, bool now, struct proxy_counters *counters)
{
    if (!p)
        return;
    atomic_store(now ? &p->abandoned : &p->closed, true);
    pthread_join(p->thread, NULL);
    if (counters)
        *counters = p->counters;
    destroy(p);
}

uint64_t proxy_completed(const struct proxy *p)
{
    return atomic_load_explicit(&p->completed, memory_order_relaxed);
}

/* In the reverse of fail()'s order: whoever sees the status finds the lane that it is of. */
enum status proxy_failed(const struct proxy *p, uint32_t *lane_out)
{
    enum status st = (enum status)atomic_load(&p->failed);

    *lane_out = atomic_load(&p->failed_lane);
    return st;
}
