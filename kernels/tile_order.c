#include "kernels/tile_order.h"

#include <assert.h>

static uint64_t row_tiles_min(const struct tile_grid *g)
{
    return ceil_div(g->m / world_ranks(g->world), g->tile_m); /* parts differ by one row at most */
}

static uint64_t row_tiles_max(const struct tile_grid *g)
{
    return ceil_div(ceil_div(g->m, world_ranks(g->world)), g->tile_m);
}

void tile_grid_init(struct tile_grid *g)
{
    g->group = max_u64(1, min_u64(g->group, row_tiles_min(g)));
}

static uint32_t owner_outwards(struct world w, uint32_t rank, uint64_t i)
{
    uint32_t step = (uint32_t)(i / w.gpus_per_node), turn = (uint32_t)(i % w.gpus_per_node);
    uint32_t node = (world_node(w, rank) + w.nodes - step) % w.nodes;

    return world_rank(w, node, (world_gpu(w, rank) + turn) % w.gpus_per_node);
}

uint32_t tile_grid_owner(const struct tile_grid *g, uint32_t rank, uint64_t i)
{
    if (g->order == ORDER_RANK)
        return (uint32_t)i;
    return owner_outwards(g->world, rank, g->own_last ? world_ranks(g->world) - 1 - i : i);
}

uint64_t tile_grid_columns(const struct tile_grid *g)
{
    return ceil_div(g->n, g->tile_n);
}

uint64_t tile_grid_row_tiles(const struct tile_grid *g, uint32_t owner)
{
    return ceil_div(part_size(g->m, world_ranks(g->world), owner), g->tile_m);
}

uint64_t tile_grid_owner_tiles(const struct tile_grid *g, uint32_t owner)
{
    return tile_grid_row_tiles(g, owner) * tile_grid_columns(g);
}

uint64_t tile_grid_owner_tiles_max(const struct tile_grid *g)
{
    return row_tiles_max(g) * tile_grid_columns(g);
}

uint64_t tile_grid_tiles(const struct tile_grid *g)
{
    uint32_t ranks = world_ranks(g->world);
    uint64_t tiles = 0;

    if (row_tiles_min(g) == row_tiles_max(g))
        return ranks * tile_grid_owner_tiles_max(g);
    for (uint32_t owner = 0; owner < ranks; owner++)
        tiles += tile_grid_owner_tiles(g, owner);
    return tiles;
}

void tile_grid_slot(const struct tile_grid *g, uint32_t owner, uint64_t slot, struct tile *out)
{
    uint64_t begin = part_begin(g->m, world_ranks(g->world), owner);
    uint64_t end = part_begin(g->m, world_ranks(g->world), owner + 1);
    uint64_t first = slot / (g->group * tile_grid_columns(g)) * g->group; /* of the supergroup */
    uint64_t in_group = slot - first * tile_grid_columns(g);
    uint64_t height = min_u64(g->group, tile_grid_row_tiles(g, owner) - first);
    uint64_t row_tile = first + in_group % height, column = in_group / height;

    out->owner = owner;
    out->slot = slot;
    out->row = begin + row_tile * g->tile_m;
    out->rows = min_u64(g->tile_m, end - out->row);
    out->col = column * g->tile_n;
    out->cols = min_u64(g->tile_n, g->n - out->col);
}

/* A position among the owners [first, first + count) of a rank's visiting order. */
struct span {
    uint64_t first, count;
};

static uint64_t span_tiles(const struct tile_grid *g, uint32_t rank, struct span s)
{
    uint64_t tiles = 0;

    if (row_tiles_min(g) == row_tiles_max(g))
        return s.count * tile_grid_owner_tiles_max(g);
    for (uint64_t i = 0; i < s.count; i++)
        tiles += tile_grid_owner_tiles(g, tile_grid_owner(g, rank, s.first + i));
    return tiles;
}

static void at_one_by_one(const struct tile_grid *g, uint32_t rank, struct span s, uint64_t index, struct tile *out)
{
    uint64_t i = 0, tiles = tile_grid_owner_tiles_max(g);

    if (row_tiles_min(g) == row_tiles_max(g)) {
        i = index / tiles;
        index %= tiles;
    } else {
        while (index >= (tiles = span_tiles(g, rank, (struct span){s.first + i, 1}))) {
            index -= tiles;
            i++;
        }
    }
    tile_grid_slot(g, tile_grid_owner(g, rank, s.first + i), index, out);
}

static void at_group_by_group(const struct tile_grid *g, uint32_t rank, struct span s, uint64_t index, struct tile *out)
{
    uint64_t columns = tile_grid_columns(g), block = g->group * columns;
    uint64_t level = min_u64(index / (s.count * block), row_tiles_min(g) / g->group);

    index -= level * s.count * block;
    if (level < row_tiles_min(g) / g->group) { /* every owner has a whole group at this level */
        tile_grid_slot(g, tile_grid_owner(g, rank, s.first + index / block), level * block + index % block, out);
        return;
    }
    for (;; level++) { /* the last one or two levels: owners have what is left, or nothing */
        for (uint64_t i = 0; i < s.count; i++) {
            uint32_t owner = tile_grid_owner(g, rank, s.first + i);
            uint64_t row_tiles = tile_grid_row_tiles(g, owner), done = level * g->group;
            uint64_t here = row_tiles > done ? min_u64(g->group, row_tiles - done) * columns : 0;

            if (index < here) {
                tile_grid_slot(g, owner, level * block + index, out);
                return;
            }
            index -= here;
        }
    }
}

/* Stage 0 is the own rank, stage 1 the rest of its node, then a node each. */
static struct span stage_span(const struct tile_grid *g, uint64_t stage)
{
    uint64_t gpus = g->world.gpus_per_node;

    if (stage == 0)
        return (struct span){0, 1};
    if (stage == 1)
        return (struct span){1, gpus - 1};
    return (struct span){(stage - 1) * gpus, gpus};
}

/* The stage that holds the index-th tile; *index becomes its place there.  Where all owners have as many tiles, without
 * walking over the nodes. */
static uint64_t stage_of(const struct tile_grid *g, uint32_t rank, uint64_t *index)
{
    uint64_t each = tile_grid_owner_tiles_max(g), node = g->world.gpus_per_node * each;
    uint64_t stage = 0, tiles;

    if (row_tiles_min(g) == row_tiles_max(g) && *index >= node) {
        stage = 1 + *index / node;
        *index %= node;
        return stage;
    }
    while (*index >= (tiles = span_tiles(g, rank, stage_span(g, stage)))) {
        *index -= tiles;
        stage++;
    }
    return stage;
}

void tile_grid_at(const struct tile_grid *g, uint32_t rank, uint64_t index, struct tile *out)
{
    struct span all = {0, world_ranks(g->world)};

    if (g->order == ORDER_ALL) {
        at_group_by_group(g, rank, all, index, out);
    } else if (g->order == ORDER_STAGE) {
        assert(!g->own_last);
        uint64_t stage = stage_of(g, rank, &index);
        at_group_by_group(g, rank, stage_span(g, stage), index, out);
    } else {
        at_one_by_one(g, rank, all, index, out);
    }
}
