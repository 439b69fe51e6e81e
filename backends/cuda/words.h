/* What the host writes and the interpreter reads: a program as tables in device memory.
 *
 * Task     64 bytes, in queue order; everything of varying number stands in links
 * Link     16 bytes: a wait, a signal or a matrix.  A task's links follow each other: entry waits,
 * late waits, targets, addends, signals View     one (rank, buffer, leading dimension): where its
 * matrix is in each epoch, and its tensor maps Flag     a counter with its total per epoch, in a
 * sector of its own Worker   one CTA: which queues it drains
 *
 * Plain data for C and CUDA; addresses are unified virtual ones, so they may lie on a peer or in
 * pinned host memory. */
#ifndef BACKENDS_CUDA_WORDS_H
#define BACKENDS_CUDA_WORDS_H

#include <stdint.h>

#include "core/program.h"

#ifdef __cplusplus
#define _Static_assert static_assert
#endif

#define GPU_TILE_M 128
#define GPU_TILE_N 256
#define GPU_TILE_K 64
#define GPU_KEYS 128 /* of a block of an attention */
#define GPU_THREADS 384
#define GPU_PREFETCH_MAX 4
#define GPU_COPY_TARGETS_MAX 64

/* How a task is run, chosen by the host from its op, shapes and alignments. */
enum gpu_kind {
    GPU_END,         /* no more tasks for this worker */
    GPU_SIGNAL,      /* waits and signals only */
    GPU_GEMM,        /* tensor maps in, wgmma, tensor maps out */
    GPU_GEMM_DIRECT, /* tensor maps in, wgmma, addends and results by ordinary accesses */
    GPU_GEMM_PLAIN,  /* ordinary accesses and arithmetic: any shape, any alignment */
    GPU_ATTENTION,   /* tensor maps in, wgmma, tensor maps out */
    GPU_ATTENTION_DIRECT, /* tensor maps in, wgmma, results by ordinary stores */
    GPU_COPY,        /* bulk copies */
    GPU_COPY_PLAIN,
    GPU_REDUCE, /* 16 bytes at a time */
    GPU_REDUCE_PLAIN,
    GPU_PUT, /* a command to the proxy */
};

struct gpu_task {
    uint8_t kind;  /* enum gpu_kind */
    uint8_t queue; /* these two for reports */
    uint8_t entry_waits, late_waits, targets, addends, signals, reserved;
    uint32_t links; /* the first one */
    uint32_t index;
    uint32_t m, n;
    uint32_t k; /* elements; GPU_GEMM and GPU_GEMM_DIRECT: blocks of GPU_TILE_K; attention: blocks
                   of GPU_KEYS, at least one; GPU_PUT: its number */
    uint32_t a_view, a_row, a_col;
    uint32_t b_view, b_row, b_col;
    uint32_t segments, segment_count; /* 0: all of k at once, but for attention */
    uint32_t reserved2;
};

/* Flags are those of the worker's rank. */
struct gpu_wait {
    uint32_t flag, count, lag;
    uint32_t value; /* 0: the flag's total */
};

struct gpu_signal {
    uint64_t address;
    uint32_t add;
    uint32_t system; /* the reader is on another device */
};

/* An attention's addends are the queries and, where something is handed on, log-sum-exps and the
 * result so far. */
struct gpu_matrix {
    uint32_t view, row, col;
    uint32_t more; /* queries: the first one's position, or GPU_UNMASKED; log-sum-exps: 1 if they are
                      to be written */
};

#define GPU_UNMASKED UINT32_MAX /* every query sees every key */

union gpu_link {
    struct gpu_wait wait;
    struct gpu_signal signal;
    struct gpu_matrix matrix;
};

_Static_assert(sizeof(struct gpu_task) == 64 && sizeof(union gpu_link) == 16,
               "read in units of 16 bytes");

struct gpu_segment {
    uint32_t k;            /* elements */
    uint32_t position;     /* attention: of the first key */
    uint64_t a_add, b_add; /* elements; attention: rows */
    uint64_t reserved2;
    struct gpu_wait wait;
};

struct gpu_view {
    uint64_t base;       /* address of copy 0 */
    uint64_t copy_bytes; /* from a copy to the next; epoch e uses copy e mod depth */
    uint64_t ld;         /* elements */
    uint32_t depth;
    uint32_t is_f32;
    uint32_t maps; /* of copy c: loads maps + 2c, stores maps + 2c + 1; if it can have any */
    uint32_t reserved;
};

struct gpu_flag {
    uint64_t counter;
    uint64_t total;   /* per epoch */
    uint64_t address; /* of the counter to poll: the one above, or the proxy's in pinned memory */
    uint64_t system;  /* raised from outside the device */
};

struct gpu_queue {
    uint64_t tasks; /* index of the first */
    uint64_t length;
    uint64_t pops_per_epoch; /* tasks, and one vain pop for each worker that drains it */
    uint64_t counter;        /* address */
};

/* Commands to the proxy.  A slot holds 0 or (epoch << 32 | number of the put + 1). */
struct gpu_fifo {
    uint64_t head;  /* device address: tickets given out */
    uint64_t tail;  /* pinned: slots emptied */
    uint64_t slots; /* pinned */
    uint64_t capacity;
};

struct gpu_worker {
    uint32_t rank, crew;
    uint32_t queue_count, reserved;
    uint64_t flags; /* address of the rank's struct gpu_flag[] */
    struct gpu_fifo fifo;
    struct gpu_queue queues[CREW_QUEUES_MAX];
};

/* Where a role of a worker stood when the run was aborted. */
enum gpu_role { GPU_FETCH, GPU_LOAD, GPU_STORE, GPU_ROLE_COUNT };

struct gpu_stuck {
    uint32_t waits; /* 0: it did not wait */
    uint32_t queue, index, late, step, flag;
    uint64_t value, wanted;
    uint64_t since_ns; /* after its kernel began, to within the time of some polls */
};

#define GPU_NO_STEP UINT32_MAX
#define GPU_NO_FLAG UINT32_MAX /* it waited for room in the FIFO */

struct gpu_program {
    const struct gpu_task *tasks;
    const union gpu_link *links;
    const struct gpu_segment *segments;
    const struct gpu_view *views;
    const void *maps; /* CUtensorMap[] */
    const struct gpu_worker *workers;
    struct gpu_stuck *stuck; /* [worker][role] */
    const uint32_t *abort;   /* not 0: everybody ends */
    uint64_t epoch;
    uint32_t prefetch; /* tasks fetched ahead, 1..GPU_PREFETCH_MAX */
};

#endif
