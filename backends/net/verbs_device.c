#include "backends/net/verbs_device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/net/network.h"

/* ---- which device ---- */

enum status verbs_device_available(char *why, size_t why_bytes)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);

    if (list)
        ibv_free_device_list(list);
    if (list && count > 0)
        return ST_OK;
    snprintf(why, why_bytes, "no RDMA device%s%s", list ? "" : ": ", list ? "" : strerror(errno));
    return ST_ENVIRONMENT;
}

/* The names that `wish` lists are dealt out by the endpoint's number; "": any device will do. */
static void wished_name(const struct endpoint *e, const char *wish, char *out, size_t out_bytes)
{
    char words[OPTION_TEXT_BYTES], *at = NULL;
    uint32_t count = 1, turn;

    for (const char *p = wish; *p; p++)
        count += *p == ',';
    turn = e->config.index % count;
    snprintf(words, sizeof words, "%s", wish);
    snprintf(out, out_bytes, "%s", "");
    for (char *w = strtok_r(words, ",", &at); w; w = strtok_r(NULL, ",", &at))
        if (turn-- == 0)
            snprintf(out, out_bytes, "%s", w);
}

static bool port_is_active(struct ibv_context *context, uint8_t number, struct ibv_port_attr *port)
{
    return ibv_query_port(context, number, port) == 0 && port->state == IBV_PORT_ACTIVE;
}

/* The first device of that name whose port is active. */
static struct ibv_context *open_active(const char *name, uint8_t port_number, struct ibv_port_attr *port)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *found = NULL;

    for (uint32_t i = 0; list && list[i] && !found; i++) {
        struct ibv_context *c = NULL;

        if (!name[0] || strcmp(ibv_get_device_name(list[i]), name) == 0)
            c = ibv_open_device(list[i]);
        if (c && port_is_active(c, port_number, port))
            found = c;
        else if (c)
            ibv_close_device(c);
    }
    if (list)
        ibv_free_device_list(list);
    return found;
}

/* ---- which GID ---- */

static bool is_v4(const union ibv_gid *g)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(g->raw, prefix, sizeof prefix) == 0;
}

/* RoCE v2 is routable and what switches are set up for; of its GIDs the one of an IPv4 address, then of a
 * routable IPv6 one.  Indices mean nothing: they differ between hosts and between boots. */
static int gid_worth(const struct ibv_gid_entry *g, const struct network *n)
{
    int routable = is_v4(&g->gid) ? 3 : 2;

    if (!network_holds(n, g->gid.raw))
        return 0;
    if (g->gid_type == IBV_GID_TYPE_IB)
        return 1;
    return (g->gid_type == IBV_GID_TYPE_ROCE_V2 ? 10 : 2) + (network_is_link_local(g->gid.raw) ? 1 : routable);
}

static enum status choose_gid(struct endpoint *e, const struct verbs_options *o, struct verbs_device *d)
{
    struct network n;
    int best = 0;

    if (!network_parse(o->address, &n))
        return endpoint_fail(e, ST_INPUT, NO_PEER, "address %s: " NETWORK_EXPECTED, o->address);
    for (int i = 0; i < d->port.gid_tbl_len; i++) {
        struct ibv_gid_entry g;

        if (ibv_query_gid_ex(d->context, (uint32_t)o->port, (uint32_t)i, &g, 0) == 0 && gid_worth(&g, &n) > best) {
            best = gid_worth(&g, &n);
            d->gid = g;
        }
    }
    if (best > 0)
        return ST_OK;
    return endpoint_fail(e, ST_ENVIRONMENT, NO_PEER, "%s port %u has no GID%s%s",
                         ibv_get_device_name(d->context->device), (unsigned)o->port, o->address[0] ? " in " : "",
                         o->address);
}

/* ---- memory ---- */

/* A dma-buf needs no module of the GPU's driver; where the device knows none, peer memory may still do. */
static struct ibv_mr *register_memory(struct ibv_pd *pd, const struct net_memory *m, unsigned access)
{
    struct ibv_mr *mr = NULL;

    if (m->gpu && m->dmabuf >= 0)
        mr = ibv_reg_dmabuf_mr(pd, m->dmabuf_offset, m->bytes, (uintptr_t)m->base, m->dmabuf, (int)access);
    return mr ? mr : ibv_reg_mr(pd, m->base, m->bytes, access);
}

static enum status register_both(struct endpoint *e, const struct verbs_options *o, struct verbs_device *d)
{
    const struct endpoint_config *c = &e->config;
    unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

    /* A write may not pass an earlier one unless it is relaxed itself: the flag never is. */
    d->window = register_memory(d->pd, &c->window, access | (o->relaxed ? IBV_ACCESS_RELAXED_ORDERING : 0));
    if (d->window)
        d->flags = register_memory(d->pd, &c->flags, access);
    if (!d->flags)
        return endpoint_fail(e, errno == ENOMEM ? ST_MEMORY : ST_ENVIRONMENT, NO_PEER,
                             "%s does not register %llu bytes of %s memory: %s%s",
                             ibv_get_device_name(d->context->device),
                             (unsigned long long)(d->window ? c->flags.bytes : c->window.bytes),
                             c->window.gpu ? "GPU" : "host", strerror(errno), errno == ENOMEM ? " (ulimit -l)" : "");
    e->self.window_key = d->window->rkey;
    e->self.window_base = (uintptr_t)c->window.base;
    e->self.flags_key = d->flags->rkey;
    e->self.flags_base = (uintptr_t)c->flags.base;
    return ST_OK;
}

/* ---- open and close ---- */

enum status verbs_device_open(struct endpoint *e, const struct verbs_options *o, struct verbs_device *d)
{
    char name[OPTION_TEXT_BYTES];
    uint64_t cqes = e->config.depth * 2ull + 64; /* data and flag of every put, if all fail */

    wished_name(e, o->device, name, sizeof name);
    d->context = open_active(name, (uint8_t)o->port, &d->port);
    if (!d->context)
        return endpoint_fail(e, ST_ENVIRONMENT, NO_PEER, "no device%s%s with an active port %u", name[0] ? " " : "",
                             name, (unsigned)o->port);
    TRY(choose_gid(e, o, d));
    if (ibv_query_device(d->context, &d->attr) != 0)
        return endpoint_fail(e, ST_IO, NO_PEER, "%s does not answer", name);
    d->pd = ibv_alloc_pd(d->context);
    if (cqes > (uint64_t)d->attr.max_cqe)
        cqes = (uint64_t)d->attr.max_cqe;
    d->cq = ibv_create_cq(d->context, (int)cqes, NULL, NULL, 0);
    if (!d->pd || !d->cq)
        return endpoint_fail(e, ST_IO, NO_PEER, "%s: no %s: %s", ibv_get_device_name(d->context->device),
                             d->pd ? "completion queue" : "protection domain", strerror(errno));
    return register_both(e, o, d);
}

void verbs_device_close(struct verbs_device *d)
{
    if (d->flags)
        ibv_dereg_mr(d->flags);
    if (d->window)
        ibv_dereg_mr(d->window);
    if (d->cq)
        ibv_destroy_cq(d->cq);
    if (d->pd)
        ibv_dealloc_pd(d->pd);
    if (d->context)
        ibv_close_device(d->context);
    memset(d, 0, sizeof *d);
}
