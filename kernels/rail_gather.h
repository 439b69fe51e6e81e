/* AllGather between nodes: ranks of one rail bring their owners' chunks to each other.
 *
 *   direct   every rank puts its own chunks to every other node, nearest successor first: one hop each
 *   ring     every rank puts its own chunks to the next node and forwards what arrives, except the chunks
 *            that the next node owns: N - 1 hops, but only one neighbour
 *
 * Either way each byte enters each node once, and owners arrive in the order of tile_grid_owner(). */
#ifndef KERNELS_RAIL_GATHER_H
#define KERNELS_RAIL_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/world.h"

enum rail_algorithm { RAIL_RING, RAIL_DIRECT }; /* in the order of RAIL_CHOICES */
#define RAIL_CHOICES "ring|direct"

struct rail_gather {
    struct world world;
    enum rail_algorithm algorithm;
    uint64_t (*chunks)(const void *layout, uint32_t owner); /* how many chunks an owner has */
    const void *layout;
};

struct rail_item {
    uint32_t owner; /* the rank whose chunk it is; on the own rail */
    uint64_t chunk;
    uint32_t to;    /* sends: the rank it goes to */
    bool forwarded; /* sends: it has to arrive here first */
};

/* What a rank puts, and what arrives at it, in order. */
uint64_t rail_gather_sends(const struct rail_gather *g, uint32_t rank);
void rail_gather_send(const struct rail_gather *g, uint32_t rank, uint64_t i, struct rail_item *out);
uint64_t rail_gather_arrivals(const struct rail_gather *g, uint32_t rank);
void rail_gather_arrival(const struct rail_gather *g, uint32_t rank, uint64_t i, struct rail_item *out);

#endif
