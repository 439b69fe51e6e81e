/* What moe_dispatch_ffn_combine.c (layout) and moe_ffn_tasks.c share. */
#ifndef KERNELS_MOE_FFN_H
#define KERNELS_MOE_FFN_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/moe_dispatch.h"

struct moe_ffn {
    struct moe_dispatch dispatch;
    uint64_t gate_cols, gate_tiles; /* of the first GEMM's result in a tile; tiles of an entry */
    uint64_t down_cols, down_tiles; /* of the second one's */
    uint64_t ahead;                 /* entries whose first GEMM comes before the second one of an entry */
    uint64_t combine_rows;          /* tokens per task */
    uint64_t chunk_parts;           /* combining tasks per chunk */
    bool barrier;                   /* unfused */

    /* Buffers.  Rows of an entry stand in the same place in rows, active and expert. */
    uint32_t gate_up, down; /* of the own experts: [2 * inter, hidden], [hidden, inter] each */
    uint32_t active;        /* [., inter] */
    uint32_t expert;        /* [., hidden]: results; peers read them */
    uint32_t sums;          /* [node][slot_rows]: of tokens of other nodes, going back over the own rail */
    uint32_t returned;      /* [node][slot_rows]: of the own tokens, what each node has for them */
    uint32_t result;        /* of the own tokens */

    /* Flags. */
    uint32_t activated; /* [entry], counts its tiles of the first GEMM */
    uint32_t computed;  /* [gpu][entry], counts its tiles of the second one */
    uint32_t combined;  /* [node][chunk], counts tasks */
    uint32_t came_back; /* [node][chunk]; of the own node: counts tasks */
    uint32_t go;        /* unfused: all rows are here; all of the node's rows are computed */

    uint32_t compute_queue, combine_queue, return_queue, finish_queue;
};

uint64_t moe_ffn_queue_length(const struct program *p, uint32_t rank, uint32_t queue);
void moe_ffn_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *t);
uint64_t moe_ffn_flag_total(const struct program *p, uint32_t rank, uint32_t flag);

/* Combining tasks of a rank in an epoch. */
uint64_t moe_ffn_combine_tasks(const struct moe_ffn *g);

#endif
