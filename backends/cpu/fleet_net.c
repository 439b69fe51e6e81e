/* The way between nodes: an endpoint for each rank of this process, and one proxy that serves them all. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/cpu/fleet.h"

static bool several_nodes(const struct fleet *f)
{
    return f->program->world.nodes > 1;
}

uint64_t fleet_net_bytes(const struct job *job)
{
    const struct cpu_options *o = job->options;
    uint32_t first;

    return way_memory_bytes(job, o->fifo) + way_ranks_here(job, &first) * (uint64_t)job->program->flag_count *
                                                (sizeof(uint64_t) + 2 * sizeof(struct arrival));
}

/* ---- which flags puts from other nodes raise ---- */

static bool add_arrival(void *fleet, uint32_t from, const struct task *t, const struct signal *s)
{
    struct rank *r = fleet_rank(fleet, s->rank);

    (void)from, (void)t;
    if ((r->arrival_count & (r->arrival_count - 1)) == 0) { /* full: twice as many */
        size_t room = r->arrival_count ? 2 * (size_t)r->arrival_count : 1;
        struct arrival *more = realloc(r->arrivals, room * sizeof *more);

        if (!more)
            return false;
        r->arrivals = more;
    }
    r->arrivals[r->arrival_count++] = (struct arrival){.flag = s->flag};
    return true;
}

/* ---- open and close ---- */

static bool is_stopped(void *fleet)
{
    return fleet_stopped(fleet);
}

/* Passes on what the way has said, once.  Nothing where the run was stopped already: from outside, or by a reason that
 * counts before this one. */
static enum status tell(struct fleet *f, enum status st, const char *why)
{
    if (st == ST_INTERRUPTED)
        fleet_stop(f, STOP_INTERRUPTED);
    else if (st < 0)
        fleet_fail(f, STOP_NET, st, "%s", why);
    return st;
}

static enum status open_way(struct fleet *f, char why[WAY_WHY_BYTES])
{
    char loopback[OPTION_TEXT_BYTES]; /* in one process puts overtake each other unless somebody says otherwise */

    snprintf(loopback, sizeof loopback, "reorder=true seed=%" PRIu64, f->job->seed);
    return way_open(&f->way,
                    &(struct way_config){
                        .job = f->job,
                        .options = &f->options->way,
                        .backend = "cpu",
                        .loopback_text = loopback,
                        .depth = (uint32_t)f->options->fifo,
                        .timeout_ps = f->options->timeout_ps * TIMEOUT_SCALE,
                        .stopped = is_stopped,
                        .owner = f,
                    },
                    why);
}

static enum status open_endpoints(struct fleet *f, char why[WAY_WHY_BYTES])
{
    const struct program *p = f->program;

    for (uint32_t i = 0; i < f->rank_count; i++) {
        struct rank *r = &f->ranks[i];
        struct net_memory window = {.base = r->window, .bytes = program_window_bytes(p), .dmabuf = -1};
        struct net_memory flags = {.base = r->put_flags, .bytes = p->flag_count * sizeof *r->put_flags, .dmabuf = -1};

        TRY(way_endpoint(&f->way, i, &window, &flags, why));
    }
    return way_connect(&f->way, why);
}

enum status fleet_net_open(struct fleet *f)
{
    char why[WAY_WHY_BYTES] = "cpu: no memory for the way between nodes";
    enum status st;

    if (!several_nodes(f))
        return ST_OK;
    st = open_way(f, why);
    if (st >= 0)
        st = way_each_put(f->program, f->first_rank, f->rank_count, add_arrival, f) ? ST_OK : ST_MEMORY;
    if (st >= 0)
        st = open_endpoints(f, why);
    return tell(f, st, why);
}

void fleet_net_close(struct fleet *f)
{
    way_close(&f->way);
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
        lanes[i] = (struct proxy_lane_config){f->way.endpoints[i], &fifo_source, &f->ranks[i]};
    if (lanes)
        f->proxy = proxy_start(&(struct proxy_config){
            .lanes = lanes,
            .lane_count = f->rank_count,
            .depth = (uint32_t)f->options->fifo,
            .numa_node = -1, /* the workers' memory is wherever the workers are */
            .rest = &bell_rest,
            .rest_owner = f,
            .alone = way_is_alone(&f->way),
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
    way_run_bounded(&f->way, stop_proxy, f);
    if (f->way.stuck)
        fleet_fail(f, STOP_NET, ST_HANG, "the transport %s does not return from a call", f->way.transport->name);
    else
        f->proxy = NULL;
}

/* ---- while it runs ---- */

/* Others may take their time, but notice themselves when they hang: waiting for them counts as checking. */
enum status fleet_net_meet(struct fleet *f)
{
    char why[WAY_WHY_BYTES];
    enum status st;

    if (!several_nodes(f))
        return ST_OK;
    atomic_fetch_add_explicit(&f->checking, 1, memory_order_relaxed);
    st = way_meet(&f->way, why);
    atomic_fetch_sub_explicit(&f->checking, 1, memory_order_relaxed);
    return tell(f, st, why);
}

void fleet_net_check(struct fleet *f)
{
    char why[WAY_WHY_BYTES];
    enum status st;
    uint32_t lane;

    if (!f->proxy)
        return;
    st = proxy_failed(f->proxy, &lane);
    if (st < 0)
        fleet_fail(f, STOP_NET, st, "rank %u: %s", f->ranks[lane].index, endpoint_error(f->way.endpoints[lane]));
    tell(f, way_check(&f->way, why), why);
}
