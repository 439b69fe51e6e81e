/* GEMM whose partial results are summed over all ranks: what gemm_rs.c and gemm_ar.c share.
 *
 * The owner of a tile is the rank whose rows it lies in.  Sums are built in two levels, each byte crossing
 * each wire once:
 *   node   every rank hands its tile of owner (y, q) to GPU q of its own node, the owner's *rail mate*,
 *          which adds the node's tiles
 *   rail   the rail mate puts the node's sum, in chunks of tiles, to the owner, which adds the nodes' sums
 * The result then stays with the owner (reduce-scatter), or goes to its node by stores and to the other
 * nodes by a rail gather (all-reduce).  A replicated reduce-scatter keeps it on the whole rail: the rail mate puts the
 * node's sum to every other node, and each adds for itself.
 *
 * Everything that travels is stored tile by tile, `tile_m` x `tile_n` elements each, so that chunks are
 * contiguous.  A tile's place is its slot (tile_order.h), on which ranks agree.  Sums add in the order of
 * ranks, then of nodes, so they repeat bit for bit. */
#ifndef KERNELS_GEMM_REDUCE_H
#define KERNELS_GEMM_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/kernel.h"
#include "kernels/gate.h"
#include "kernels/rail_gather.h"
#include "kernels/tile_order.h"

enum reduce_form {
    REDUCE_EPILOGUE, /* the rail mate's own tile adds the peers' tiles when they are there (late wait) */
    REDUCE_CREW,     /* all tiles go to an inbox; reducing workers add them */
    REDUCE_SWITCH,   /* tiles stay where they are computed; reducing workers load their sum over the node */
};

struct reduce_params {
    uint64_t send_sms, reduce_sms, comm_sms;
    uint64_t chunk_bytes;
    uint64_t tile_m, tile_n, group;
    uint32_t form, order, inter;
    uint64_t depth;
    bool join, replicate;
};

#define REDUCE_AT(member) offsetof(struct reduce_params, member)

/* The rows that both kernels' tables have. */
/* clang-format off */
#define REDUCE_OPTIONS                                                                              \
    {"reduce", OPTION_CHOICE, REDUCE_AT(form), "epilogue", 0, 0, "epilogue|crew|switch",            \
     "who adds the node's tiles: the owner's GEMM epilogue, reducing workers, or the switch where "  \
     "it can, for reducing workers that load the sum"},                                             \
    {"reduce_sms", OPTION_COUNT, REDUCE_AT(reduce_sms), "8", 1, 1024, "2|4|8|16|32",               \
     "workers that add tiles (none on one node with reduce: epilogue)"},                            \
    {"send_sms", OPTION_COUNT, REDUCE_AT(send_sms), "1", 1, 64, "1|2|4",                            \
     "workers that issue puts to other nodes, per kind of put (none with one node)"},               \
    {"chunk", OPTION_SIZE, REDUCE_AT(chunk_bytes), "256KiB", 1, 1ull << 32,                         \
     "64KiB|128KiB|256KiB|512KiB|1MiB|2MiB",                                                        \
     "bytes per put, rounded down to whole tiles, at least one"},                                   \
    {"tile_m", OPTION_COUNT, REDUCE_AT(tile_m), "128", 8, 1024, NULL, "rows of an output tile"},    \
    {"tile_n", OPTION_COUNT, REDUCE_AT(tile_n), "256", 8, 1024, NULL, "columns of an output tile"}, \
    {"group", OPTION_COUNT, REDUCE_AT(group), "4", 1, 1024, "4|8|16",                                \
     "row tiles of a supergroup, whose columns are visited together"},                              \
    {"order", OPTION_CHOICE, REDUCE_AT(order), "interleave", 0, 0, "interleave|rotate|rank",        \
     "owners group by group; one by one, own rank last; or 0, 1, 2 ..."},                           \
    {"depth", OPTION_COUNT, REDUCE_AT(depth), "2", 1, 8, NULL,                                      \
     "copies of the receive buffers, used in turn by epochs"},                                      \
    {"join", OPTION_BOOL, REDUCE_AT(join), "true", 0, 0, "false|true",                              \
     "computing workers help to reduce and publish when no tile is left"}
/* clang-format on */

#define NO_QUEUE UINT32_MAX

struct gemm_reduce {
    struct world world;
    struct problem problem;
    struct tile_grid grid;
    struct gate gate;
    struct rail_gather share, publish; /* all-reduce: by chunks, by tiles */
    bool all_reduce;
    bool unfused;
    bool replicate;               /* reduce-scatter over several nodes: every node keeps all rows */
    bool crew_form;               /* tiles are added by reduce tasks, not by the epilogue */
    bool in_place;                /* of all GPUs of the node at once, from where they were computed */
    uint32_t sources;             /* inbox tiles per sum: the node's, without the own one in the epilogue form */
    uint32_t depth;               /* of receive buffers */
    uint64_t slots;               /* per owner, the largest owner's number of tiles */
    uint32_t kept;                /* owners whose rows stay with a rank: 1, or one a node */
    uint64_t chunk_tiles, chunks; /* tiles per put; puts per owner, the largest owner's */

    /* Buffers; tile-wise ones are indexed by the functions below. */
    uint32_t a, b, c;
    uint32_t inbox;   /* [source][node y][slot]: tiles of the owners on my rail, from the node's ranks; in_place: my own
                         tiles, where [source] is the owners' rail */
    uint32_t outbox;  /* [node y][slot]: this node's sums for the owners on other nodes */
    uint32_t landing; /* [kept][node x][slot]: the nodes' sums of the tiles that stay here */
    uint32_t result;  /* [slot]: my final tiles, source of the puts of an all-reduce */
    uint32_t gathered; /* [node x][slot]: final tiles of my rail, from the other nodes */
    uint32_t partial;  /* [owner][slot]: unfused: everything computed, nothing sent */

    /* Flags. */
    uint32_t tile_in; /* [node y][slot][source]: a tile is in the inbox */
    uint32_t summed;  /* [node y][chunk]: counts tiles of the outbox */
    uint32_t landed;  /* [kept][chunk][node x]: raised by a put; for the own node counts tiles */
    uint32_t shared;  /* [chunk]: counts final tiles in `result` */
    uint32_t arrived; /* [node x][chunk]: raised by a put of the gather */
    uint32_t done;    /* [owner]: counts tiles of the owner that stand in C */
    uint32_t computed, go;

    uint32_t compute_queue, scatter_queue, reduce_queue, send_queue, combine_queue, share_queue, publish_queue;
};

/* Emits the program of either kernel. */
enum status gemm_reduce_emit(bool all_reduce, const struct problem *problem, struct world world,
                             const struct machine *machine, enum form form, const struct reduce_params *params,
                             struct program *p, struct complaint *c);

struct problem gemm_reduce_global(const struct problem *problem, struct world world);

/* ---- between gemm_reduce.c (layout) and gemm_reduce_tasks.c ---- */

uint64_t gemm_reduce_chunk_count(const struct gemm_reduce *g, uint32_t owner);
uint64_t gemm_reduce_chunk_size(const struct gemm_reduce *g, uint32_t owner, uint64_t chunk); /* tiles */

/* The i-th owner whose rows a rank keeps, and where they begin in its C. */
uint32_t gemm_reduce_kept(const struct gemm_reduce *g, uint32_t rank, uint32_t i);
uint64_t gemm_reduce_kept_row(const struct gemm_reduce *g, uint32_t rank, uint32_t owner);

uint64_t gemm_reduce_queue_length(const struct program *p, uint32_t rank, uint32_t queue);
void gemm_reduce_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *t);

#endif
