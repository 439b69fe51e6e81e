/* libibverbs, reliable connected queue pairs.  A put is the bytes' write and, behind it on the same queue
 * pair, an inline write of the flag; only the latter asks for a completion, which covers both.  Puts of one
 * call to one peer are chained, so that a doorbell is rung once for several.
 *
 * The flag is one aligned write of 8 bytes.  Were it ever seen half, then from its low end up, which no
 * wait for a value or more takes for that value. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/net/transports.h"
#include "backends/net/verbs_queue.h"

#define CHAIN_WRS 64
#define CHAIN_PUTS 8 /* then the next queue pair's turn */
#define POLL_MAX 32

static const struct option options[] = {
    {"device", OPTION_TEXT, offsetof(struct verbs_options, device), "", 0, 0, NULL,
     "names, with commas between, dealt out to ranks in turn: mlx5_0,mlx5_1; none: the first active one"},
    {"address", OPTION_TEXT, offsetof(struct verbs_options, address), "", 0, 0, NULL,
     "IP address of the GID to use, or a network it is in, 10.1.0.0/16; none: RoCE v2 first, of an IPv4 address first"},
    {"port", OPTION_COUNT, offsetof(struct verbs_options, port), "1", 1, 255, NULL, "of the device"},
    {"qps", OPTION_COUNT, offsetof(struct verbs_options, qps), "4", 1, VERBS_QPS_MAX, NULL, "queue pairs to each peer"},
    {"ack_timeout", OPTION_TIME, offsetof(struct verbs_options, ack_timeout_ps), "67ms", 8.192e6, 17e12, NULL,
     "until an unanswered packet is sent again; the sixth time is the last"},
    {"relaxed", OPTION_BOOL, offsetof(struct verbs_options, relaxed), "true", 0, 0, NULL,
     "PCIe may reorder the bytes of puts; flags stay behind them"},
    {.name = NULL},
};

struct verbs_peer {
    struct verbs_queue queues[VERBS_QPS_MAX];
    uint32_t turn;
};

struct verbs_put { /* by slot */
    struct verbs_queue *queue;
    uint32_t peer, wrs;
};

struct verbs {
    struct verbs_device device;
    struct verbs_peer *peers;
    struct verbs_put *puts;
    uint32_t qps;
    uint64_t message_max_bytes;
};

/* ---- open and close ---- */

static enum status open_queues(struct endpoint *e, uint32_t peer)
{
    const struct verbs_options *o = e->config.options;
    struct verbs *v = e->state;

    for (uint32_t i = 0; i < v->qps; i++)
        if (!verbs_queue_open(&v->peers[peer].queues[i], &v->device, (uint8_t)o->port))
            return endpoint_fail(e, ST_ENVIRONMENT, NO_PEER, "%s: queue pair %u to peer %u: %s",
                                 ibv_get_device_name(v->device.context->device), i, peer, strerror(errno));
    return ST_OK;
}

static enum status verbs_open(struct endpoint *e)
{
    const struct verbs_options *o = e->config.options;
    struct verbs *v = e->state;

    if (e->config.window.gpu != e->config.flags.gpu)
        return endpoint_fail(e, ST_UNSUPPORTED, NO_PEER,
                             "window and flags have to be in the same memory: writes to two are not ordered");
    v->peers = calloc(e->config.peers, sizeof *v->peers);
    v->puts = calloc(e->config.depth, sizeof *v->puts);
    if (!v->peers || !v->puts)
        return endpoint_fail(e, ST_MEMORY, NO_PEER, "no memory for %u peers", e->config.peers);
    v->qps = (uint32_t)o->qps;
    TRY(verbs_device_open(e, o, &v->device));
    v->message_max_bytes = v->device.port.max_msg_sz;
    return ST_OK;
}

static void verbs_close(struct endpoint *e)
{
    struct verbs *v = e->state;

    for (uint32_t peer = 0; v->peers && peer < e->config.peers; peer++)
        for (uint32_t i = 0; i < v->qps; i++)
            verbs_queue_close(&v->peers[peer].queues[i]);
    verbs_device_close(&v->device);
    free(v->peers);
    free(v->puts);
}

/* ---- connecting ---- */

static enum status verbs_address(struct endpoint *e, uint32_t peer, uint8_t own[ADDRESS_TRANSPORT_BYTES])
{
    struct verbs *v = e->state;
    struct verbs_address a = {
        .gid = v->device.gid.gid,
        .lid = v->device.port.lid,
        .mtu = (uint8_t)v->device.port.active_mtu,
        .qps = (uint8_t)v->qps,
    };

    _Static_assert(sizeof a <= ADDRESS_TRANSPORT_BYTES, "a verbs address fits");
    if (!v->peers[peer].queues[0].qp)
        TRY(open_queues(e, peer));
    for (uint32_t i = 0; i < v->qps; i++) {
        a.number[i] = v->peers[peer].queues[i].qp->qp_num;
        a.psn[i] = v->peers[peer].queues[i].psn;
    }
    memcpy(own, &a, sizeof a);
    return ST_OK;
}

static enum status verbs_connect(struct endpoint *e, uint32_t peer, const uint8_t own[ADDRESS_TRANSPORT_BYTES])
{
    const struct verbs_options *o = e->config.options;
    struct verbs *v = e->state;
    struct verbs_address a;

    memcpy(&a, own, sizeof a);
    if (a.qps != v->qps)
        return endpoint_fail(e, ST_INPUT, peer, "it has %u queue pairs to this rank, not %u", a.qps, v->qps);
    for (uint32_t i = 0; i < v->qps; i++)
        if (!verbs_queue_connect(&v->peers[peer].queues[i], &v->device, o, &a, i))
            return endpoint_fail(e, ST_IO, peer, "queue pair %u does not connect: %s", i, strerror(errno));
    return ST_OK;
}

/* ---- puts ---- */

struct chain {
    struct ibv_send_wr wrs[CHAIN_WRS];
    struct ibv_sge sges[CHAIN_WRS];
    uint64_t values[CHAIN_WRS]; /* of the flags, until they are posted */
    uint32_t count, puts, peer;
    struct verbs_queue *queue;
};

static enum status post(struct endpoint *e, struct chain *c)
{
    struct ibv_send_wr *bad;
    int error;

    if (c->count == 0)
        return ST_OK;
    for (uint32_t i = 0; i + 1 < c->count; i++)
        c->wrs[i].next = &c->wrs[i + 1];
    c->wrs[c->count - 1].next = NULL;
    error = ibv_post_send(c->queue->qp, c->wrs, &bad);
    c->count = c->puts = 0;
    return error == 0 ? ST_OK : endpoint_fail(e, ST_IO, c->peer, "a put does not start: %s", strerror(error));
}

static struct ibv_send_wr *append(struct chain *c, net_slot slot, const void *from, uint64_t bytes, uint32_t lkey,
                                  uint64_t to, uint64_t rkey)
{
    struct ibv_send_wr *w = &c->wrs[c->count];
    struct ibv_sge *s = &c->sges[c->count++];

    *s = (struct ibv_sge){.addr = (uintptr_t)from, .length = (uint32_t)bytes, .lkey = lkey};
    *w = (struct ibv_send_wr){
        .wr_id = slot,
        .sg_list = s,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_WRITE,
        .wr.rdma = {.remote_addr = to, .rkey = (uint32_t)rkey},
    };
    return w;
}

static void append_bytes(struct endpoint *e, struct chain *c, const struct put *p, net_slot slot)
{
    struct verbs *v = e->state;
    const struct endpoint_address *a = &e->peers[p->peer].address;
    const uint8_t *base = e->config.window.base;

    for (uint64_t at = 0; at < p->bytes; at += v->message_max_bytes) {
        uint64_t left = p->bytes - at, bytes = left < v->message_max_bytes ? left : v->message_max_bytes;
        struct ibv_send_wr *w = append(c, slot, base + p->from + at, bytes, v->device.window->lkey,
                                       a->window_base + p->to + at, a->window_key);

        if (bytes <= c->queue->inline_bytes && !e->config.window.gpu)
            w->send_flags = IBV_SEND_INLINE;
    }
}

static void append_flag(struct endpoint *e, struct chain *c, const struct put *p, net_slot slot)
{
    const struct endpoint_address *a = &e->peers[p->peer].address;
    uint64_t *value = &c->values[c->count];

    *value = p->value;
    append(c, slot, value, sizeof *value, 0, a->flags_base + p->flag * sizeof *value, a->flags_key)->send_flags =
        IBV_SEND_INLINE | IBV_SEND_SIGNALED;
}

/* The next queue pair in turn with room for so many requests; NULL: none. */
static struct verbs_queue *queue_with_room(struct verbs *v, uint32_t peer, uint32_t wrs)
{
    struct verbs_peer *p = &v->peers[peer];

    for (uint32_t i = 0; i < v->qps; i++) {
        struct verbs_queue *q = &p->queues[p->turn++ % v->qps];

        if (q->wrs + wrs <= q->wrs_max)
            return q;
    }
    return NULL;
}

static bool fits(const struct chain *c, uint32_t peer, uint32_t wrs)
{
    return c->count > 0 && c->peer == peer && c->puts < CHAIN_PUTS && c->count + wrs <= CHAIN_WRS &&
           c->queue->wrs + wrs <= c->queue->wrs_max;
}

/* ST_BUSY: no queue pair to that peer has room. */
static enum status add_to_chain(struct endpoint *e, struct chain *c, const struct put *p, net_slot slot)
{
    struct verbs *v = e->state;
    uint64_t wrs = (p->bytes + v->message_max_bytes - 1) / v->message_max_bytes + 1;

    if (wrs > CHAIN_WRS)
        return endpoint_fail(e, ST_UNSUPPORTED, p->peer, "a put of %llu bytes, in messages of %llu",
                             (unsigned long long)p->bytes, (unsigned long long)v->message_max_bytes);
    if (!fits(c, p->peer, (uint32_t)wrs)) {
        TRY(post(e, c));
        c->peer = p->peer;
        c->queue = queue_with_room(v, p->peer, (uint32_t)wrs);
        if (!c->queue)
            return ST_BUSY;
    }
    append_bytes(e, c, p, slot);
    append_flag(e, c, p, slot);
    c->puts++;
    c->queue->wrs += (uint32_t)wrs;
    v->puts[slot] = (struct verbs_put){.queue = c->queue, .peer = p->peer, .wrs = (uint32_t)wrs};
    return ST_OK;
}

static enum status verbs_put(struct endpoint *e, const struct put *puts, const net_slot *slots, uint32_t count,
                             uint32_t *started)
{
    struct chain c;

    c.count = c.puts = 0;
    for (*started = 0; *started < count; ++*started) {
        enum status st = add_to_chain(e, &c, &puts[*started], slots[*started]);

        if (st < 0)
            return st;
        if (st == ST_BUSY)
            break;
    }
    return post(e, &c);
}

/* ---- progress ---- */

static enum status verbs_poll(struct endpoint *e, uint32_t max)
{
    struct verbs *v = e->state;
    struct ibv_wc wcs[POLL_MAX];
    int n = ibv_poll_cq(v->device.cq, (int)(max < POLL_MAX ? max : POLL_MAX), wcs);

    if (n < 0)
        return endpoint_fail(e, ST_IO, NO_PEER, "completion queue: %s", strerror(errno));
    for (int i = 0; i < n; i++) {
        struct verbs_put *p = &v->puts[wcs[i].wr_id];

        if (wcs[i].status != IBV_WC_SUCCESS)
            return endpoint_fail(e, ST_IO, p->peer, "a put failed: %s (vendor error 0x%x)",
                                 ibv_wc_status_str(wcs[i].status), wcs[i].vendor_err);
        p->queue->wrs -= p->wrs;
        endpoint_complete(e, (net_slot)wcs[i].wr_id);
    }
    return ST_OK;
}

const struct transport verbs_transport = {
    .name = "verbs",
    .title = "libibverbs: InfiniBand and RoCE, one-sided writes over reliable connections",
    .options = options,
    .options_size = sizeof(struct verbs_options),
    .state_size = sizeof(struct verbs),
    .gpu = true,
    .available = verbs_device_available,
    .open = verbs_open,
    .address = verbs_address,
    .connect = verbs_connect,
    .put = verbs_put,
    .poll = verbs_poll,
    .close = verbs_close,
};
