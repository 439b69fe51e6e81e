/* libfabric: remote writes that carry completion data, from which the receiver raises the flag itself.
 * So nothing depends on the order of two operations, and one code serves ordered (tcp, shm) and unordered
 * (efa) providers.
 *
 * With 8 bytes of completion data a put is one write, whose data are the flag's number and value.  With 4
 * bytes, or when something does not fit, the signal is a message beside the write (ofi_arrivals.h).  A
 * bare signal always is one: shm 1.17 never completes a write of 0 bytes.
 *
 * A put is complete when it has been delivered.  Where the provider keeps the order to a peer, one acknowledgement says
 * so of many (ofi_acks.h). */
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

#include "backends/net/ofi_acks.h"
#include "backends/net/ofi_arrivals.h"
#include "backends/net/ofi_fabric.h"
#include "backends/net/ofi_shm.h"
#include "backends/net/transports.h"

#define RECEIVES 256   /* posted for signals; where they run out libfabric makes senders wait */
#define READ_MAX 32    /* completions at a time */
#define QUIET_POLLS 16 /* without a put, then what has been put is asked for */
#define NAME_MAX_BYTES (ADDRESS_TRANSPORT_BYTES - 16)

static const struct option options[] = {
    {"provider", OPTION_TEXT, offsetof(struct ofi_options, provider), "tcp;ofi_rxm", 0, 0, NULL,
     "libfabric's name of the provider: tcp;ofi_rxm, shm, efa (fi_info -l)"},
    {"address", OPTION_TEXT, offsetof(struct ofi_options, address), "", 0, 0, NULL,
     "own IP address, or a network it is in, 10.1.0.0/16; none: that of the fastest interface"},
    {"data_bytes", OPTION_COUNT, offsetof(struct ofi_options, data_bytes), "8", 4, 8, NULL,
     "completion data that a write may carry, at most: with less than 8 signals travel as messages"},
    {"message_max", OPTION_SIZE, offsetof(struct ofi_options, message_max_bytes), "1GiB", 1, 0x1p62, NULL,
     "larger puts are cut"},
    {.name = NULL},
};

struct ofi_put { /* by slot */
    struct put put;
    uint32_t pieces, issued; /* writes */
    bool direct;             /* the only write carries the signal */
    bool asks;               /* for an acknowledgement */
    bool signalled;          /* all has been issued */
    uint32_t flying;         /* operations */
};

struct ofi_peer {
    fi_addr_t address;
    uint64_t asking_for; /* puts up to this number, by a write of its own that is under way; 0: there is none */
};

struct ofi {
    struct ofi_fabric fabric;
    struct ofi_arrivals arrivals;
    struct ofi_acks acks;
    struct ofi_put *puts;
    struct ofi_signal *messages; /* RECEIVES to receive into, then one a slot to send */
    struct ofi_peer *peers;
    net_slot *waiting; /* a ring: what has not been issued entirely */
    uint64_t waiting_first, waiting_end;
    uint64_t message_max_bytes;
    uint32_t data_bytes;
    uint32_t quiet; /* polls since the last put */
    bool polled;
};

struct ofi_address {
    uint32_t depth, data_bytes;
    uint8_t name[NAME_MAX_BYTES];
};

/* ---- open and close ---- */

static enum status ofi_available(char *why, size_t why_bytes)
{
    struct fi_info *hints = ofi_hints(""), *found = NULL;
    int error = hints ? fi_getinfo(OFI_API, NULL, NULL, 0, hints, &found) : -FI_ENOMEM;

    if (hints)
        fi_freeinfo(hints);
    if (error) {
        snprintf(why, why_bytes, "no provider of libfabric has remote writes here: %s", fi_strerror(-error));
        return ST_ENVIRONMENT;
    }
    fi_freeinfo(found);
    return ST_OK;
}

static void *messages_desc(const struct ofi *o)
{
    return o->fabric.messages ? fi_mr_desc(o->fabric.messages) : NULL;
}

static enum status post_receive(struct endpoint *e, struct ofi_signal *buffer)
{
    struct ofi *o = e->state;
    ssize_t error = fi_recv(o->fabric.ep, buffer, sizeof *buffer, messages_desc(o), FI_ADDR_UNSPEC, buffer);

    return error ? endpoint_fail(e, ST_IO, NO_PEER, "fi_recv: %s", fi_strerror((int)-error)) : ST_OK;
}

static bool allocate(struct endpoint *e)
{
    struct ofi *o = e->state;

    o->puts = calloc(e->config.depth, sizeof *o->puts);
    o->messages = calloc(RECEIVES + e->config.depth, sizeof *o->messages);
    o->peers = calloc(e->config.peers, sizeof *o->peers);
    o->waiting = calloc(e->config.depth, sizeof *o->waiting);
    return o->puts && o->messages && o->peers && o->waiting && ofi_arrivals_open(&o->arrivals, e->config.peers) &&
           ofi_acks_open(&o->acks, e->config.peers, e->config.depth);
}

/* Whether what is sent to a peer arrives as it was sent, writes and messages. */
static bool keeps_order(const struct fi_info *info)
{
    const uint64_t all = FI_ORDER_WAW | FI_ORDER_WAS | FI_ORDER_SAW | FI_ORDER_SAS;

    return (info->tx_attr->msg_order & all) == all && info->ep_attr->max_order_waw_size >= info->ep_attr->max_msg_size;
}

static enum status ofi_open(struct endpoint *e)
{
    const struct ofi_options *wish = e->config.options;
    struct ofi *o = e->state;
    uint32_t depth = e->config.depth;

    if (depth > OFI_DEPTH_MAX || e->config.peers > OFI_PEERS_MAX)
        return endpoint_fail(e, ST_INPUT, NO_PEER, "%u puts and %u peers, at most %u and %u", depth, e->config.peers,
                             OFI_DEPTH_MAX, OFI_PEERS_MAX);
    if (!allocate(e))
        return endpoint_fail(e, ST_MEMORY, NO_PEER, "no memory for %u puts", depth);
    TRY(ofi_fabric_open(e, wish, &o->fabric));
    TRY(ofi_register(e, &o->fabric, o->messages, (RECEIVES + depth) * sizeof *o->messages, FI_SEND | FI_RECV,
                     o->fabric.key ^ 1, &o->fabric.messages));
    o->data_bytes = wish->data_bytes >= 8 && o->fabric.info->domain_attr->cq_data_size >= 8 ? 8 : 4;
    o->message_max_bytes = o->fabric.info->ep_attr->max_msg_size;
    if (wish->message_max_bytes < o->message_max_bytes)
        o->message_max_bytes = wish->message_max_bytes;
    if (keeps_order(o->fabric.info) && depth > 1)
        o->acks.every = depth / 2;
    for (uint32_t i = 0; i < RECEIVES; i++)
        TRY(post_receive(e, &o->messages[i]));
    return ST_OK;
}

static void ofi_close(struct endpoint *e)
{
    struct ofi *o = e->state;

    ofi_fabric_close(&o->fabric);
    ofi_arrivals_close(&o->arrivals);
    ofi_acks_close(&o->acks);
    free(o->puts);
    free(o->messages);
    free(o->peers);
    free(o->waiting);
}

/* ---- connecting ---- */

static enum status ofi_address(struct endpoint *e, uint32_t peer, uint8_t own[ADDRESS_TRANSPORT_BYTES])
{
    struct ofi *o = e->state;
    struct ofi_address a = {.depth = e->config.depth, .data_bytes = o->data_bytes};
    size_t bytes = sizeof a.name;
    int error = fi_getname(&o->fabric.ep->fid, a.name, &bytes);

    (void)peer;
    if (error)
        return endpoint_fail(e, ST_IO, NO_PEER, "fi_getname: %s", fi_strerror(-error));
    memcpy(own, &a, sizeof a);
    return ST_OK;
}

static enum status ofi_connect(struct endpoint *e, uint32_t peer, const uint8_t own[ADDRESS_TRANSPORT_BYTES])
{
    struct ofi *o = e->state;
    struct ofi_address a;

    memcpy(&a, own, sizeof a);
    if (a.data_bytes != o->data_bytes || a.depth > OFI_DEPTH_MAX)
        return endpoint_fail(e, ST_INPUT, peer, "it has %u bytes of completion data, not %u", a.data_bytes,
                             o->data_bytes);
    if (!ofi_arrivals_add_peer(&o->arrivals, peer, a.depth))
        return endpoint_fail(e, ST_MEMORY, NO_PEER, "no memory for %u puts of a peer", a.depth);
    if (fi_av_insert(o->fabric.av, a.name, 1, &o->peers[peer].address, 0, NULL) != 1)
        return endpoint_fail(e, ST_IO, peer, "its address is not one for provider %s",
                             o->fabric.info->fabric_attr->prov_name);
    return ST_OK;
}

/* ---- sending ---- */

#define NOT_DIRECT UINT32_MAX /* in the place of a flag's number */

static uint64_t data_of(const struct ofi_put *p, uint32_t tag)
{
    return p->direct ? (uint64_t)p->put.flag << 32 | p->put.value : (uint64_t)NOT_DIRECT << 32 | tag;
}

static uint64_t flags_of(const struct ofi_put *p)
{
    return FI_COMPLETION | (p->asks ? FI_DELIVERY_COMPLETE : 0);
}

static ssize_t issue_piece(struct endpoint *e, struct ofi_put *p, net_slot slot)
{
    struct ofi *o = e->state;
    const struct endpoint_address *a = &e->peers[p->put.peer].address;
    uint64_t at = p->issued * o->message_max_bytes, left = p->put.bytes - at;
    uint64_t bytes = left < o->message_max_bytes ? left : o->message_max_bytes;
    uint64_t data = data_of(p, ofi_tag(e->config.index, slot));
    void *desc = fi_mr_desc(o->fabric.window);
    struct iovec from = {(uint8_t *)e->config.window.base + p->put.from + at, bytes};
    struct fi_rma_iov to = {a->window_base + p->put.to + at, bytes, a->window_key};
    struct fi_msg_rma m = {.msg_iov = &from,
                           .desc = &desc,
                           .iov_count = 1,
                           .addr = o->peers[p->put.peer].address,
                           .rma_iov = &to,
                           .rma_iov_count = 1,
                           .context = p,
                           .data = o->data_bytes == 8 ? data : (uint32_t)data};

    return fi_writemsg(o->fabric.ep, &m, FI_REMOTE_CQ_DATA | flags_of(p));
}

static ssize_t issue_signal(struct endpoint *e, struct ofi_put *p, net_slot slot)
{
    struct ofi *o = e->state;
    struct ofi_signal *s = &o->messages[RECEIVES + slot];
    void *desc = messages_desc(o);
    struct iovec from = {s, sizeof *s};
    struct fi_msg m = {
        .msg_iov = &from, .desc = &desc, .iov_count = 1, .addr = o->peers[p->put.peer].address, .context = p};

    *s = (struct ofi_signal){.key = e->peers[p->put.peer].address.window_key,
                             .tag = ofi_tag(e->config.index, slot),
                             .pieces = p->pieces,
                             .flag = p->put.flag,
                             .value = p->put.value};
    return fi_sendmsg(o->fabric.ep, &m, flags_of(p));
}

/* As much of a put as the provider takes now. */
static ssize_t issue(struct endpoint *e, struct ofi_put *p, net_slot slot)
{
    while (p->issued < p->pieces) {
        ssize_t error = issue_piece(e, p, slot);

        if (error)
            return error;
        p->issued++;
        p->flying++;
    }
    if (!p->direct) {
        ssize_t error = issue_signal(e, p, slot);

        if (error)
            return error;
        p->flying++;
    }
    p->signalled = true;
    return 0;
}

static enum status issue_waiting(struct endpoint *e)
{
    struct ofi *o = e->state;

    for (; o->waiting_first < o->waiting_end; o->waiting_first++) {
        net_slot slot = o->waiting[o->waiting_first % e->config.depth];
        struct ofi_put *p = &o->puts[slot];
        ssize_t error = issue(e, p, slot);

        if (error == -FI_EAGAIN)
            break;
        if (error)
            return endpoint_fail(e, ST_IO, p->put.peer, "a put of %llu bytes does not start: %s",
                                 (unsigned long long)p->put.bytes, fi_strerror((int)-error));
    }
    return ST_OK;
}

static enum status ofi_put(struct endpoint *e, const struct put *puts, const net_slot *slots, uint32_t count,
                           uint32_t *started)
{
    struct ofi *o = e->state;

    for (uint32_t i = 0; i < count; i++) {
        struct ofi_put *p = &o->puts[slots[i]];
        uint64_t max = o->message_max_bytes;

        *p = (struct ofi_put){.put = puts[i]};
        p->direct = o->data_bytes == 8 && p->put.bytes > 0 && p->put.bytes <= max && p->put.flag < NOT_DIRECT &&
                    p->put.value <= UINT32_MAX;
        p->asks = ofi_acks_start(&o->acks, p->put.peer, slots[i]);
        p->pieces = p->direct ? 1 : (uint32_t)((p->put.bytes + max - 1) / max);
        o->waiting[o->waiting_end++ % e->config.depth] = slots[i];
    }
    *started = count;
    o->quiet = 0;
    return issue_waiting(e);
}

/* A write of nothing behind the puts to a peer. */
static enum status ask(struct endpoint *e, uint32_t peer, uint64_t number)
{
    struct ofi *o = e->state;
    const struct endpoint_address *a = &e->peers[peer].address;
    struct fi_rma_iov to = {a->window_base, 0, a->window_key};
    struct fi_msg_rma m = {
        .addr = o->peers[peer].address, .rma_iov = &to, .rma_iov_count = 1, .context = &o->peers[peer]};

    ssize_t error;

    if (number == 0 || o->peers[peer].asking_for > 0)
        return ST_OK;
    error = fi_writemsg(o->fabric.ep, &m, FI_DELIVERY_COMPLETE | FI_COMPLETION);
    if (error == -FI_EAGAIN)
        return ST_OK; /* next time */
    if (error)
        return endpoint_fail(e, ST_IO, peer, "nothing can be sent: %s", fi_strerror((int)-error));
    o->peers[peer].asking_for = number;
    ofi_acks_asked(&o->acks, peer, number);
    return ST_OK;
}

/* When no more puts come that might ask. */
static enum status ask_when_quiet(struct endpoint *e)
{
    struct ofi *o = e->state;

    if (o->waiting_first < o->waiting_end || ++o->quiet < QUIET_POLLS)
        return ST_OK;
    o->quiet = 0;
    for (uint32_t peer = 0; peer < e->config.peers; peer++)
        TRY(ask(e, peer, ofi_acks_uncovered(&o->acks, peer)));
    return ST_OK;
}

/* ---- progress ---- */

/* The put that an operation belongs to, or the peer that was asked; NULL: neither, a receive. */
static struct ofi_put *put_of(const struct endpoint *e, void *context)
{
    struct ofi *o = e->state;
    struct ofi_put *p = context;

    return p >= o->puts && p < o->puts + e->config.depth ? p : NULL;
}

static struct ofi_peer *peer_of(const struct endpoint *e, void *context)
{
    struct ofi *o = e->state;
    struct ofi_peer *peer = context;

    return peer >= o->peers && peer < o->peers + e->config.peers ? peer : NULL;
}

static enum status note_sent(struct endpoint *e, void *context)
{
    struct ofi *o = e->state;
    struct ofi_put *p = put_of(e, context);
    struct ofi_peer *peer = peer_of(e, context);

    if (p) {
        p->flying--;
        if (p->signalled && p->flying == 0)
            ofi_acks_done(&o->acks, (net_slot)(p - o->puts), p->asks);
    } else if (peer) {
        ofi_acks_covered(&o->acks, (uint32_t)(peer - o->peers), peer->asking_for);
        peer->asking_for = 0;
    }
    return ST_OK;
}

static enum status note_received(struct endpoint *e, struct ofi_signal *s)
{
    struct ofi *o = e->state;

    if (s->key != e->self.window_key || !ofi_arrivals_signal(&o->arrivals, e, s))
        return endpoint_fail(e, ST_IO, NO_PEER, "a signal nobody can have sent: put %08x", s->tag);
    return post_receive(e, s);
}

static enum status note_written(struct endpoint *e, uint64_t data)
{
    struct ofi *o = e->state;
    uint32_t flag = (uint32_t)(data >> 32), low = (uint32_t)data;
    bool ok = o->data_bytes == 8 && flag != NOT_DIRECT ? endpoint_raise(e, flag, low)
                                                       : ofi_arrivals_piece(&o->arrivals, e, low);

    return ok ? ST_OK
              : endpoint_fail(e, ST_IO, NO_PEER, "a write nobody can have sent: data %016llx",
                              (unsigned long long)data);
}

static enum status note(struct endpoint *e, const struct fi_cq_data_entry *c)
{
    if (c->flags & FI_RECV)
        return note_received(e, c->op_context);
    if (c->flags & FI_REMOTE_WRITE)
        return note_written(e, c->data);
    return note_sent(e, c->op_context);
}

/* A peer that goes away may end a receive as well: that is no error as long as nothing was asked of it. */
static enum status note_error(struct endpoint *e)
{
    struct ofi *o = e->state;
    struct fi_cq_err_entry err = {0};
    char text[128] = "";
    struct ofi_put *p;
    struct ofi_peer *peer;

    if (fi_cq_readerr(o->fabric.cq, &err, 0) != 1)
        return ST_OK;
    p = put_of(e, err.op_context);
    peer = peer_of(e, err.op_context);
    if (!p && !peer)
        return ST_OK;
    fi_cq_strerror(o->fabric.cq, err.prov_errno, err.err_data, text, sizeof text);
    if (peer)
        return endpoint_fail(e, ST_IO, (uint32_t)(peer - o->peers), "puts to it are not acknowledged: %s (%s)",
                             fi_strerror(err.err), text);
    return endpoint_fail(e, ST_IO, p->put.peer, "a put of %llu bytes failed: %s (%s)", (unsigned long long)p->put.bytes,
                         fi_strerror(err.err), text);
}

static enum status ofi_poll(struct endpoint *e, uint32_t max)
{
    struct ofi *o = e->state;
    struct fi_cq_data_entry entries[READ_MAX];
    ssize_t n = fi_cq_read(o->fabric.cq, entries, READ_MAX);
    net_slot slot;

    if (!o->polled)
        ofi_shm_unlink(o->fabric.ep);
    o->polled = true;
    for (ssize_t i = 0; i < n; i++)
        TRY(note(e, &entries[i]));
    if (n == -FI_EAVAIL)
        TRY(note_error(e));
    else if (n < 0 && n != -FI_EAGAIN)
        return endpoint_fail(e, ST_IO, NO_PEER, "fi_cq_read: %s", fi_strerror((int)-n));
    for (uint32_t i = 0; i < max && ofi_acks_next(&o->acks, &slot); i++)
        endpoint_complete(e, slot);
    TRY(issue_waiting(e));
    return ask_when_quiet(e);
}

const struct transport ofi_transport = {
    .name = "ofi",
    .title = "libfabric: tcp between machines or on one, shm on one, efa",
    .options = options,
    .options_size = sizeof(struct ofi_options),
    .state_size = sizeof(struct ofi),
    .available = ofi_available,
    .open = ofi_open,
    .address = ofi_address,
    .connect = ofi_connect,
    .put = ofi_put,
    .poll = ofi_poll,
    .close = ofi_close,
};
