#include "backends/net/bootstrap_relay.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/run/relay_message.h"

#define ASK_MS 100

struct relay {
    const struct node_link *link;
    bool (*give_up)(void *owner);
    void *owner;
};

static enum status lost_parent(struct bootstrap *b)
{
    snprintf(b->error, sizeof b->error, "this node's own parent process is gone");
    return ST_IO;
}

/* Sends or receives all of it. */
static enum status transfer(struct bootstrap *b, bool out, void *data, size_t bytes)
{
    const struct relay *r = b->state;
    uint8_t *at = data;

    while (bytes > 0) {
        ssize_t n = out ? send(r->link->socket, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                        : recv(r->link->socket, at, bytes, MSG_DONTWAIT);

        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
            continue;
        }
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            return lost_parent(b);
        if (r->give_up(r->owner)) {
            snprintf(b->error, sizeof b->error, "stopped while it waited for the other nodes");
            return ST_INTERRUPTED;
        }
        poll(&(struct pollfd){.fd = r->link->socket, .events = out ? POLLOUT : POLLIN}, 1, ASK_MS);
    }
    return ST_OK;
}

/* Another node's child has failed. */
static enum status take_failure(struct bootstrap *b, const struct relay_message *m)
{
    const struct relay *r = b->state;
    char text[RELAY_TEXT_BYTES] = "";

    if (m->node >= b->size || m->bytes >= sizeof text)
        return lost_parent(b);
    TRY(transfer(b, false, text, m->bytes));
    snprintf(b->error, sizeof b->error, "node %u on %.60s has failed: %.160s", m->node, r->link->hosts[m->node], text);
    return ST_IO;
}

static enum status relay_allgather(struct bootstrap *b, const void *mine, size_t bytes, void *all)
{
    struct relay_message m = {.kind = RELAY_GATHER, .node = b->rank, .bytes = bytes};

    TRY(transfer(b, true, &m, sizeof m));
    TRY(transfer(b, true, (void *)(uintptr_t)mine, bytes));
    TRY(transfer(b, false, &m, sizeof m));
    if (m.kind == RELAY_FAILED)
        return take_failure(b, &m);
    if (m.kind != RELAY_GATHER || m.bytes != bytes * b->size)
        return lost_parent(b);
    return transfer(b, false, all, bytes * b->size);
}

static void relay_close(struct bootstrap *b)
{
    free(b->state);
}

static const struct bootstrap_ops relay_ops = {
    .name = "relay",
    .allgather = relay_allgather,
    .close = relay_close,
};

enum status bootstrap_relay_open(struct bootstrap *b, const struct node_link *link, bool (*give_up)(void *owner),
                                 void *owner)
{
    struct relay *r = calloc(1, sizeof *r);

    *b = (struct bootstrap){.ops = &relay_ops, .rank = link->node, .size = link->count, .state = r};
    if (!r) {
        snprintf(b->error, sizeof b->error, "no memory");
        return ST_MEMORY;
    }
    *r = (struct relay){.link = link, .give_up = give_up, .owner = owner};
    return ST_OK;
}

enum status bootstrap_relay_check(struct bootstrap *b)
{
    const struct relay *r = b->state;
    struct relay_message m;
    ssize_t n = recv(r->link->socket, &m, sizeof m, MSG_DONTWAIT | MSG_PEEK);

    assert(b->ops == &relay_ops);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return ST_OK;
    if (n <= 0)
        return lost_parent(b);
    if (n < (ssize_t)sizeof m)
        return ST_OK; /* the rest is on its way */
    TRY(transfer(b, false, &m, sizeof m));
    return m.kind == RELAY_FAILED ? take_failure(b, &m) : lost_parent(b);
}
