#include "sim/fabric.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/fabric_nic.h"

/* Ports stand in this order: one NVLink port a rank, then NIC i of rank r at r * per_gpu + i.  A
 * world of one node has no NIC ports, one of one GPU a node no NVLink ports. */
struct fabric {
    const struct machine *machine;
    struct world world;
    uint32_t nodes; /* that have links */
    struct engine *engine;
    uint32_t nvlink_count, nic_count; /* ports */
    struct nic_set nics;
    uint32_t *next_nic; /* by rank: which of its NICs is next */
    fabric_watch_fn *watch;
    void *watch_arg;
};

static uint32_t nics_per_gpu(const struct fabric *f)
{
    return (uint32_t)f->machine->nic.per_gpu;
}

/* NVLink ports carry their latency; that of NICs is in fabric_nic.c, because a NIC may go on as
 * soon as the last byte has left it. */
static enum status create_engine(struct fabric *f, enum engine_api api)
{
    uint32_t port_count = f->nvlink_count + f->nic_count;
    struct engine_port *ports = calloc(port_count + 1, sizeof(ports[0]));
    struct engine_group *nodes = calloc(f->nodes, sizeof(nodes[0]));
    struct engine_config config = {.api = api, .ports = ports, .port_count = port_count, .groups = nodes};

    assert(ports != NULL && nodes != NULL);
    for (uint32_t i = 0; i < f->nvlink_count; i++)
        ports[i] = (struct engine_port){f->machine->nvlink.rate, f->machine->nvlink.latency_ps};
    for (uint32_t i = f->nvlink_count; i < port_count; i++)
        ports[i] = (struct engine_port){f->machine->nic.rate, 0};
    if ((f->machine->nvlink.multicast || f->machine->nvlink.reduce) && f->nvlink_count > 0)
        config.group_count = f->nodes;
    for (uint32_t i = 0; i < config.group_count; i++)
        nodes[i] = (struct engine_group){world_rank(f->world, i, 0), f->world.gpus_per_node};
    enum status st = engine_create(&config, &f->engine);
    free(ports);
    free(nodes);
    return st;
}

enum status fabric_create(const struct machine *m, struct world w, uint32_t nodes, enum engine_api api,
                          struct fabric **out)
{
    uint32_t ranks = nodes * w.gpus_per_node;
    struct fabric *f = calloc(1, sizeof(*f));
    struct nic_model model = {
        .latency_ps = m->nic.latency_ps,
        .message_ps = m->nic.message_ps,
        .ordered = m->nic.kind == NIC_RC,
    };

    assert(f != NULL && (nodes == w.nodes || (nodes == 1 && api >= ENGINE_FLUID)));
    f->machine = m;
    f->world = w;
    f->nodes = nodes;
    f->nvlink_count = w.gpus_per_node > 1 ? ranks : 0;
    f->nic_count = w.nodes > 1 ? ranks * nics_per_gpu(f) : 0;
    f->next_nic = calloc(ranks, sizeof(f->next_nic[0]));
    assert(f->next_nic != NULL && (w.nodes == 1 || f->nic_count > 0));
    enum status st = create_engine(f, api);
    if (st < 0) {
        fabric_destroy(f);
        return st;
    }
    nic_set_init(&f->nics, f->engine, &model, f->nvlink_count, f->nic_count);
    *out = f;
    return ST_OK;
}

struct engine *fabric_engine(struct fabric *f)
{
    return f->engine;
}

void fabric_destroy(struct fabric *f)
{
    if (f == NULL)
        return;
    nic_set_fini(&f->nics);
    engine_destroy(f->engine);
    free(f->next_nic);
    free(f);
}

void fabric_nvlink(struct fabric *f, uint32_t src, uint32_t dst, uint64_t bytes, double rate_bound, engine_fn *fn,
                   void *arg, uint64_t a, uint64_t b)
{
    assert(src != dst && world_same_node(f->world, src, dst));
    engine_flow(f->engine, src, dst, bytes, rate_bound, fn, arg, a, b);
}

void fabric_multicast(struct fabric *f, uint32_t src, uint64_t bytes, double rate_bound, engine_fn *fn, void *arg,
                      uint64_t a, uint64_t b)
{
    uint32_t node = engine_group_port(f->engine, world_node(f->world, src));

    engine_flow(f->engine, src, node, bytes, rate_bound, fn, arg, a, b);
}

void fabric_reduce(struct fabric *f, uint32_t dst, uint64_t bytes, double rate_bound, engine_fn *fn, void *arg,
                   uint64_t a, uint64_t b)
{
    uint32_t node = engine_group_port(f->engine, world_node(f->world, dst));

    engine_flow(f->engine, node, dst, bytes, rate_bound, fn, arg, a, b);
}

void fabric_gather(struct fabric *f, uint32_t dst, const uint64_t *bytes_from, double rate_bound, engine_fn *fn,
                   void *arg, uint64_t a, uint64_t b)
{
    uint32_t first = world_rank(f->world, world_node(f->world, dst), 0);
    uint64_t bytes = 0;

    for (uint32_t gpu = 0; gpu < f->world.gpus_per_node; gpu++) {
        if (first + gpu == dst || bytes_from[gpu] == 0)
            continue;
        engine_count_out(f->engine, first + gpu, bytes_from[gpu]);
        bytes += bytes_from[gpu];
    }
    engine_flow(f->engine, ENGINE_NO_PORT, dst, bytes, rate_bound, fn, arg, a, b);
}

void fabric_put(struct fabric *f, uint32_t src, uint32_t dst, uint64_t bytes, engine_fn *fn, void *arg, uint64_t a,
                uint64_t b)
{
    uint32_t nic = f->next_nic[src];

    assert(!world_same_node(f->world, src, dst));
    f->next_nic[src] = (nic + 1) % nics_per_gpu(f);
    nic_send(&f->nics, src * nics_per_gpu(f) + nic, dst * nics_per_gpu(f) + nic, bytes, fn, arg, a, b);
}

static void port_used(const struct fabric *f, const struct engine_use *use, uint32_t port, bool in)
{
    bool nic = port >= f->nvlink_count;
    struct fabric_use x = {
        .link = (enum fabric_link)((nic ? FABRIC_NIC_OUT : FABRIC_NVLINK_OUT) + in),
        .rank = nic ? (port - f->nvlink_count) / nics_per_gpu(f) : port,
        .bytes = use->bytes,
        .begin_ps = use->begin_ps,
    };

    f->watch(f->watch_arg, &x);
}

static void flow_used(void *arg, const struct engine_use *use)
{
    const struct fabric *f = arg;
    struct engine_group out = engine_ports_of(f->engine, use->src), in = engine_ports_of(f->engine, use->dst);

    for (uint32_t i = 0; i < out.port_count; i++)
        port_used(f, use, out.first_port + i, false);
    for (uint32_t i = 0; i < in.port_count; i++)
        port_used(f, use, in.first_port + i, true);
}

void fabric_watch(struct fabric *f, fabric_watch_fn *fn, void *arg)
{
    f->watch = fn;
    f->watch_arg = arg;
    engine_watch(f->engine, flow_used, f);
}

typedef uint64_t port_bytes_fn(const struct engine *e, uint32_t port);

/* Ports [first, first + count), all of one rate. */
static struct link_result link_use(const struct fabric *f, const char *name, port_bytes_fn *bytes, uint32_t first,
                                   uint32_t count, double rate)
{
    struct link_result r = {0};
    uint64_t most = 0;
    double capacity = rate * (double)engine_now_ps(f->engine) * 1e-12; /* bytes, of one link */

    snprintf(r.name, sizeof r.name, "%s", name);
    for (uint32_t i = first; i < first + count; i++) {
        r.bytes += bytes(f->engine, i);
        most = max_u64(most, bytes(f->engine, i));
    }
    if (capacity > 0) {
        r.mean_busy = (double)r.bytes / capacity / count;
        r.max_busy = (double)most / capacity;
    }
    return r;
}

uint32_t fabric_links(const struct fabric *f, struct link_result out[RESULT_LINKS_MAX])
{
    const struct machine *m = f->machine;
    uint32_t first_nic = f->nvlink_count;
    uint32_t n = 0;

    if (f->nvlink_count > 0) {
        out[n++] = link_use(f, "nvlink out", engine_port_bytes_out, 0, first_nic, m->nvlink.rate);
        out[n++] = link_use(f, "nvlink in", engine_port_bytes_in, 0, first_nic, m->nvlink.rate);
    }
    if (f->nic_count > 0) {
        out[n++] = link_use(f, "nic out", engine_port_bytes_out, first_nic, f->nic_count, m->nic.rate);
        out[n++] = link_use(f, "nic in", engine_port_bytes_in, first_nic, f->nic_count, m->nic.rate);
    }
    return n;
}
