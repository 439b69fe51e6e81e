#include "backends/net/ofi_acks.h"

#include <stdlib.h>
#include <string.h>

bool ofi_acks_open(struct ofi_acks *a, uint32_t peers, uint32_t depth)
{
    a->puts = calloc(depth, sizeof *a->puts);
    a->peers = calloc(peers, sizeof *a->peers);
    a->delivered = calloc(depth, sizeof *a->delivered);
    a->depth = depth;
    a->every = 1;
    for (uint32_t i = 0; a->peers && i < peers; i++)
        a->peers[i].first = OFI_ACKS_NONE;
    return a->puts && a->peers && a->delivered;
}

void ofi_acks_close(struct ofi_acks *a)
{
    free(a->puts);
    free(a->peers);
    free(a->delivered);
    memset(a, 0, sizeof *a);
}

bool ofi_acks_start(struct ofi_acks *a, uint32_t peer, net_slot slot)
{
    struct ofi_acks_peer *p = &a->peers[peer];

    a->puts[slot] = (struct ofi_acks_put){.peer = peer, .next = OFI_ACKS_NONE, .number = ++p->started};
    if (a->every == 1)
        return true; /* no list: they are delivered in any order */
    if (p->first == OFI_ACKS_NONE)
        p->first = slot;
    else
        a->puts[p->last].next = slot;
    p->last = slot;
    if (p->started - p->asked < a->every)
        return false;
    p->asked = p->started;
    return true;
}

static void deliver(struct ofi_acks *a, net_slot slot)
{
    a->delivered[a->delivered_end++ % a->depth] = slot;
}

/* In order: the first one that is not covered, or still under way, holds up the others. */
static void deliver_covered(struct ofi_acks *a, struct ofi_acks_peer *p)
{
    while (p->first != OFI_ACKS_NONE && a->puts[p->first].done && a->puts[p->first].number <= p->covered) {
        deliver(a, p->first);
        p->first = a->puts[p->first].next;
    }
}

void ofi_acks_done(struct ofi_acks *a, net_slot slot, bool asked)
{
    struct ofi_acks_put *x = &a->puts[slot];

    x->done = true;
    if (a->every == 1)
        deliver(a, slot);
    else
        ofi_acks_covered(a, x->peer, asked ? x->number : 0);
}

uint64_t ofi_acks_uncovered(const struct ofi_acks *a, uint32_t peer)
{
    const struct ofi_acks_peer *p = &a->peers[peer];

    return a->every > 1 && p->asked < p->started ? p->started : 0;
}

void ofi_acks_asked(struct ofi_acks *a, uint32_t peer, uint64_t number)
{
    a->peers[peer].asked = number;
}

void ofi_acks_covered(struct ofi_acks *a, uint32_t peer, uint64_t number)
{
    struct ofi_acks_peer *p = &a->peers[peer];

    p->covered = number > p->covered ? number : p->covered;
    deliver_covered(a, p);
}

bool ofi_acks_next(struct ofi_acks *a, net_slot *slot)
{
    if (a->delivered_first == a->delivered_end)
        return false;
    *slot = a->delivered[a->delivered_first++ % a->depth];
    return true;
}
