/* The receiver's half of a put whose bytes and signal travel apart, in any order: the flag is raised when
 * both are there. */
#ifndef BACKENDS_NET_OFI_ARRIVALS_H
#define BACKENDS_NET_OFI_ARRIVALS_H

#include "backends/net/transport.h"

/* A put's signal as a message.  Each of its pieces carries ofi_tag() as completion data. */
struct ofi_signal {
    uint64_t key; /* of the receiver's window: as secret as that */
    uint32_t tag;
    uint32_t pieces; /* of the put's bytes; 0: a bare signal */
    uint64_t flag, value;
};

#define OFI_DEPTH_MAX (1u << 16)
#define OFI_PEERS_MAX (1u << 16)

/* Names a put among all that are on their way to one receiver. */
static inline uint32_t ofi_tag(uint32_t sender, net_slot slot)
{
    return sender << 16 | slot;
}

struct ofi_arrival {
    uint32_t arrived, wanted; /* pieces; wanted counts once the signal is there */
    bool signalled;
    uint64_t flag, value;
};

struct ofi_arrivals {
    struct ofi_arrival **of_peer; /* [peer][the peer's slot]; NULL before it is connected */
    uint32_t *depth;
    uint32_t peers;
};

bool ofi_arrivals_open(struct ofi_arrivals *a, uint32_t peers); /* false: no memory */
bool ofi_arrivals_add_peer(struct ofi_arrivals *a, uint32_t peer, uint32_t depth);
void ofi_arrivals_close(struct ofi_arrivals *a);

/* False: nobody connected sends such a thing. */
bool ofi_arrivals_piece(struct ofi_arrivals *a, struct endpoint *e, uint32_t tag);
bool ofi_arrivals_signal(struct ofi_arrivals *a, struct endpoint *e, const struct ofi_signal *s);

#endif
