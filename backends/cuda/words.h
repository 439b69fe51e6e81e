/* What the host writes and the interpreter reads: a program as tables in device memory.
 *
 * Task     64 bytes, in queue order; everything of varying number stands in links
 * Link     16 bytes: a wait, a signal or a matrix.  A task's links follow each other: entry waits,
 *          late waits, targets, addends, signals, and what dynamic work needs (see below)
 * View     one (rank, buffer, leading dimension): where its matrix is in each epoch, and its tensor
 *          maps
 * Flag     a counter with its total per epoch, in a sector of its own
 * Route    what an OP_ROUTE needs to know
 * Worker   one CTA: which queues it drains
 *
 * And back: what a traced launch has to tell, in records.
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
#define GPU_NO_VIEW UINT32_MAX /* or map */
#define GPU_COMBINE_TERMS 32   /* a lane each */

/* How a task is run, chosen by the host from its op, shapes and alignments. */
enum gpu_kind {
    GPU_END,              /* no more tasks for this worker */
    GPU_SIGNAL,           /* waits and signals only */
    GPU_GEMM,             /* tensor maps in, wgmma, tensor maps out */
    GPU_GEMM_ROWS,        /* tensor maps in, wgmma, as many rows as there are, 16 bytes at a time */
    GPU_GEMM_DIRECT,      /* tensor maps in, wgmma, addends and results element by element */
    GPU_GEMM_PLAIN,       /* ordinary accesses and arithmetic: any shape, any alignment */
    GPU_ATTENTION,        /* tensor maps in, wgmma, tensor maps out */
    GPU_ATTENTION_DIRECT, /* tensor maps in, wgmma, as many rows as there are */
    GPU_COPY,             /* bulk copies */
    GPU_COPY_PLAIN,
    GPU_REDUCE, /* 16 bytes at a time */
    GPU_REDUCE_PLAIN,
    GPU_PUT,    /* a command to the proxy */
    GPU_GATHER, /* bulk copies of single rows */
    GPU_GATHER_PLAIN,
    GPU_COMBINE, /* 16 bytes at a time */
    GPU_COMBINE_PLAIN,
    GPU_ROUTE,
    GPU_KIND_COUNT,
};

/* What a program's tasks need beside GEMMs, copies, sums and puts: a kernel each, and one for both. */
enum { GPU_NEEDS_ATTENTION = 1, GPU_NEEDS_DYNAMIC = 2 };

/* Dynamic work.  With `select` a link behind the signals says where to look; the fetcher looks, and
 * writes what is left of the task into its copy: kind, m, a_row, b_row, down.
 *
 * With `by_index` the task reads rows that an index list names; behind the link of `select`, which it
 * always has, stand its index list, what there is to know about these rows, the flags they wait for,
 * the weights of its terms, and its sources, one or the node's.
 */
struct gpu_task {
    uint8_t kind;  /* enum gpu_kind */
    uint8_t queue; /* these two for reports */
    uint8_t entry_waits, late_waits, targets, addends, signals;
    uint8_t select : 4, epilogue : 3, by_index : 1; /* enum select_mode, enum epilogue */
    uint32_t links;                                 /* the first one */
    uint32_t index;
    uint32_t m, n;
    /* Elements; GEMMs by tensor maps: blocks of GPU_TILE_K; attentions: blocks of GPU_KEYS, at least one; GPU_PUT and
     * GPU_ROUTE: its number. */
    uint32_t k;
    uint32_t a_view, a_row, a_col; /* a GEMM's rows by index: a_col is how much of k there is */
    uint32_t b_view, b_row, b_col;
    uint32_t segments, segment_count; /* 0: all of k at once, but for attention */
    uint32_t down;                    /* rows that targets and index list stand further down than their links say */
};

/* Flags are those of the worker's rank. */
struct gpu_wait {
    uint32_t flag, count, lag;
    uint32_t value; /* 0: the flag's total */
};

struct gpu_signal {
    uint64_t address;
    uint32_t add;
    uint32_t system; /* some of the flag's signals come from another device */
};

/* An attention's addends are the queries and, where something is handed on, log-sum-exps and the
 * result so far. */
struct gpu_matrix {
    uint32_t view, row, col;
    uint32_t more; /* queries: the first one's position, or GPU_UNMASKED; log-sum-exps: 1 if they
                      are to be written */
};

#define GPU_UNMASKED UINT32_MAX /* every query sees every key */

struct gpu_select {
    uint32_t view, entry; /* row of a control buffer */
    uint32_t skip;
    uint32_t b_rows; /* from a group's `b` to the next one's */
};

struct gpu_rows {
    uint32_t terms;       /* index values for each row of the task */
    uint32_t limit;       /* they are below it */
    uint32_t source_rows; /* of each source */
    uint32_t reserved;
};

struct gpu_indexed {
    uint32_t first, count; /* flags; count 0: none */
    uint32_t rows_per_flag, reserved;
};

union gpu_link {
    struct gpu_wait wait;
    struct gpu_signal signal;
    struct gpu_matrix matrix;
    struct gpu_select select;
    struct gpu_rows rows;
    struct gpu_indexed indexed;
};

_Static_assert(sizeof(struct gpu_task) == 64 && sizeof(union gpu_link) == 16, "read in units of 16 bytes");

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
    uint32_t is_wide; /* 4 bytes an element: f32, or integers, which are only moved */
    uint32_t maps;    /* of copy c: loads maps + 2c, stores maps + 2c + 1; if it can have any */
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
    uint32_t links;          /* the first task's */
    uint32_t links_per_task; /* the others' follow at this distance; 0: at none that is fixed */
};

/* core/route.h, seen from one rank. */
struct gpu_route {
    uint32_t kind; /* enum route_kind */
    uint32_t tokens, experts, top_k;
    uint32_t nodes, gpus, rank;
    uint32_t slot_rows, capacity, tile_rows;
    uint32_t aligned, returns, lists_pulls;    /* there is a `back`; there are `pulls` */
    uint32_t table, counts, index, list, back; /* views */
    uint32_t pulls, pull_count;                /* the same */
    uint32_t list_rows, stack_rows;            /* the latter: of each rank's results, where they are stacked */
    uint64_t scratch;                          /* address of GPU_ROUTE_WORDS words, see route.cuh */
    uint64_t dropped;                          /* address of a counter that is never reset */
};

/* Of `ranks` that are followed, with `experts` in all; `slots`: rows of one of them, in whole
 * tiles; `held`: rows of the stack that pulls are of. */
#define GPU_ROUTE_WARPS 8
#define GPU_ROUTE_FIRSTS(slots) ((slots) / 32 + 1)
#define GPU_ROUTE_WORDS(ranks, experts, list_rows, tokens, slots, held)                                                \
    (((uint64_t)GPU_ROUTE_WARPS + 2) * ((experts) + 1) + (ranks) * (2 * (uint64_t)(list_rows) + 1) + (tokens) +        \
     (slots) + 2 * (uint64_t)(held) + 2 * GPU_ROUTE_FIRSTS(slots))

/* A slot of the FIFO to the proxy. */
struct gpu_command {
    uint64_t word; /* 0: empty; epoch << 32 | number of the put + 1 */
    uint64_t rows;
};

struct gpu_fifo {
    uint64_t head;  /* device address: tickets given out */
    uint64_t tail;  /* pinned: slots emptied */
    uint64_t slots; /* pinned: struct gpu_command[] */
    uint64_t capacity;
};

struct gpu_worker {
    uint32_t rank, crew;
    uint32_t queue_count, flag_count;
    uint64_t flags; /* address of the rank's struct gpu_flag[] */
    struct gpu_fifo fifo;
    uint32_t turn, reserved; /* which of its crew's workers it is: about that task of a queue comes first */
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

/* ---- what a traced launch leaves ---- */

/* The device's timer, which ticks every so many ns, and the clock of the SM, which says where in its tick a moment
 * lies: device_log.h. */
struct gpu_stamp {
    uint64_t ns, cycles;
};

/* Of a worker's launch, zeroed before it. */
struct gpu_log {
    struct gpu_stamp begin, end; /* at ticks of the timer; 0: never came there */
    uint64_t begun_ns;
    uint64_t tick_ns; /* one that was seen; 0: none */
    uint64_t lost;    /* records that there was no room for */
};

enum gpu_event {
    GPU_NO_EVENT, /* no more records */
    GPU_RAN,      /* the role that a task is for was at it */
    GPU_STORED,   /* its results have arrived, its signals are out; begin == end */
    GPU_WAITED,   /* for a flag that was not there at the first look */
};

/* Of a worker; in no order. */
struct gpu_record {
    struct gpu_stamp begin, end; /* end 0: the launch was aborted before */
    uint64_t wanted;             /* these three of a wait: the counter's value */
    uint32_t flag;               /* GPU_NO_FLAG: room in the FIFO */
    uint32_t inside;             /* not at entry */
    uint32_t queue, index;       /* the task's */
    uint32_t event;              /* enum gpu_event */
    uint32_t reserved;
};

_Static_assert(sizeof(struct gpu_record) == 64, "written in units of 16 bytes");

struct gpu_program {
    const struct gpu_task *tasks;
    const union gpu_link *links;
    const struct gpu_segment *segments;
    const struct gpu_view *views;
    const void *maps; /* CUtensorMap[] */
    const struct gpu_route *routes;
    const struct gpu_worker *workers;
    struct gpu_stuck *stuck; /* [worker][role] */
    const uint32_t *abort;   /* not 0: everybody ends */
    uint64_t epoch;
    uint32_t view_count, map_count;
    uint32_t prefetch; /* tasks fetched ahead, 1..GPU_PREFETCH_MAX */
    /* These three of traced launches. */
    uint32_t records_max;       /* of a worker */
    struct gpu_log *logs;       /* [worker] */
    struct gpu_record *records; /* [worker][records_max] */
};

#endif
