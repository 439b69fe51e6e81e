/* The dispatch of tokens to experts that moe_dispatch_gemm.c and moe_dispatch_ffn_combine.c share: layout in
 * moe_dispatch.c, tasks in moe_dispatch_tasks.c.
 *
 *   control   ranks tell each other their rows of the table (rails by put, nodes by copy); two routes
 *             (core/route.h) turn it into lists: what to send, what comes and where it stands
 *   pack      per other node: gathers the own tokens that go there, each once, chunk by chunk
 *   send      puts chunks to the own rail; each raises landed[node, chunk].  A chunk holds as many rows as
 *             there are: traffic between nodes is what the routing asks for, and no more
 *   relay     says to the node what has landed: ready[gpu, node, chunk]; and ends the epoch
 *   gather    pulls rows from wherever in the node they are, waiting row by row for the chunk a row is in: each
 *             row once, in parts of `gather_rows`, or an entry's rows together, one for each of its pairs
 *
 * Entries stand in the order in which their rows can be there, so experts start on the node's own tokens.
 *
 * How the first GEMM finds an entry's rows (option `rows`):
 *
 *   once      in a compact buffer, by index, each row behind the flag of the part that brings it: what crosses
 *             the links of the node is each token once, however many experts of a rank want it
 *   expanded  behind each other, as grouped GEMMs of libraries want them: a copy for each pair
 *   in_place  by index where peers hold them, behind the flag of the chunk: nothing is gathered, but what is a
 *             peer's crosses once for each column of tiles
 *
 * Peers pull from `held`; each pull counts in `pulled`, and the epoch's last task waits for all of them and for
 * all puts.  Work lists and counts say how much there is; queues are as long as the capacity allows, and what
 * is empty only signals.
 *
 * There are no credits.  A rank ends an epoch only when it has heard from its whole rail (`told`) and its whole
 * node (`pulled`), so they have begun that epoch and are done with the one before; what others write here has two
 * copies or more, and is written again two epochs later at the earliest. */
#ifndef KERNELS_MOE_DISPATCH_H
#define KERNELS_MOE_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/kernel.h"
#include "core/route.h"
#include "kernels/gate.h"

enum moe_source { MOE_SOURCE_EXPANDED, MOE_SOURCE_ONCE, MOE_SOURCE_IN_PLACE };

/* The first member of a kernel's parameters. */
struct moe_params {
    uint64_t comm_sms, send_sms;
    uint64_t chunk_bytes, gather_rows;
    uint64_t tile_m, tile_n;
    uint64_t depth;
    enum moe_source source;
    bool join;
};

#define MOE_AT(member) offsetof(struct moe_params, member)

/* The rows that both kernels' tables have. */
/* clang-format off */
#define MOE_OPTIONS                                                                                       \
    {"comm_sms", OPTION_COUNT, MOE_AT(comm_sms), "16", 1, 1024, "4|8|16|24|32|48",                        \
     "workers that route, pack and gather rows, and combine them where that is done"},                    \
    {"send_sms", OPTION_COUNT, MOE_AT(send_sms), "1", 1, 64, "1|2|4",                                     \
     "workers that issue puts to other nodes (none with one node)"},                                      \
    {"chunk", OPTION_SIZE, MOE_AT(chunk_bytes), "512KiB", 1, 1ull << 32,                                  \
     "128KiB|256KiB|512KiB|1MiB|2MiB|4MiB",                                                               \
     "bytes of tokens per put, rounded to whole rows"},                                                   \
    {"gather_rows", OPTION_COUNT, MOE_AT(gather_rows), "32", 1, 1024, "16|32|64|128",                     \
     "rows that one task gathers; expanded: at most those of a tile"},                                    \
    {"rows", OPTION_CHOICE, MOE_AT(source), "expanded", 0, 0, "expanded|once|in_place",                   \
     "tokens that experts compute on: gathered for each expert, once a rank and found by index, or read " \
     "by index where they are"},                                                                          \
    {"tile_m", OPTION_COUNT, MOE_AT(tile_m), "128", 8, 1024, NULL,                                        \
     "rows of an output tile, and of a work-list entry"},                                                 \
    {"depth", OPTION_COUNT, MOE_AT(depth), "2", 2, 8, NULL,                                               \
     "copies of what other ranks write, used in turn by epochs"}
/* clang-format on */

struct moe_dispatch {
    struct world world;
    struct moe_problem problem;
    struct gate gate;
    struct route send, receive;
    bool returns; /* results travel back: lists are aligned, weights travel with their tokens */
    enum moe_source source;
    uint64_t lead;                      /* gathers that stand in a queue of their own, for everybody to do first */
    uint64_t puts_beside, pulls_beside; /* what the kernel itself adds to `sent` and, from each rank, to `pulled` */

    uint64_t shard;                         /* tokens of a rank, the largest one's */
    uint64_t chunk_rows, chunks, slot_rows; /* of one rank's tokens for one node */
    uint64_t capacity;                      /* rows of a rank's experts */
    uint64_t entries, parts;                /* of the work list; gathers per entry, if expanded */
    uint64_t gathers;                       /* in all */
    uint64_t gather_rows, tile_m;
    uint32_t depth;

    /* Buffers; control ones: table, counts, send_index, index, list, and for the way back send_back, came, back. */
    uint32_t table, counts, send_index, index, list;
    uint32_t send_back, came, back;
    uint32_t pulls, pull_count;    /* if once: rows of the node's stacked `held` to gather */
    uint32_t held;                 /* [node][slot_rows]: tokens that came over the own rail, and the own ones */
    uint32_t outbox;               /* the same, going */
    uint32_t rows;                 /* of the own experts: once, or one for each pair; empty if in place */
    uint32_t scores, score_outbox; /* weights of the tokens in held and outbox: [., top_k] */

    /* Flags. */
    uint32_t told, known;                  /* a node's rows of the table: put here [node]; at every rank [gpu][node] */
    uint32_t routed;                       /* [route_kind] */
    uint32_t packed, landed;               /* [node][chunk] */
    uint32_t ready;                        /* [gpu][node][chunk] */
    uint32_t gathered;                     /* once: [gather]; expanded: [entry], counts parts */
    uint32_t pulled;                       /* [gpu], counts its gathers, and what else it pulls */
    uint32_t scores_packed, scores_landed; /* [node] */

    uint32_t control_queue, pack_queue, send_queue, relay_queue, gather_queue;
    uint32_t lead_queue; /* if there is a lead */
};

/* Fills in the sizes, for the world, the problem, `returns` and `lead` that *g has.  `lead` comes in the unit of
 * what is gathered together, parts or, expanded, entries; of that as much as there is. */
void moe_dispatch_plan(struct moe_dispatch *g, const struct moe_params *params);

static inline uint64_t moe_gathered_flags(const struct moe_dispatch *g)
{
    return g->source == MOE_SOURCE_EXPANDED ? g->entries : g->gathers;
}

/* In place of gathers, `tasks` of the kernel pull from each rank. */
static inline uint64_t moe_pulls_in_place(const struct moe_dispatch *g, uint64_t tasks)
{
    return g->source == MOE_SOURCE_IN_PLACE ? tasks : 0;
}

/* Refuses what does not fit; `flags`: those that the kernel has beside these. */
enum status moe_dispatch_check(const struct moe_dispatch *g, const struct moe_params *params,
                               const struct machine *machine, uint64_t flags, struct complaint *c);

/* Adds buffers, flags and queues, and fills in the routes. */
void moe_dispatch_add(struct moe_dispatch *g, struct program *p);

/* The inputs: table, tokens and, where they travel, weights.  Returns how many slices. */
uint32_t moe_dispatch_inputs(const struct moe_dispatch *g, uint32_t rank, struct io_slice *out);

/* Each returns false where the queue or flag is not the dispatch's. */
bool moe_dispatch_length(const struct moe_dispatch *g, uint32_t queue, uint64_t *length_out);
bool moe_dispatch_task(const struct moe_dispatch *g, uint32_t rank, uint32_t queue, uint64_t i, struct task *t);
bool moe_dispatch_total(const struct moe_dispatch *g, uint32_t rank, uint32_t flag, uint64_t *total_out);

/* The first GEMM of an entry: its `a` and whatever says where its rows are, and what it waits for and signals on
 * their account.  `here`: all of them are, which the caller waits for. */
void moe_dispatch_take(const struct moe_dispatch *g, uint32_t rank, uint64_t entry, bool here, struct task *t);

/* Waits until all rows of all entries are here. */
void moe_dispatch_wait_all(const struct moe_dispatch *g, struct task *t);

/* What tasks of both kernels are made of. */
static inline uint64_t moe_others(const struct moe_dispatch *g)
{
    return g->world.nodes - 1;
}

/* The node that stands `step` behind the rank's own. */
static inline uint32_t moe_node_after(const struct moe_dispatch *g, uint32_t rank, uint64_t step)
{
    return (uint32_t)((world_node(g->world, rank) + step) % g->world.nodes);
}

static inline uint32_t moe_rail_mate(const struct moe_dispatch *g, uint32_t rank, uint32_t node)
{
    return world_rank(g->world, node, world_gpu(g->world, rank));
}

static inline struct operand moe_rows(uint32_t rank, uint32_t buffer, uint64_t row, uint64_t cols)
{
    return (struct operand){rank, buffer, row * cols, cols};
}

/* A put to the rail mate on that node, which raises its flag. */
void moe_put_to(const struct moe_dispatch *g, uint32_t rank, uint32_t node, uint32_t flag, struct task *t);

#endif
