/* Which puts have been delivered, where a provider keeps the order of what is sent to a peer: an acknowledgement
 * then covers all that was started before, so only some puts ask for one.  Where it does not, each asks. */
#ifndef BACKENDS_NET_OFI_ACKS_H
#define BACKENDS_NET_OFI_ACKS_H

#include "backends/net/transport.h"

struct ofi_acks_put { /* by slot */
    uint32_t peer;
    net_slot next;   /* to the same peer */
    uint64_t number; /* among those to the peer, from 1 */
    bool done;       /* none of its operations is under way */
};

#define OFI_ACKS_NONE UINT32_MAX

struct ofi_acks_peer {
    net_slot first, last;             /* puts not delivered yet as far as is known; first may be OFI_ACKS_NONE */
    uint64_t started, asked, covered; /* numbers of puts: the last one; the last one that asked; the last one covered */
};

struct ofi_acks {
    struct ofi_acks_put *puts;
    struct ofi_acks_peer *peers;
    net_slot *delivered; /* a ring, to be told */
    uint64_t delivered_first, delivered_end;
    uint32_t depth, every; /* of so many puts in a row to a peer the last one asks; 1: nothing is ordered */
};

bool ofi_acks_open(struct ofi_acks *a, uint32_t peers, uint32_t depth); /* false: no memory */
void ofi_acks_close(struct ofi_acks *a);

/* A put to `peer` starts, behind all before.  True: it has to ask for an acknowledgement. */
bool ofi_acks_start(struct ofi_acks *a, uint32_t peer, net_slot slot);

/* All its operations are completed; with `asked` they have been acknowledged. */
void ofi_acks_done(struct ofi_acks *a, net_slot slot, bool asked);

/* The number of the last put to `peer` when nothing that was asked for covers it, else 0: an operation behind
 * it has to ask. */
uint64_t ofi_acks_uncovered(const struct ofi_acks *a, uint32_t peer);
void ofi_acks_asked(struct ofi_acks *a, uint32_t peer, uint64_t number);
void ofi_acks_covered(struct ofi_acks *a, uint32_t peer, uint64_t number);

/* The next delivered put, once each.  False: none. */
bool ofi_acks_next(struct ofi_acks *a, net_slot *slot);

#endif
