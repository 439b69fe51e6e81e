/* Which output tiles there are and in which order a rank computes them.
 *
 * The m rows of a GEMM are dealt to the ranks, their *owners*, in nearly equal runs; tiles never straddle
 * two owners' rows.  Inside an owner, tiles are visited in supergroups of `group` row tiles, column by
 * column, so that a wave of workers shares operands in the L2 cache.  A tile's place in that order is its
 * *slot*: ranks agree on it, and consecutive slots are computed one after another. */
#ifndef KERNELS_TILE_ORDER_H
#define KERNELS_TILE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/world.h"

enum tile_order {
    ORDER_OWNER, /* one owner after the other, from the own rank outwards */
    ORDER_STAGE, /* own rank, then group by group over the node's others, then over each other node's */
    ORDER_ALL,   /* group by group over all owners */
    ORDER_RANK,  /* owners 0, 1, 2 ...: every rank at the same one.  The naive order, to compare with */
};

struct tile_grid {
    struct world world;
    uint64_t m, n;
    uint64_t tile_m, tile_n;
    uint64_t group; /* row tiles; see tile_grid_init */
    enum tile_order order;
    bool own_last; /* the order of owners reversed: remote rows first, because they travel */
};

struct tile {
    uint32_t owner;
    uint64_t slot;
    uint64_t row, rows, col, cols; /* in the m x n result */
};

/* Cuts `group` down to the smallest owner's number of row tiles. */
void tile_grid_init(struct tile_grid *g);

/* The i-th owner that `rank` visits: from itself over its node to the nodes before it in the ring, the
 * order in which rows arrive on a ring or by direct puts; with own_last the other way round. */
uint32_t tile_grid_owner(const struct tile_grid *g, uint32_t rank, uint64_t i);

uint64_t tile_grid_columns(const struct tile_grid *g);
uint64_t tile_grid_row_tiles(const struct tile_grid *g, uint32_t owner);
uint64_t tile_grid_owner_tiles(const struct tile_grid *g, uint32_t owner);
uint64_t tile_grid_owner_tiles_max(const struct tile_grid *g);
uint64_t tile_grid_tiles(const struct tile_grid *g);

/* The index-th tile that `rank` computes; index < tile_grid_tiles(). */
void tile_grid_at(const struct tile_grid *g, uint32_t rank, uint64_t index, struct tile *out);

void tile_grid_slot(const struct tile_grid *g, uint32_t owner, uint64_t slot, struct tile *out);

#endif
