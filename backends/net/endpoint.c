/* What every transport would do alike: slots, checks, names, and the deadline of peers that are silent. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/net/transport.h"
#include "core/clock.h"

#define CLOCK_EVERY 256 /* polls */

/* ---- transports ---- */

const struct transport *transport_find(const char *name)
{
    for (uint32_t i = 0; transport_list[i]; i++)
        if (strcmp(transport_list[i]->name, name) == 0)
            return transport_list[i];
    return NULL;
}

enum status transport_available(const struct transport *t, char *why, size_t why_bytes)
{
    return t->available(why, why_bytes);
}

/* ---- open and close ---- */

static bool allocate(struct endpoint *e)
{
    uint32_t depth = e->config.depth;

    e->state = calloc(1, e->transport->state_size);
    e->peers = calloc(e->config.peers, sizeof *e->peers);
    e->slots = calloc(depth, sizeof *e->slots);
    e->free_slots = calloc(depth, sizeof *e->free_slots);
    if (!e->state || !e->peers || !e->slots || !e->free_slots)
        return false;
    while (e->free_count < depth) {
        e->free_slots[e->free_count] = depth - 1 - e->free_count;
        e->free_count++;
    }
    return true;
}

static enum status open_checked(struct endpoint *e)
{
    const struct endpoint_config *c = &e->config;
    char why[400];
    enum status st;

    if ((c->window.gpu || c->flags.gpu) && !e->transport->gpu)
        return endpoint_fail(e, ST_UNSUPPORTED, NO_PEER, "GPU memory has to be staged by the caller");
    if (!allocate(e))
        return endpoint_fail(e, ST_MEMORY, NO_PEER, "no memory for %u peers and %u puts", c->peers, c->depth);
    st = transport_available(e->transport, why, sizeof why);
    return st < 0 ? endpoint_fail(e, st, NO_PEER, "%s", why) : e->transport->open(e);
}

enum status endpoint_open(const struct transport *t, const struct endpoint_config *c, struct endpoint **out, char *why,
                          size_t why_bytes)
{
    struct endpoint *e = calloc(1, sizeof *e);
    enum status st = ST_MEMORY;

    assert(c->index < c->peers && c->depth > 0 && c->flags.bytes % 8 == 0);
    assert((uintptr_t)c->flags.base % 8 == 0);
    *out = NULL;
    snprintf(why, why_bytes, "%s: no memory", t->name);
    if (!e)
        return st;
    e->transport = t;
    e->config = *c;
    e->self.window_bytes = c->window.bytes;
    e->self.flag_count = c->flags.bytes / 8;
    snprintf(e->self.transport, sizeof e->self.transport, "%s", t->name);
    snprintf(e->self.name, sizeof e->self.name, "%s", c->name);
    st = open_checked(e);
    if (st < 0) {
        snprintf(why, why_bytes, "%s", e->error);
        endpoint_close(e);
        return st;
    }
    *out = e;
    return ST_OK;
}

void endpoint_close(struct endpoint *e)
{
    if (!e)
        return;
    if (e->state)
        e->transport->close(e);
    free(e->state);
    free(e->peers);
    free(e->slots);
    free(e->free_slots);
    free(e);
}

/* ---- connecting ---- */

enum status endpoint_address(struct endpoint *e, uint32_t peer, struct endpoint_address *out)
{
    assert(peer < e->config.peers && peer != e->config.index);
    *out = e->self;
    return e->failed < 0 ? e->failed : e->transport->address(e, peer, out->own);
}

enum status endpoint_connect(struct endpoint *e, uint32_t peer, const struct endpoint_address *a)
{
    struct endpoint_peer *p = &e->peers[peer];

    assert(peer < e->config.peers && peer != e->config.index && !p->connected);
    if (e->failed < 0)
        return e->failed;
    p->address = *a;
    p->address.name[sizeof p->address.name - 1] = 0;
    p->address.transport[sizeof p->address.transport - 1] = 0;
    if (strcmp(p->address.transport, e->transport->name) != 0)
        return endpoint_fail(e, ST_INPUT, peer, "it speaks \"%s\"", p->address.transport);
    TRY(e->transport->connect(e, peer, p->address.own));
    p->connected = true;
    return ST_OK;
}

/* ---- errors ---- */

enum status endpoint_fail(struct endpoint *e, enum status st, uint32_t peer, const char *format, ...)
{
    va_list args;
    size_t at;

    assert(st < 0);
    if (e->failed < 0)
        return e->failed;
    e->failed = st;
    snprintf(e->error, sizeof e->error, "%s: ", e->transport->name);
    at = strlen(e->error);
    if (peer != NO_PEER)
        snprintf(e->error + at, sizeof e->error - at, "%s: ", e->peers[peer].address.name);
    at = strlen(e->error);
    va_start(args, format);
    vsnprintf(e->error + at, sizeof e->error - at, format, args);
    va_end(args);
    return st;
}

const char *endpoint_error(const struct endpoint *e)
{
    return e->error;
}

/* ---- puts ---- */

static void check_put(const struct endpoint *e, const struct put *p)
{
    const struct endpoint_address *a;

    assert(p->peer < e->config.peers && e->peers[p->peer].connected);
    a = &e->peers[p->peer].address;
    assert(p->flag < a->flag_count);
    assert(p->bytes <= e->config.window.bytes && p->from <= e->config.window.bytes - p->bytes);
    assert(p->bytes <= a->window_bytes && p->to <= a->window_bytes - p->bytes);
}

static void note_started(struct endpoint *e, const struct put *p, net_slot slot)
{
    struct endpoint_peer *peer = &e->peers[p->peer];

    e->slots[slot] = (struct pending_put){.id = p->id, .peer = p->peer};
    if (peer->pending++ == 0)
        peer->progress_ns = 0;
}

enum status endpoint_put(struct endpoint *e, const struct put *puts, uint32_t count, uint32_t *started)
{
    uint32_t take = count < e->free_count ? count : e->free_count;
    const net_slot *slots = e->free_slots + e->free_count - take;
    enum status st;

    *started = 0;
    if (e->failed < 0)
        return e->failed;
    for (uint32_t i = 0; i < take; i++)
        check_put(e, &puts[i]);
    st = take > 0 ? e->transport->put(e, puts, slots, take, started) : ST_OK;
    for (uint32_t i = 0; i < *started; i++)
        note_started(e, &puts[i], slots[i]);
    /* The slots that were used are the first ones of the last `take`. */
    memmove(e->free_slots + e->free_count - take, slots + *started, (take - *started) * sizeof *slots);
    e->free_count -= *started;
    if (st < 0)
        return st;
    return *started < count ? ST_BUSY : ST_OK;
}

void endpoint_complete(struct endpoint *e, net_slot slot)
{
    struct endpoint_peer *peer = &e->peers[e->slots[slot].peer];

    assert(slot < e->config.depth && peer->pending > 0);
    peer->pending--;
    peer->progress_ns = 0;
    e->completed[e->completed_count++] = e->slots[slot].id;
    e->free_slots[e->free_count++] = slot;
}

uint32_t endpoint_pending(const struct endpoint *e)
{
    return e->config.depth - e->free_count;
}

/* ---- progress ---- */

static enum status watch_peers(struct endpoint *e)
{
    uint64_t now = clock_now_ns(), timeout_ns = e->config.timeout_ps / 1000;

    for (uint32_t i = 0; i < e->config.peers; i++) {
        struct endpoint_peer *p = &e->peers[i];

        p->progress_ns = p->progress_ns ? p->progress_ns : now;
        if (p->pending > 0 && now - p->progress_ns > timeout_ns)
            return endpoint_fail(e, ST_HANG, i, "%u puts, none completed for %.1f s", p->pending,
                                 (double)timeout_ns * 1e-9);
    }
    return ST_OK;
}

enum status endpoint_poll(struct endpoint *e, uint64_t *ids, uint32_t max, uint32_t *count)
{
    enum status st;

    *count = 0;
    if (e->failed < 0)
        return e->failed;
    e->completed = ids;
    e->completed_count = 0;
    st = e->transport->poll(e, max);
    assert(e->completed_count <= max);
    *count = e->completed_count;
    if (st < 0 || ++e->polls < CLOCK_EVERY)
        return st;
    e->polls = 0;
    return watch_peers(e);
}

bool endpoint_raise(struct endpoint *e, uint64_t flag, uint64_t value)
{
    if (flag >= e->self.flag_count)
        return false;
    __atomic_store_n((uint64_t *)e->config.flags.base + flag, value, __ATOMIC_RELEASE);
    return true;
}
