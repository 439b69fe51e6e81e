/* The way between nodes: an endpoint for each rank of this process, one proxy that serves them all, and the
 * bootstrap where other nodes live in other processes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/fleet.h"
#include "backends/net/bootstrap_relay.h"
#include "backends/net/mesh.h"

#define SETUP_TIMEOUTS 3 /* that the others may take to come to the beginning */

static bool several_nodes(const struct fleet *f)
{
    return f->program->world.nodes > 1;
}

static bool across(const struct fleet *f)
{
    return f->nodes.ops != NULL;
}

uint64_t fleet_net_bytes(const struct job *job)
{
    const struct program *p = job->program;
    const struct cpu_options *o = job->options;
    uint32_t first;
    uint64_t here = fleet_ranks_here(job, &first), world = world_ranks(p->world);
    uint64_t rank = world * sizeof(struct endpoint_peer) + o->fifo * 128 +
                    p->flag_count * (sizeof(uint64_t) + 2 * sizeof(struct arrival));

    /* The mesh exchanges an address for each pair of ranks. */
    return here * (rank + sizeof(struct endpoint)) +
           (job->nodes ? (here * world + world * world) * sizeof(struct endpoint_address) : 0);
}

/* ---- which flags puts from other nodes raise ---- */

static bool add_arrival(struct rank *r, uint32_t flag)
{
    if ((r->arrival_count & (r->arrival_count - 1)) == 0) { /* full: twice as many */
        size_t room = r->arrival_count ? 2 * (size_t)r->arrival_count : 1;
        struct arrival *more = realloc(r->arrivals, room * sizeof *more);

        if (!more)
            return false;
        r->arrivals = more;
    }
    r->arrivals[r->arrival_count++] = (struct arrival){.flag = flag};
    return true;
}

static bool add_arrivals_of(struct fleet *f, uint32_t from, const struct task *t)
{
    for (uint32_t i = 0; t->op == OP_PUT && i < t->signal_count; i++) {
        uint32_t to = t->signals[i].rank;

        if (to != RANK_NODE && fleet_is_here(f, to) && !world_same_node(f->program->world, from, to) &&
            !add_arrival(fleet_rank(f, to), t->signals[i].flag))
            return false;
    }
    return true;
}

static bool find_arrivals(struct fleet *f)
{
    const struct program *p = f->program;
    struct task t;

    for (uint32_t rank = 0; rank < world_ranks(p->world); rank++)
        for (uint32_t q = 0; q < p->queue_count; q++)
            for (uint64_t i = 0; i < program_queue_length(p, rank, q); i++) {
                program_task(p, rank, q, i, &t);
                if (!add_arrivals_of(f, rank, &t))
                    return false;
            }
    return true;
}

/* ---- endpoints ---- */

static const struct transport *chosen_transport(const struct fleet *f, char *name, size_t name_bytes)
{
    const char *at = CPU_TRANSPORTS;

    for (uint32_t i = 0; i < f->options->transport; i++)
        at = strchr(at, '|') + 1;
    snprintf(name, name_bytes, "%.*s", (int)strcspn(at, "|"), at);
    return transport_find(name);
}

/* "reorder=true seed=7", over defaults; in one process puts overtake each other unless somebody says otherwise. */
static enum status read_options(struct fleet *f, const struct transport *t)
{
    const char *text = f->options->transport_options;
    char pair[OPTION_TEXT_BYTES], initial[OPTION_TEXT_BYTES], why[256];
    int used;

    f->transport_options = calloc(1, t->options_size + 1);
    if (!f->transport_options)
        return ST_MEMORY;
    option_defaults(t->options, f->transport_options);
    if (text[0] == 0 && t->in_process) {
        snprintf(initial, sizeof initial, "reorder=true seed=%" PRIu64, f->job->seed);
        text = initial;
    }
    for (; sscanf(text, " %63s%n", pair, &used) == 1; text += used) {
        char *value = strchr(pair, '=');
        const struct option *o;

        if (value)
            *value++ = 0;
        o = option_find(t->options, pair);
        if (!o || !value) {
            const char *near = option_nearest(t->options, pair);

            fleet_fail(f, STOP_NET, ST_INPUT,
                       "cpu.transport_options: transport %s has no option \"%s\"%s%s%s", t->name, pair,
                       near ? ": did you mean \"" : "", near ? near : "", near ? "\"?" : "");
            return ST_INPUT;
        }
        if (option_parse(o, f->transport_options, value, NULL, why, sizeof why) < 0) {
            fleet_fail(f, STOP_NET, ST_INPUT, "cpu.transport_options: %s %s: %s", pair, value, why);
            return ST_INPUT;
        }
    }
    return ST_OK;
}

static enum status open_endpoint(struct fleet *f, const struct transport *t, struct rank *r,
                                 struct endpoint **out)
{
    const struct program *p = f->program;
    struct endpoint_config c = {
        .index = r->index,
        .peers = world_ranks(p->world),
        .window = {.base = r->window, .bytes = program_window_bytes(p), .dmabuf = -1},
        .flags = {.base = r->put_flags, .bytes = p->flag_count * sizeof *r->put_flags, .dmabuf = -1},
        .depth = r->fifo.capacity,
        /* Before the watch ends the run: the transport can say which peer it is. */
        .timeout_ps = f->options->timeout_ps / 2 * TIMEOUT_SCALE,
        .options = f->transport_options,
    };
    char node[ENDPOINT_NAME_BYTES - 24], why[512];
    enum status st;

    fleet_describe_node(f, world_node(p->world, r->index), node, sizeof node);
    snprintf(c.name, sizeof c.name, "rank %u, %s", r->index, node);
    st = endpoint_open(t, &c, out, why, sizeof why);
    if (st < 0)
        fleet_fail(f, STOP_NET, st, "%s: %s", c.name, why);
    return st;
}

static enum status open_endpoints(struct fleet *f, const struct transport *t)
{
    for (uint32_t i = 0; i < f->rank_count; i++)
        TRY(open_endpoint(f, t, &f->ranks[i], &f->endpoints[i]));
    return ST_OK;
}

/* What broke is an endpoint's error or the bootstrap's. */
static enum status tell_broken(struct fleet *f, enum status st)
{
    if (st == ST_INTERRUPTED && f->job->interrupted && *f->job->interrupted)
        fleet_stop(f, STOP_INTERRUPTED);
    else if (st == ST_INTERRUPTED)
        fleet_fail(f, STOP_NET, ST_HANG, "another node's process did not come to the beginning of the run");
    for (uint32_t i = 0; i < f->rank_count; i++)
        if (endpoint_error(f->endpoints[i])[0])
            fleet_fail(f, STOP_NET, st, "rank %u: %s", f->ranks[i].index,
                       endpoint_error(f->endpoints[i]));
    fleet_fail(f, STOP_NET, st, "%s", f->nodes.error[0] ? f->nodes.error : "no memory for the addresses");
    return st;
}

/* All nodes are here. */
static enum status connect_here(struct fleet *f)
{
    for (uint32_t i = 0; i < f->rank_count; i++)
        for (uint32_t peer = 0; peer < f->rank_count; peer++) {
            struct endpoint_address a;

            if (world_same_node(f->program->world, i, peer))
                continue;
            TRY(endpoint_address(f->endpoints[peer], i, &a));
            TRY(endpoint_connect(f->endpoints[i], peer, &a));
        }
    return ST_OK;
}

/* ---- calls that may not return ---- */

#define END_S 2 /* that ending may take when the run has failed already */

/* Runs fn(f) in a thread, which is left behind when it takes too long: libfabric's shm waits for ever for a lock that a
 * peer held as it died.  A thread in somebody else's library cannot be ended, but the run has a report to give, and
 * its process ends then. */
static void run_bounded(struct fleet *f, void *(*fn)(void *fleet))
{
    uint64_t timeout_s = f->options->timeout_ps / 1000000000000 * TIMEOUT_SCALE;
    struct timespec until;
    pthread_t thread;

    if (f->stuck)
        return;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(fleet_stopped(f) ? END_S : timeout_s + END_S);
    if (pthread_create(&thread, NULL, fn, f) != 0)
        fn(f);
    else
        f->stuck = pthread_timedjoin_np(thread, NULL, &until) != 0;
}

/* ---- open and close ---- */

static bool gives_up(void *fleet)
{
    const struct fleet *f = fleet;

    return fleet_stopped(f) || (f->job->interrupted && *f->job->interrupted) ||
           (f->meet_by_ns > 0 && clock_now_ns() > f->meet_by_ns);
}

static enum status join_nodes(struct fleet *f)
{
    enum status st;

    if (!f->job->nodes)
        return ST_OK;
    st = bootstrap_relay_open(&f->nodes, f->job->nodes, gives_up, f);
    if (st < 0)
        fleet_fail(f, STOP_NET, st, "%s", f->nodes.error);
    return st;
}

static enum status choose_transport(struct fleet *f, const struct transport **out)
{
    char name[32];

    *out = chosen_transport(f, name, sizeof name);
    if (!*out) {
        fleet_fail(f, STOP_NET, ST_ENVIRONMENT,
                   "this mkernel was built without the transport %s: `mkernel list transports`", name);
        return ST_ENVIRONMENT;
    }
    if ((*out)->in_process && across(f)) {
        fleet_fail(f, STOP_NET, ST_INPUT,
                   "the transport %s stays inside one process, and this run has one a node: --transport ofi",
                   name);
        return ST_INPUT;
    }
    return read_options(f, *out);
}

enum status fleet_net_open(struct fleet *f)
{
    const struct transport *t;
    enum status st;

    if (!several_nodes(f))
        return ST_OK;
    TRY(join_nodes(f));
    f->meet_by_ns = clock_now_ns() + f->options->timeout_ps / 1000 * SETUP_TIMEOUTS * TIMEOUT_SCALE;
    TRY(choose_transport(f, &t));
    f->endpoints = calloc(f->rank_count, sizeof *f->endpoints);
    if (!f->endpoints || !find_arrivals(f)) {
        fleet_fail(f, STOP_NET, ST_MEMORY, "cpu: no memory for the way between nodes");
        return ST_MEMORY;
    }
    TRY(open_endpoints(f, t));
    st = across(f) ? mesh_connect(f->endpoints, f->rank_count, &f->nodes) : connect_here(f);
    return st < 0 ? tell_broken(f, st) : ST_OK;
}

static void *close_endpoints(void *fleet)
{
    struct fleet *f = fleet;

    for (uint32_t i = 0; i < f->rank_count; i++)
        endpoint_close(f->endpoints[i]);
    return NULL;
}

void fleet_net_close(struct fleet *f)
{
    if (f->endpoints)
        run_bounded(f, close_endpoints);
    if (f->stuck)
        return;
    free(f->endpoints);
    free(f->transport_options);
    bootstrap_close(&f->nodes);
}

/* ---- the proxy ---- */

static uint32_t hear(void *fleet)
{
    return bell_read(&((struct fleet *)fleet)->proxy_bell);
}

static void rest(void *fleet, uint32_t heard, uint64_t ns)
{
    bell_sleep(&((struct fleet *)fleet)->proxy_bell, heard, ns);
}

static const struct proxy_rest bell_rest = {.listen = hear, .sleep = rest};

enum status fleet_net_start(struct fleet *f)
{
    struct proxy_lane_config *lanes;

    if (!several_nodes(f))
        return ST_OK;
    lanes = calloc(f->rank_count, sizeof *lanes);
    for (uint32_t i = 0; lanes && i < f->rank_count; i++)
        lanes[i] = (struct proxy_lane_config){f->endpoints[i], &fifo_source, &f->ranks[i]};
    if (lanes)
        f->proxy = proxy_start(&(struct proxy_config){
            .lanes = lanes,
            .lane_count = f->rank_count,
            .depth = (uint32_t)f->options->fifo,
            .numa_node = -1, /* the workers' memory is wherever the workers are */
            .rest = &bell_rest,
            .rest_owner = f,
            .alone = !across(f) && f->endpoints[0]->transport->in_process,
        });
    free(lanes);
    if (f->proxy)
        return ST_OK;
    fleet_fail(f, STOP_NET, ST_ENVIRONMENT, "cpu: the system refused to start a proxy thread");
    return ST_ENVIRONMENT;
}

static void *stop_proxy(void *fleet)
{
    struct fleet *f = fleet;

    proxy_stop(f->proxy, fleet_stopped(f), &f->puts);
    return NULL;
}

void fleet_net_stop(struct fleet *f)
{
    if (!f->proxy)
        return;
    bell_ring(&f->proxy_bell);
    run_bounded(f, stop_proxy);
    if (f->stuck)
        fleet_fail(f, STOP_NET, ST_HANG, "the transport %s does not return from a call",
                   f->endpoints[0]->transport->name);
    else
        f->proxy = NULL;
}

/* ---- while it runs ---- */

/* Others may take their time, but notice themselves when they hang: waiting for them counts as checking. */
enum status fleet_net_meet(struct fleet *f)
{
    enum status st;

    if (!across(f))
        return ST_OK;
    atomic_fetch_add_explicit(&f->checking, 1, memory_order_relaxed);
    pthread_mutex_lock(&f->nodes_lock);
    st = bootstrap_barrier(&f->nodes);
    pthread_mutex_unlock(&f->nodes_lock);
    atomic_fetch_sub_explicit(&f->checking, 1, memory_order_relaxed);
    return st < 0 ? tell_broken(f, st) : ST_OK;
}

static enum status check_nodes(struct fleet *f)
{
    enum status st = ST_OK;

    if (!across(f) || pthread_mutex_trylock(&f->nodes_lock) != 0)
        return ST_OK; /* who holds it will notice */
    st = bootstrap_relay_check(&f->nodes);
    pthread_mutex_unlock(&f->nodes_lock);
    return st;
}

void fleet_net_check(struct fleet *f)
{
    enum status st;
    uint32_t lane;

    if (!f->proxy)
        return;
    st = proxy_failed(f->proxy, &lane);
    if (st < 0)
        fleet_fail(f, STOP_NET, st, "rank %u: %s", f->ranks[lane].index,
                   endpoint_error(f->endpoints[lane]));
    st = check_nodes(f);
    if (st < 0)
        fleet_fail(f, STOP_NET, st, "%s", f->nodes.error);
}
