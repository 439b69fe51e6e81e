/* What moe_dispatch_gemm.c (layout) and moe_dispatch_tasks.c share. */
#ifndef KERNELS_MOE_DISPATCH_H
#define KERNELS_MOE_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/route.h"
#include "kernels/gate.h"

struct moe_dispatch {
    struct world       world;
    struct moe_problem problem;
    struct gate        gate;
    struct route       send, receive;
    uint64_t shard;                         /* tokens of a rank, the largest one's */
    uint64_t chunk_rows, chunks, slot_rows; /* of one rank's tokens for one node */
    uint64_t capacity;                      /* rows of a rank's experts */
    uint64_t entries, parts;                /* of the work list; gathers per entry */
    uint64_t gather_rows, tile_m, tile_n, columns;
    uint32_t depth;
    bool     barrier; /* unfused */

    /* Buffers; control ones: table, counts, send_index, index, list. */
    uint32_t table, counts, send_index, index, list;
    uint32_t held;   /* [node][slot_rows]: tokens that came over the own rail, and the own ones */
    uint32_t outbox; /* the same, going */
    uint32_t rows;   /* of the own experts */
    uint32_t weights, result;

    /* Flags. */
    uint32_t told, known;    /* a node's rows of the table: put here [node]; at every rank [gpu][node] */
    uint32_t routed;         /* [route_kind] */
    uint32_t packed, landed; /* [node][chunk] */
    uint32_t ready;          /* [gpu][node][chunk] */
    uint32_t gathered;       /* [entry], counts parts */
    uint32_t pulled;         /* [gpu], counts its gathers */
    uint32_t go;

    uint32_t control_queue, pack_queue, send_queue, relay_queue, gather_queue, compute_queue;
};

uint64_t moe_dispatch_queue_length(const struct program *p, uint32_t rank, uint32_t queue);
void     moe_dispatch_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index,
                           struct task *t);
uint64_t moe_dispatch_flag_total(const struct program *p, uint32_t rank, uint32_t flag);

#endif
