#include "backends/net/way.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/net/bootstrap_relay.h"
#include "backends/net/mesh.h"
#include "backends/net/way_transport.h"
#include "core/clock.h"

#define SETUP_TIMEOUTS 3  /* that the others may take longer to come to the beginning */
#define END_NS 2000000000 /* that ending may take when the run has failed already */
#define JOIN_NS 200000

uint32_t way_ranks_here(const struct job *job, uint32_t *first_out)
{
    struct world w = job->program->world;

    *first_out = job->nodes ? job->nodes->node * w.gpus_per_node : 0;
    return job->nodes ? w.gpus_per_node : world_ranks(w);
}

bool way_is_across(const struct way *w)
{
    return w->nodes.ops != NULL;
}

bool way_is_alone(const struct way *w)
{
    return !way_is_across(w) && w->transport->in_process;
}

uint64_t way_memory_bytes(const struct job *job, uint64_t depth)
{
    uint32_t first;
    uint64_t here = way_ranks_here(job, &first), world = world_ranks(job->program->world);
    uint64_t endpoint = sizeof(struct endpoint) + world * sizeof(struct endpoint_peer) + depth * 128;

    /* The mesh exchanges an address for each pair of ranks. */
    return here * endpoint + (job->nodes ? (here * world + world * world) * sizeof(struct endpoint_address) : 0);
}

/* ---- open and close ---- */

static bool is_stopped(const struct way *w)
{
    const volatile sig_atomic_t *interrupted = w->config.job->interrupted;

    return (interrupted && *interrupted) || w->config.stopped(w->config.owner);
}

static bool is_late(const struct way *w)
{
    return w->meet_by_ns > 0 && clock_now_ns() > w->meet_by_ns;
}

/* From now on the others are waited for: what was done before is no time of theirs. */
static void begin_waiting(struct way *w)
{
    w->meet_by_ns = w->met ? 0 : clock_now_ns() + w->config.timeout_ps / 1000 * SETUP_TIMEOUTS;
}

static bool gives_up(void *way)
{
    return is_stopped(way) || is_late(way);
}

static enum status join_nodes(struct way *w, char why[WAY_WHY_BYTES])
{
    const struct node_link *nodes = w->config.job->nodes;
    enum status st = nodes ? bootstrap_relay_open(&w->nodes, nodes, gives_up, w) : ST_OK;

    if (st < 0)
        snprintf(why, WAY_WHY_BYTES, "%s", w->nodes.error);
    return st;
}

enum status way_open(struct way *w, const struct way_config *c, char why[WAY_WHY_BYTES])
{
    *w = (struct way){.config = *c};
    w->rank_count = way_ranks_here(c->job, &w->first_rank);
    w->endpoints = calloc(w->rank_count, sizeof *w->endpoints);
    pthread_mutex_init(&w->lock, NULL);
    if (!w->endpoints) {
        snprintf(why, WAY_WHY_BYTES, "%s: no memory for the way between nodes", c->backend);
        return ST_MEMORY;
    }
    TRY(join_nodes(w, why));
    return way_choose_transport(w, why);
}

enum status way_endpoint(struct way *w, uint32_t place, const struct net_memory *window, const struct net_memory *flags,
                         char why[WAY_WHY_BYTES])
{
    struct world world = w->config.job->program->world;
    struct endpoint_config c = {
        .index = w->first_rank + place,
        .peers = world_ranks(world),
        .window = *window,
        .flags = *flags,
        .depth = w->config.depth,
        .timeout_ps = w->config.timeout_ps / 2, /* before the run ends: the transport can say which peer it is */
        .options = w->transport_options,
    };
    char node[ENDPOINT_NAME_BYTES - 24], text[512];
    enum status st;

    node_link_describe(w->config.job->nodes, world_node(world, c.index), node, sizeof node);
    snprintf(c.name, sizeof c.name, "rank %u, %s", c.index, node);
    st = endpoint_open(w->transport, &c, &w->endpoints[place], text, sizeof text);
    if (st < 0)
        snprintf(why, WAY_WHY_BYTES, "%s: %s", c.name, text);
    return st;
}

static void *close_endpoints(void *way)
{
    struct way *w = way;

    for (uint32_t i = 0; i < w->rank_count; i++) {
        endpoint_close(w->endpoints[i]);
        w->endpoints[i] = NULL;
    }
    return NULL;
}

void way_drop_endpoints(struct way *w)
{
    close_endpoints(w);
}

void way_close(struct way *w)
{
    if (!w->endpoints)
        return;
    way_run_bounded(w, close_endpoints, w);
    if (w->stuck)
        return;
    free(w->endpoints);
    free(w->transport_options);
    bootstrap_close(&w->nodes);
    pthread_mutex_destroy(&w->lock);
    *w = (struct way){0};
}

/* Looks now and then: a join with a limit would take it from the clock of the day, which may be set meanwhile. */
static bool join_until(pthread_t thread, uint64_t until_ns)
{
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        if (clock_now_ns() > until_ns)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = JOIN_NS}, NULL);
    }
    return true;
}

void way_run_bounded(struct way *w, void *(*fn)(void *arg), void *arg)
{
    uint64_t limit_ns = END_NS + (is_stopped(w) ? 0 : w->config.timeout_ps / 1000);
    pthread_t thread;

    if (w->stuck)
        return;
    if (pthread_create(&thread, NULL, fn, arg) != 0)
        fn(arg);
    else
        w->stuck = !join_until(thread, clock_now_ns() + limit_ns);
}

/* ---- other nodes ---- */

/* Under the lock. */
static enum status tell_nodes(struct way *w, enum status st, char why[WAY_WHY_BYTES])
{
    if (st == ST_INTERRUPTED && is_stopped(w))
        return st;
    if (st == ST_INTERRUPTED) {
        snprintf(why, WAY_WHY_BYTES, "another node's process did not come to the beginning of the run");
        return ST_HANG;
    }
    snprintf(why, WAY_WHY_BYTES, "%s", w->nodes.error[0] ? w->nodes.error : "no memory for the addresses");
    return st;
}

/* What broke is an endpoint's error or the bootstrap's. */
static enum status tell_connect(struct way *w, enum status st, char why[WAY_WHY_BYTES])
{
    for (uint32_t i = 0; i < w->rank_count; i++)
        if (endpoint_error(w->endpoints[i])[0]) {
            snprintf(why, WAY_WHY_BYTES, "rank %u: %s", w->first_rank + i, endpoint_error(w->endpoints[i]));
            return st;
        }
    return tell_nodes(w, st, why);
}

/* All nodes are here. */
static enum status connect_here(struct way *w)
{
    for (uint32_t i = 0; i < w->rank_count; i++)
        for (uint32_t peer = 0; peer < w->rank_count; peer++) {
            struct endpoint_address a;

            if (world_same_node(w->config.job->program->world, i, peer))
                continue;
            TRY(endpoint_address(w->endpoints[peer], i, &a));
            TRY(endpoint_connect(w->endpoints[i], peer, &a));
        }
    return ST_OK;
}

enum status way_connect(struct way *w, char why[WAY_WHY_BYTES])
{
    enum status st;

    begin_waiting(w);
    st = way_is_across(w) ? mesh_connect(w->endpoints, w->rank_count, &w->nodes) : connect_here(w);
    return st < 0 ? tell_connect(w, st, why) : ST_OK;
}

enum status way_agree(struct way *w, bool *all, char why[WAY_WHY_BYTES])
{
    bool *everybody = calloc(w->nodes.size + 1, sizeof *everybody), mine = *all;
    enum status st = ST_MEMORY;

    begin_waiting(w);
    if (everybody && way_is_across(w))
        st = bootstrap_allgather(&w->nodes, &mine, sizeof mine, everybody);
    else if (everybody)
        st = ST_OK;
    for (uint32_t i = 0; st >= 0 && i < w->nodes.size; i++)
        *all = *all && everybody[i];
    free(everybody);
    return st < 0 ? tell_nodes(w, st, why) : st;
}

enum status way_meet(struct way *w, char why[WAY_WHY_BYTES])
{
    enum status st;

    if (!way_is_across(w))
        return ST_OK;
    pthread_mutex_lock(&w->lock);
    begin_waiting(w);
    st = bootstrap_barrier(&w->nodes);
    if (st < 0)
        st = tell_nodes(w, st, why);
    w->met = true;
    pthread_mutex_unlock(&w->lock);
    return st;
}

enum status way_check(struct way *w, char why[WAY_WHY_BYTES])
{
    enum status st = ST_OK;

    if (!way_is_across(w) || pthread_mutex_trylock(&w->lock) != 0)
        return ST_OK; /* who holds it will notice */
    st = bootstrap_relay_check(&w->nodes);
    if (st < 0)
        st = tell_nodes(w, st, why);
    pthread_mutex_unlock(&w->lock);
    return st;
}

/* ---- which flags puts from other nodes raise ---- */

static bool look_at_task(const struct program *p, uint32_t first, uint32_t count, uint32_t from, const struct task *t,
                         way_put_fn *fn, void *arg)
{
    for (uint32_t i = 0; t->op == OP_PUT && i < t->signal_count; i++) {
        uint32_t to = t->signals[i].rank;

        if (to != RANK_NODE && to - first < count && !world_same_node(p->world, from, to) &&
            !fn(arg, from, t, &t->signals[i]))
            return false;
    }
    return true;
}

bool way_each_put(const struct program *p, uint32_t first, uint32_t count, way_put_fn *fn, void *arg)
{
    struct task t;

    for (uint32_t rank = 0; rank < world_ranks(p->world); rank++)
        for (uint32_t q = 0; q < p->queue_count; q++)
            for (uint64_t i = 0; i < program_queue_length(p, rank, q); i++) {
                program_task(p, rank, q, i, &t);
                if (!look_at_task(p, first, count, rank, &t, fn, arg))
                    return false;
            }
    return true;
}
