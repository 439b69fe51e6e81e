/* The way between the nodes of a rig: a proxy a rank, near its GPU.  GPUs of one process reach each other through its
 * copy engines (loopback.h).  Network transports are given the windows where they reach a GPU's memory on all nodes
 * (rig_direct.c), else pinned memory (stage.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/cuda/loopback.h"
#include "backends/cuda/rig.h"
#include "backends/net/proxy.h"
#include "core/clock.h"

#define PUTS_UNDER_WAY 256 /* of a rank */
#define AWAIT_US 100

static bool several_nodes(const struct rig *r)
{
    return r->program->world.nodes > 1;
}

uint64_t rig_net_bytes(const struct job *job)
{
    uint32_t first;

    const struct cuda_options *o = job->options;
    uint64_t sum = way_memory_bytes(job, PUTS_UNDER_WAY), stages;

    if (o->way.transport == 0)
        return sum;
    if (__builtin_mul_overflow(way_ranks_here(job, &first), program_window_bytes(job->program), &stages) ||
        __builtin_add_overflow(sum, stages, &sum))
        return UINT64_MAX;
    return sum;
}

/* ---- what breaks ---- */

static enum status check_proxy(const struct rig *r, uint32_t place)
{
    const struct rig_rank *rank = &r->ranks[place];
    uint32_t lane;
    enum status st = rank->proxy ? proxy_failed(rank->proxy, &lane) : ST_OK;

    return st == ST_OK && stage_error(&rank->stage) != cudaSuccess ? ST_ENVIRONMENT : st;
}

static bool is_ending(void *rig)
{
    const struct rig *r = rig;
    bool ending = r->ending;

    for (uint32_t i = 0; i < r->rank_count; i++)
        ending = ending || check_proxy(r, i) < 0;
    return ending;
}

static enum status check_proxies(struct rig *r)
{
    for (uint32_t i = 0; i < r->rank_count; i++) {
        enum status st = check_proxy(r, i);
        cudaError_t error = stage_error(&r->ranks[i].stage);

        if (st < 0)
            return rig_fail(r, st, "rank %" PRIu32 ": %s%s", r->ranks[i].index,
                            error == cudaSuccess ? "" : "a put's copy: ",
                            error == cudaSuccess ? endpoint_error(r->way.endpoints[i]) : cudaGetErrorString(error));
    }
    return ST_OK;
}

/* Passes on what the way has said. */
static enum status tell(struct rig *r, enum status st, const char *why)
{
    if (st >= 0)
        return st;
    if (st == ST_INTERRUPTED && !is_ending(r))
        return rig_fail(r, st, "cuda: interrupted before epoch %" PRIu64, r->epoch + 1);
    r->broken = r->epoch > 0;
    return st == ST_INTERRUPTED ? check_proxies(r) : rig_fail(r, st, "%s", why);
}

enum status rig_check_net(struct rig *r)
{
    char why[WAY_WHY_BYTES];
    enum status st;

    if (!several_nodes(r))
        return ST_OK;
    st = check_proxies(r);
    if (st == ST_OK)
        return tell(r, way_check(&r->way, why), why);
    r->broken = true;
    return st;
}

enum status rig_meet(struct rig *r)
{
    char why[WAY_WHY_BYTES];

    return several_nodes(r) ? tell(r, way_meet(&r->way, why), why) : ST_OK;
}

/* ---- open and close ---- */

static void memory_of(struct rig *r, struct rig_rank *rank, struct net_memory *window, struct net_memory *flags)
{
    *window = (struct net_memory){rank->window, program_window_bytes(r->program), true, -1, 0};
    *flags = (struct net_memory){
        .base = rank->put_flags, .bytes = r->program->flag_count * sizeof *rank->put_flags, .dmabuf = -1};
    if (r->reach == REACH_DIRECT)
        rig_direct_memory(r, rank, window, flags);
    if (r->reach == REACH_STAGED) {
        *window = stage_window(&rank->stage);
        *flags = stage_flags(&rank->stage);
    }
}

static enum status open_endpoints_by(struct rig *r, enum reach reach)
{
    char why[WAY_WHY_BYTES];
    struct net_memory window, flags;
    enum status st = ST_OK;

    r->reach = reach;
    for (uint32_t i = 0; i < r->rank_count && st == ST_OK; i++) {
        TRY_CUDA(r, cudaSetDevice(r->ranks[i].device->index));
        memory_of(r, &r->ranks[i], &window, &flags);
        st = way_endpoint(&r->way, i, &window, &flags, why);
    }
    return st < 0 ? rig_fail(r, st, "%s", why) : st;
}

/* All nodes go the same way, since who sends and who receives have to mean the same by a flag's value. */
static enum status open_endpoints(struct rig *r)
{
    char why[WAY_WHY_BYTES];
    bool direct;

    if (r->way.transport->in_process)
        return open_endpoints_by(r, REACH_COPIES);
    if (r->way.transport->gpu) {
        direct = rig_direct_possible(r) && open_endpoints_by(r, REACH_DIRECT) == ST_OK;
        TRY(tell(r, way_agree(&r->way, &direct, why), why));
        if (direct)
            return ST_OK;
        way_drop_endpoints(&r->way);
    }
    TRY(rig_open_stages(r, PUTS_UNDER_WAY));
    return open_endpoints_by(r, REACH_STAGED);
}

static int numa_node(const struct device *d)
{
    char address[32];

    return cudaDeviceGetPCIBusId(address, sizeof address, d->index) == cudaSuccess ? proxy_numa_of_pci(address) : -1;
}

static enum status start(struct rig *r, uint32_t place)
{
    struct rig_rank *rank = &r->ranks[place];
    struct proxy_lane_config lane = {r->way.endpoints[place], &put_fifo_source, &rank->fifo};
    struct put_fifo_config fifo = {
        .program = r->program,
        .rank = rank->index,
        .puts = r->lowered.puts[rank->index].items,
        .put_count = (uint32_t)r->lowered.puts[rank->index].count,
        .put_flags = rank->put_flags,
        .stage = r->reach == REACH_STAGED ? &rank->stage : NULL,
    };

    if (!put_fifo_configure(&rank->fifo, &fifo))
        return rig_fail(r, ST_MEMORY, "cuda: no memory for the puts of rank %" PRIu32, rank->index);
    rank->proxy = proxy_start(&(struct proxy_config){
        .lanes = &lane,
        .lane_count = 1,
        .depth = PUTS_UNDER_WAY,
        .numa_node = numa_node(rank->device),
        .alone = way_is_alone(&r->way),
    });
    if (!rank->proxy)
        return rig_fail(r, ST_ENVIRONMENT, "cuda: the system refused to start a proxy thread");
    return ST_OK;
}

static enum status open_way(struct rig *r)
{
    struct way_config c = {
        .job = r->job,
        .options = &r->options->way,
        .backend = "cuda",
        .loopback = &cuda_loopback_transport,
        .loopback_text = "",
        .depth = PUTS_UNDER_WAY,
        .timeout_ps = r->options->timeout_ps,
        .stopped = is_ending,
        .owner = r,
    };
    char why[WAY_WHY_BYTES];

    return tell(r, way_open(&r->way, &c, why), why);
}

enum status rig_open_net(struct rig *r)
{
    char why[WAY_WHY_BYTES];

    if (!several_nodes(r))
        return ST_OK;
    TRY(open_way(r));
    TRY(open_endpoints(r));
    return tell(r, way_connect(&r->way, why), why);
}

enum status rig_start_proxies(struct rig *r)
{
    for (uint32_t i = 0; several_nodes(r) && i < r->rank_count; i++)
        TRY(start(r, i));
    return ST_OK;
}

static uint64_t puts_finished(const struct rig *r)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < r->rank_count; i++)
        sum += __atomic_load_n(&r->ranks[i].fifo.finished, __ATOMIC_ACQUIRE);
    return sum;
}

/* A peer stays until all nodes have come to the end, so nobody comes there before his own puts are complete. */
enum status rig_await_puts(struct rig *r)
{
    uint64_t all = r->lowered.put_count * r->epoch, finished, last = 0, moved_ns = clock_now_ns();

    for (; (finished = puts_finished(r)) < all; usleep(AWAIT_US)) {
        uint64_t now = clock_now_ns();

        TRY(rig_check_net(r));
        if (r->job->interrupted && *r->job->interrupted)
            return rig_fail(r, ST_INTERRUPTED, "cuda: interrupted behind epoch %" PRIu64, r->epoch);
        moved_ns = finished > last ? now : moved_ns;
        last = finished;
        if (now - moved_ns <= r->options->timeout_ps / 1000)
            continue;
        r->broken = true;
        return rig_fail(r, ST_HANG, "%" PRIu64 " puts are not complete, and none has become so for the time-out",
                        all - finished);
    }
    return ST_OK;
}

static void *stop_proxies(void *rig)
{
    struct rig *r = rig;

    for (uint32_t i = 0; i < r->rank_count; i++) {
        struct proxy_counters c = {0};

        proxy_stop(r->ranks[i].proxy, true, &c);
        r->ranks[i].proxy = NULL;
        r->puts.depth_sum += c.depth_sum;
        r->puts.depth_max = max_u64(r->puts.depth_max, c.depth_max);
        histogram_merge(&r->puts.latency, &c.latency);
    }
    return NULL;
}

enum status rig_stop_proxies(struct rig *r)
{
    if (!r->way.endpoints || !r->ranks)
        return ST_OK;
    r->ending = true;
    way_run_bounded(&r->way, stop_proxies, r);
    if (!r->way.stuck || r->broken)
        return ST_OK;
    r->broken = true;
    return rig_fail(r, ST_HANG, "the transport %s does not return from a call", r->way.transport->name);
}

void rig_close_net(struct rig *r)
{
    way_close(&r->way);
    if (r->way.stuck)
        return;
    for (uint32_t i = 0; r->ranks && i < r->rank_count; i++) {
        stage_close(&r->ranks[i].stage);
        put_fifo_close(&r->ranks[i].fifo);
    }
}
