/* Which ranks there are.  rank = node * gpus_per_node + gpu; ranks with one gpu index form a rail. */
#ifndef CORE_WORLD_H
#define CORE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

struct world {
    uint32_t nodes;
    uint32_t gpus_per_node;
};

static inline uint32_t world_ranks(struct world w)
{
    return w.nodes * w.gpus_per_node;
}

static inline uint32_t world_node(struct world w, uint32_t rank)
{
    return rank / w.gpus_per_node;
}

static inline uint32_t world_gpu(struct world w, uint32_t rank)
{
    return rank % w.gpus_per_node;
}

static inline uint32_t world_rank(struct world w, uint32_t node, uint32_t gpu)
{
    return node * w.gpus_per_node + gpu;
}

static inline bool world_same_node(struct world w, uint32_t a, uint32_t b)
{
    return world_node(w, a) == world_node(w, b);
}

/* First item of part `i` when `total` items are cut into `parts` nearly equal runs; i == parts gives
 * the end.  Parts differ by at most one item and may be empty. */
static inline uint64_t part_begin(uint64_t total, uint64_t parts, uint64_t i)
{
    return total / parts * i + (total % parts) * i / parts;
}

static inline uint64_t part_size(uint64_t total, uint64_t parts, uint64_t i)
{
    return part_begin(total, parts, i + 1) - part_begin(total, parts, i);
}

static inline uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
