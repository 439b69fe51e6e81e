#include "backends/net/ofi_arrivals.h"

#include <stdlib.h>
#include <string.h>

bool ofi_arrivals_open(struct ofi_arrivals *a, uint32_t peers)
{
    a->of_peer = calloc(peers, sizeof *a->of_peer);
    a->depth = calloc(peers, sizeof *a->depth);
    a->peers = peers;
    return a->of_peer && a->depth;
}

bool ofi_arrivals_add_peer(struct ofi_arrivals *a, uint32_t peer, uint32_t depth)
{
    a->of_peer[peer] = calloc(depth, sizeof *a->of_peer[peer]);
    a->depth[peer] = depth;
    return a->of_peer[peer] != NULL;
}

void ofi_arrivals_close(struct ofi_arrivals *a)
{
    for (uint32_t i = 0; a->of_peer && i < a->peers; i++)
        free(a->of_peer[i]);
    free(a->of_peer);
    free(a->depth);
    memset(a, 0, sizeof *a);
}

static struct ofi_arrival *find(struct ofi_arrivals *a, uint32_t tag)
{
    uint32_t peer = tag >> 16, slot = tag & 0xffff;

    return peer < a->peers && a->of_peer[peer] && slot < a->depth[peer] ? &a->of_peer[peer][slot] : NULL;
}

static bool raise_when_whole(struct endpoint *e, struct ofi_arrival *x)
{
    struct ofi_arrival whole = *x;

    if (!x->signalled || x->arrived < x->wanted)
        return true;
    memset(x, 0, sizeof *x); /* for the slot's next put */
    return endpoint_raise(e, whole.flag, whole.value);
}

bool ofi_arrivals_piece(struct ofi_arrivals *a, struct endpoint *e, uint32_t tag)
{
    struct ofi_arrival *x = find(a, tag);

    if (!x)
        return false;
    x->arrived++;
    return raise_when_whole(e, x);
}

bool ofi_arrivals_signal(struct ofi_arrivals *a, struct endpoint *e, const struct ofi_signal *s)
{
    struct ofi_arrival *x = find(a, s->tag);

    if (!x || x->signalled)
        return false;
    x->signalled = true;
    x->wanted = s->pieces;
    x->flag = s->flag;
    x->value = s->value;
    return raise_when_whole(e, x);
}
