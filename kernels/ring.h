/* Ring attention's map: who owns which stripe of the sequence, what has to travel
 * where, and in which order it arrives. */
#ifndef KERNELS_RING_H
#define KERNELS_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/attention.h"
#include "core/world.h"

/* In the order of RING_LAYOUTS: rank r owns stripes 2r and 2r + 1; or r and, counted from the end, r, so that
 * with a causal mask every rank has as many pairs to attend to. */
enum ring_layout { LAYOUT_RUN, LAYOUT_ZIGZAG };
#define RING_LAYOUTS "run|zigzag"

#define RING_SLOTS 2 /* stripes of a rank; slot 0 is the earlier one */

/* Stripes of keys and values on their way: from this rank to the next GPU, or to a node of the rail. */
struct ring_lane {
    uint32_t stripe, to; /* to: rank */
};

struct ring_lanes {
    struct ring_lane *list;
    uint32_t count;
};

struct ring {
    struct world world;
    struct attention_problem problem; /* the global one: with stripes */
    enum ring_layout layout;

    /* By rank, made by ring_create(). */
    struct ring_lanes *copies, *puts;
    uint32_t *walks;      /* [rank][slot][2 * ranks]: stripes that the slot's queries see, as they arrive */
    uint32_t *walk_sizes; /* [rank][slot] */
};

/* False: out of memory; ring_destroy() is to be called all the same. */
bool ring_create(struct ring *r, struct world world, const struct attention_problem *problem, enum ring_layout layout);
void ring_destroy(struct ring *r);

uint32_t ring_stripe(const struct ring *r, uint32_t rank, uint32_t slot);
uint32_t ring_owner(const struct ring *r, uint32_t stripe);

/* The index-th stripe that the queries of a slot meet. */
uint32_t ring_walk(const struct ring *r, uint32_t rank, uint32_t slot, uint32_t index);
uint32_t ring_walk_size(const struct ring *r, uint32_t rank, uint32_t slot);

/* Whether another rank's stripe comes to this rank, to be used here or passed on. */
bool ring_arrives(const struct ring *r, uint32_t rank, uint32_t stripe);

#endif
