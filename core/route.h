/* OP_ROUTE: count, scan, place.  A routing table says which experts each token goes to; two kinds of task turn
 * it into what the other tasks of an epoch select by.
 *
 * Tokens [0, tokens) are sharded over ranks as part_begin() says, experts likewise.  Row t of the table holds
 * `top_k` different experts.  On every rank each node has a slot of `slot_rows` rows in the buffer of tokens
 * held there, for the tokens that came from the rank of the own rail on that node, in the order in which they
 * were sent; the own node's slot holds the own shard.
 *
 *   ROUTE_SEND     reads the own shard's rows of the table.  Per other node: how many of the own tokens go
 *                  there (those with an expert on it, each once), and which.  With `back` also, for each own
 *                  token and each node, in which row of that node's slot a sum for the token comes back:
 *                  INDEX_DROPPED where it has no expert; from the own node, the token's place in the shard.
 *   ROUTE_RECEIVE  reads all of the table.  The (token, expert) pairs of the own experts, grouped by
 *                  expert, and within an expert in the order in which tokens can be there: by the distance of
 *                  their node, counted backwards from the own one, then by place in the shard, then by GPU.
 *                  An index value names the token's row among the node's stacked copies of the held buffer.
 *                  The work list cuts each expert's rows into entries of at most `tile_rows`, sorted so that
 *                  what can be there first stands first.  `aligned`: the rows of entry e, and their index values,
 *                  stand from row e * tile_rows on; else experts stand behind each other without gaps.
 *                  With `back` (which needs `aligned`) also, for each row held from the own rail or the own shard
 *                  and each choice of its token, where the row of that pair stands among the node's stacked copies
 *                  of a buffer of route_rows_max() rows: INDEX_DROPPED where its expert is on another node, or the
 *                  pair was dropped; and `counts`: how many rows each slot holds.
 *                  With `pulls` it lists the rows of the stack that the own experts need, each once, and how many
 *                  they are; an index value is then the place of its row in that list.  Rows stand in the order in
 *                  which the work list mentions them first, entry by entry and in an entry row by row: no entry has
 *                  to wait for rows that only later ones need.
 *
 * Pairs of a rank beyond `capacity` rows, counted in order of tokens and then of choices, are dropped. */
#ifndef CORE_ROUTE_H
#define CORE_ROUTE_H

#include <stdint.h>

#include "core/program.h"
#include "core/world.h"

enum route_kind { ROUTE_SEND, ROUTE_RECEIVE };

struct route {
    enum route_kind kind;
    struct world world;
    uint64_t tokens, experts, top_k;
    uint64_t slot_rows, capacity, tile_rows;
    bool drop;    /* false: a dropped pair fails the run */
    bool aligned; /* RECEIVE */

    /* Control buffers of the own rank. */
    uint32_t table;  /* [tokens, top_k] */
    uint32_t counts; /* [nodes, 1]; SEND: tokens that go to each node, 0 for the own one; RECEIVE: written with
                        `back` alone */
    uint32_t index;  /* SEND: [nodes * slot_rows, 1]: place in the own shard; RECEIVE: [route_rows_max(), 1] */
    uint32_t list;   /* RECEIVE: [route_entries_max(), 3] */
    uint32_t back;   /* SEND: [slot_rows, nodes]; RECEIVE: [nodes * slot_rows, top_k]; or NO_BUFFER */

    /* RECEIVE: [route_pulls_max(), 1] and [1, 1], or both NO_BUFFER; SEND leaves them alone. */
    uint32_t pulls, pull_count;
};

/* Entries of a work list: full tiles and, for each expert, one that is not. */
static inline uint64_t route_entries_max(uint64_t capacity, uint64_t tile_rows, uint64_t experts)
{
    return capacity / tile_rows + experts;
}

/* Rows that its entries can take up, `experts` of them on the rank that has most. */
static inline uint64_t route_rows_max(const struct route *r)
{
    uint64_t experts = ceil_div(r->experts, world_ranks(r->world));

    return r->aligned ? route_entries_max(r->capacity, r->tile_rows, experts) * r->tile_rows : r->capacity;
}

/* Rows of the stack that a rank's experts can need: a token has one place in it. */
static inline uint64_t route_pulls_max(const struct route *r)
{
    return min_u64(r->capacity, r->tokens);
}

static inline uint64_t route_expert_begin(const struct route *r, uint32_t rank)
{
    return part_begin(r->experts, world_ranks(r->world), rank);
}

static inline uint64_t route_expert_count(const struct route *r, uint32_t rank)
{
    return part_size(r->experts, world_ranks(r->world), rank);
}

/* The rows of the table that a route reads. */
static inline struct operand route_reads(const struct route *r, uint32_t rank, uint64_t *rows_out)
{
    uint32_t ranks = world_ranks(r->world);
    uint64_t first = r->kind == ROUTE_SEND ? part_begin(r->tokens, ranks, rank) : 0;

    *rows_out = r->kind == ROUTE_SEND ? part_size(r->tokens, ranks, rank) : r->tokens;
    return (struct operand){rank, r->table, first * r->top_k, r->top_k};
}

/* The part of `total` items that holds item `i`. */
static inline uint32_t part_of(uint64_t total, uint32_t parts, uint64_t i)
{
    uint32_t part = (uint32_t)(i * parts / total);

    while (part_begin(total, parts, part + 1) <= i)
        part++;
    while (part_begin(total, parts, part) > i)
        part--;
    return part;
}

#endif
