/* Timers, latencies and the order of events; SimGrid (network.h) only says when a flow has drained.
 *
 * Everything that calls back goes through one heap, ordered by (time, flows first, number): a flow
 * enters it when it has drained, one latency ahead.  Latency is ours and not SimGrid's because CM02
 * shares a link by the inverse of the latency, and because only this way a sender's link is free
 * again as soon as the last byte has left it.
 *
 * SimGrid stops at every time at which the heap has something, by one alarm set for its head. */
#include "sim/engine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/log.h"
#include "core/world.h"
#include "sim/engine_check.h"
#include "sim/event_heap.h"
#include "sim/fluid.h"
#include "sim/network.h"

/* Timers come after all flows of the same time. */
#define ORDER_TIMER ((uint64_t)1 << 63)

/* A flow or timer until its callback.  Free records are chained through `next_free`. */
struct record {
    engine_fn *fn;
    void *arg;
    uint64_t a, b;
    uint64_t number;      /* flows: in order of their start */
    uint64_t earliest_ps; /* flows: not drained before; what the rate bound demands */
    uint64_t latency_ps;
    uint32_t next_free;
};

#define NO_RECORD UINT32_MAX

/* Beside a flow that somebody watches. */
struct watched {
    engine_fn *fn;
    void *arg;
    uint64_t a, b;
    struct engine_use use;
    uint32_t next_free;
};

struct port_state {
    double rate;
    uint64_t latency_ps;
    uint64_t bytes_out, bytes_in;
};

struct engine {
    enum engine_api api;
    uint64_t now_ps;
    uint64_t number; /* of the next flow or timer */
    uint64_t flow_count;
    uint64_t draining_count;
    struct event_heap heap;
    struct record *records;
    uint32_t record_capacity, first_free;
    struct port_state *ports;
    uint32_t port_count;
    struct engine_group *groups;
    uint32_t group_count;
    struct network *network; /* with SimGrid */
    struct fluid *fluid;     /* with ENGINE_FLUID */
    engine_watch_fn *watch;  /* NULL: nobody watches */
    void *watch_arg;
    struct watched *watched;
    uint32_t watched_capacity, first_free_watched;
    char model[64];
};

static void records_grow(struct engine *e)
{
    uint32_t first = e->record_capacity;

    assert(first < NO_RECORD / 2);
    e->record_capacity = first > 0 ? 2 * first : 1024;
    e->records = realloc(e->records, e->record_capacity * sizeof(e->records[0]));
    assert(e->records != NULL);
    for (uint32_t i = first; i < e->record_capacity; i++)
        e->records[i].next_free = i + 1 < e->record_capacity ? i + 1 : NO_RECORD;
    e->first_free = first;
}

static uint32_t record_new(struct engine *e, engine_fn *fn, void *arg, uint64_t a, uint64_t b)
{
    if (e->first_free == NO_RECORD)
        records_grow(e);
    uint32_t index = e->first_free;
    e->first_free = e->records[index].next_free;
    e->records[index] = (struct record){.fn = fn, .arg = arg, .a = a, .b = b, .number = e->number++};
    return index;
}

static void record_free(struct engine *e, uint32_t index)
{
    e->records[index].next_free = e->first_free;
    e->first_free = index;
}

static void schedule(struct engine *e, uint64_t time_ps, uint64_t order, uint32_t record)
{
    event_heap_push(&e->heap, (struct event){.time_ps = time_ps, .order = order, .record = record});
}

static void schedule_arrival(struct engine *e, uint64_t drained_ps, uint32_t index)
{
    const struct record *r = &e->records[index];

    schedule(e, max_u64(drained_ps, r->earliest_ps) + r->latency_ps, r->number, index);
}

static void flow_drained(void *arg, uint32_t flow)
{
    struct engine *e = arg;

    e->draining_count--;
    schedule_arrival(e, max_u64(network_now_ps(), e->now_ps), flow);
}

static void call_first(struct engine *e)
{
    struct event first = event_heap_pop(&e->heap);
    struct record r = e->records[first.record];

    e->now_ps = first.time_ps;
    record_free(e, first.record);
    r.fn(r.arg, r.a, r.b);
}

/* Calls back for all that is due, and has SimGrid stop where the rest begins. */
static void dispatch(void *arg, uint64_t now_ps)
{
    struct engine *e = arg;
    const struct event *first;

    while ((first = event_heap_first(&e->heap)) != NULL && first->time_ps <= now_ps)
        call_first(e);
    e->now_ps = max_u64(e->now_ps, now_ps);
    if (first != NULL)
        network_alarm(e->network, first->time_ps);
}

static void run_alone(struct engine *e)
{
    while (event_heap_first(&e->heap) != NULL)
        call_first(e);
}

/* From one time at which anything happens to the next: flows first, as with SimGrid. */
static void run_fluid(struct engine *e)
{
    for (;;) {
        const struct event *first = event_heap_first(&e->heap);
        uint64_t next_ps = fluid_next_ps(e->fluid, e->now_ps);
        uint32_t flow;

        if (first == NULL && next_ps == FLUID_NEVER)
            return;
        e->now_ps = first != NULL && first->time_ps < next_ps ? first->time_ps : next_ps;
        while (fluid_take(e->fluid, e->now_ps, &flow)) {
            e->draining_count--;
            schedule_arrival(e, e->now_ps, flow);
        }
        while ((first = event_heap_first(&e->heap)) != NULL && first->time_ps <= e->now_ps)
            call_first(e);
    }
}

static void copy_config(struct engine *e, const struct engine_config *config)
{
    e->ports = calloc(config->port_count + 1, sizeof(e->ports[0]));
    e->groups = calloc(config->group_count + 1, sizeof(e->groups[0]));
    assert(e->ports != NULL && e->groups != NULL);
    e->port_count = config->port_count;
    e->group_count = config->group_count;
    for (uint32_t i = 0; i < e->port_count; i++) {
        assert(config->ports[i].rate > 0);
        e->ports[i].rate = config->ports[i].rate;
        e->ports[i].latency_ps = config->ports[i].latency_ps;
    }
    for (uint32_t i = 0; i < e->group_count; i++) {
        e->groups[i] = config->groups[i];
        assert(e->groups[i].first_port + e->groups[i].port_count <= e->port_count);
    }
}

enum status engine_create(const struct engine_config *config, struct engine **out)
{
    struct engine_config chosen = *config;

    if (config->api != ENGINE_ALONE && config->api != ENGINE_FLUID)
        TRY(engine_check_api(config->api, &chosen.api));
    return engine_create_unchecked(&chosen, out);
}

enum status engine_create_unchecked(const struct engine_config *config, struct engine **out)
{
    struct engine *e = calloc(1, sizeof(*e));

    assert(e != NULL && config->api != ENGINE_AUTO);
    e->api = config->api;
    e->first_free = NO_RECORD;
    copy_config(e, config);
    if (e->api == ENGINE_FLUID) {
        e->fluid = fluid_create(config);
        snprintf(e->model, sizeof e->model, "events, max-min fair flows");
        *out = e;
        return ST_OK;
    }
    if (e->api == ENGINE_ALONE) {
        snprintf(e->model, sizeof e->model, "events, flows alone on their links");
        *out = e;
        return ST_OK;
    }
    e->network = network_create(config, (struct network_hooks){e, flow_drained, dispatch});
    if (e->network == NULL) {
        log_error("simgrid: no network model CM02");
        engine_destroy(e);
        return ST_ENVIRONMENT;
    }
    snprintf(e->model, sizeof e->model, "simgrid %s cm02, %s", network_version(),
             e->api == ENGINE_KERNEL ? "kernel actions" : "s4u");
    *out = e;
    return ST_OK;
}

void engine_after(struct engine *e, uint64_t delay_ps, engine_fn *fn, void *arg, uint64_t a, uint64_t b)
{
    assert(delay_ps < UINT64_MAX / 2 - e->now_ps);
    uint32_t index = record_new(e, fn, arg, a, b);
    schedule(e, e->now_ps + delay_ps, ORDER_TIMER | e->records[index].number, index);
}

struct engine_group engine_ports_of(const struct engine *e, uint32_t end)
{
    if (end == ENGINE_NO_PORT)
        return (struct engine_group){0, 0};
    if (end < e->port_count)
        return (struct engine_group){end, 1};
    assert(end - e->port_count < e->group_count);
    return e->groups[end - e->port_count];
}

/* Counts what passes, and returns the longest latency of the ports at both ends. */
static uint64_t pass_ports(struct engine *e, uint32_t src, uint32_t dst, uint64_t bytes)
{
    struct engine_group out = engine_ports_of(e, src), in = engine_ports_of(e, dst);
    uint64_t latency_ps = 0;

    for (uint32_t i = out.first_port; i < out.first_port + out.port_count; i++) {
        e->ports[i].bytes_out += bytes;
        latency_ps = max_u64(latency_ps, e->ports[i].latency_ps);
    }
    for (uint32_t i = in.first_port; i < in.first_port + in.port_count; i++) {
        e->ports[i].bytes_in += bytes;
        latency_ps = max_u64(latency_ps, e->ports[i].latency_ps);
    }
    return latency_ps;
}

static double slowest(const struct engine *e, uint32_t end, double rate)
{
    struct engine_group g = engine_ports_of(e, end);

    for (uint32_t i = g.first_port; i < g.first_port + g.port_count; i++)
        rate = rate == 0 || e->ports[i].rate < rate ? e->ports[i].rate : rate;
    return rate;
}

/* The slowest of its ports is a flow's pace when it shares with nobody. */
static uint64_t alone_ps(const struct engine *e, uint32_t src, uint32_t dst, uint64_t bytes)
{
    return network_round_ps((double)bytes * 1e12 / slowest(e, dst, slowest(e, src, 0)));
}

/* ---- watching ---- */

void engine_watch(struct engine *e, engine_watch_fn *fn, void *arg)
{
    e->watch = fn;
    e->watch_arg = arg;
    e->first_free_watched = NO_RECORD;
}

static void watched_grow(struct engine *e)
{
    uint32_t first = e->watched_capacity;

    e->watched_capacity = first > 0 ? 2 * first : 256;
    e->watched = realloc(e->watched, e->watched_capacity * sizeof(e->watched[0]));
    assert(e->watched != NULL);
    for (uint32_t i = first; i < e->watched_capacity; i++)
        e->watched[i].next_free = i + 1 < e->watched_capacity ? i + 1 : NO_RECORD;
    e->first_free_watched = first;
}

static void watched_arrived(void *arg, uint64_t index, uint64_t unused)
{
    struct engine *e = arg;
    struct watched w = e->watched[index];

    (void)unused;
    e->watched[index].next_free = e->first_free_watched;
    e->first_free_watched = (uint32_t)index;
    e->watch(e->watch_arg, &w.use);
    w.fn(w.arg, w.a, w.b);
}

/* The flow's own callback is put aside for watched_arrived(). */
static uint32_t watched_new(struct engine *e, const struct watched *w)
{
    if (e->first_free_watched == NO_RECORD)
        watched_grow(e);
    uint32_t index = e->first_free_watched;
    e->first_free_watched = e->watched[index].next_free;
    e->watched[index] = *w;
    return index;
}

void engine_flow(struct engine *e, uint32_t src, uint32_t dst, uint64_t bytes, double rate_bound, engine_fn *fn,
                 void *arg, uint64_t a, uint64_t b)
{
    assert(src != dst || (src < e->port_count && !e->network));
    assert(engine_ports_of(e, src).port_count <= 1 || engine_ports_of(e, dst).port_count <= 1);
    if (e->watch != NULL) {
        struct watched w = {fn, arg, a, b, {src, dst, bytes, e->now_ps}, 0};

        a = watched_new(e, &w);
        fn = watched_arrived;
        arg = e;
    }
    uint32_t index = record_new(e, fn, arg, a, b);
    struct record *r = &e->records[index];

    e->flow_count++;
    r->latency_ps = pass_ports(e, src, dst, bytes);
    r->earliest_ps = e->now_ps;
    if (rate_bound > 0)
        r->earliest_ps += network_round_ps((double)bytes * 1e12 / rate_bound);
    if (bytes == 0) {
        schedule_arrival(e, e->now_ps, index);
    } else if (e->api == ENGINE_ALONE) {
        schedule_arrival(e, e->now_ps + alone_ps(e, src, dst, bytes), index);
    } else if (e->api == ENGINE_FLUID) {
        e->draining_count++;
        fluid_start(e->fluid, e->now_ps, index, src, dst, bytes, rate_bound);
    } else {
        e->draining_count++;
        network_start(e->network, index, src, dst, bytes, rate_bound);
    }
}

void engine_count_out(struct engine *e, uint32_t port, uint64_t bytes)
{
    e->ports[port].bytes_out += bytes;
}

uint32_t engine_group_port(const struct engine *e, uint32_t group)
{
    assert(group < e->group_count);
    return e->port_count + group;
}

void engine_run(struct engine *e)
{
    if (e->api == ENGINE_ALONE) {
        run_alone(e);
    } else if (e->api == ENGINE_FLUID) {
        run_fluid(e);
    } else {
        dispatch(e, 0);
        network_run(e->network);
    }
    assert(e->draining_count == 0 && e->heap.count == 0);
}

uint64_t engine_now_ps(const struct engine *e)
{
    return e->now_ps;
}

uint64_t engine_flow_count(const struct engine *e)
{
    return e->flow_count;
}

uint64_t engine_port_bytes_out(const struct engine *e, uint32_t port)
{
    assert(port < e->port_count);
    return e->ports[port].bytes_out;
}

uint64_t engine_port_bytes_in(const struct engine *e, uint32_t port)
{
    assert(port < e->port_count);
    return e->ports[port].bytes_in;
}

const char *engine_model(const struct engine *e)
{
    return e->model;
}

void engine_destroy(struct engine *e)
{
    if (e == NULL)
        return;
    if (e->network != NULL)
        network_destroy(e->network);
    fluid_destroy(e->fluid);
    event_heap_fini(&e->heap);
    free(e->records);
    free(e->watched);
    free(e->ports);
    free(e->groups);
    free(e);
}
