/* What the roles of a CTA share: the layout of shared memory, the ring of fetched tasks, waiting for
 * each other.
 *
 * Every wait looks at the abort word now and then; a thread that sees it set ends. */
#ifndef BACKENDS_CUDA_SITE_CUH
#define BACKENDS_CUDA_SITE_CUH

#include "backends/cuda/ptx.cuh"
#include "backends/cuda/words.h"

#define ALL_LANES 0xffffffffu

/* ---- shared memory ---- */

#define STAGES 3
#define OPERAND_BYTES (64 * 128 * 2) /* A, or one half of B, in a stage: 128 rows of 64 columns */
#define STAGE_BYTES (3 * OPERAND_BYTES)
#define STAGING_BYTES (64 * GPU_TILE_N * 2) /* a warpgroup's result */
#define STAGING_BOX_BYTES (64 * 64 * 2)     /* 64 columns of it: what one tensor map access moves */
#define STAGING_AT (STAGES * STAGE_BYTES)
#define QUERIES_BYTES (2 * STAGING_BOX_BYTES) /* a warpgroup's queries of an attention, see below */
#define BARRIERS_AT (STAGING_AT + 2 * STAGING_BYTES + QUERIES_BYTES)
#define RING_AT (BARRIERS_AT + 512)
#define COPY_TARGETS_AT (RING_AT + GPU_PREFETCH_MAX * 64)
#define KEY_BLOCKS_AT (COPY_TARGETS_AT + GPU_COPY_TARGETS_MAX * 16)
#define FEEDS_AT (KEY_BLOCKS_AT + PANELS * 8)
#define RUNS_AT (FEEDS_AT + GPU_PREFETCH_MAX * FEED_BYTES)
#define ENDED_AT (RUNS_AT + KEY_RUNS * 16) /* not 0: a role has seen the abort word and left */
#define RECORDS_AT (ENDED_AT + 4)          /* these two of traced launches: how many records there are */
#define RAN_AT (ENDED_AT + 8)              /* the record of the consumers' task */
#define SHARED_BYTES (ENDED_AT + 16)

/* A copy borrows the stages, in slots. */
#define COPY_SLOTS 9
#define COPY_SLOT_BYTES 16384
static_assert(COPY_SLOTS * COPY_SLOT_BYTES == STAGES * STAGE_BYTES, "slots are the stages");

/* An attention has its keys and values in the stages, in two rings of panels.  The queries of one
 * warpgroup lie behind these, before staging; the other's behind staging. */
#define PANELS 4
#define PANEL_BYTES (GPU_KEYS * 64 * 2) /* 64 columns of a block of keys */
#define VALUES_AT (PANELS * PANEL_BYTES)
#define QUERIES_AT (2 * PANELS * PANEL_BYTES)
#define QUERIES_APART (QUERIES_BYTES + 2 * STAGING_BYTES)
#define FEED_BYTES 80
#define KEY_RUNS 4 /* that the fetcher may be ahead of the loader */
static_assert(SHARED_BYTES <= 227 << 10, "an SM has no more");
static_assert(QUERIES_AT + QUERIES_BYTES == STAGING_AT, "rings and queries lie in the stages");

/* Kernels without attention have in the place of the latter, per task slot, where the rows of a GEMM's A stand that it
 * reads by index. */
#define ROWS_AT (QUERIES_AT + QUERIES_APART)
static_assert(GPU_PREFETCH_MAX * GPU_TILE_M * 8 <= QUERIES_BYTES, "they fit");

enum {
    BARRIER_STAGE_FULL = 0,
    BARRIER_STAGE_EMPTY = BARRIER_STAGE_FULL + STAGES,
    BARRIER_TASK_FULL = BARRIER_STAGE_EMPTY + STAGES,
    BARRIER_TASK_EMPTY = BARRIER_TASK_FULL + GPU_PREFETCH_MAX,
    BARRIER_STAGED = BARRIER_TASK_EMPTY + GPU_PREFETCH_MAX, /* per warpgroup: consumers are done with it */
    BARRIER_UNSTAGED = BARRIER_STAGED + 2,                  /* the store has read it */
    BARRIER_ADDEND = BARRIER_UNSTAGED + 2,                  /* an addend stands in it */
    BARRIER_STORED = BARRIER_ADDEND + 2,                /* per task slot: the second warpgroup's rows have arrived */
    BARRIER_COPIED = BARRIER_STORED + GPU_PREFETCH_MAX, /* per copy slot */
    BARRIER_KEYS_FULL = BARRIER_COPIED + COPY_SLOTS,    /* these four per panel */
    BARRIER_KEYS_EMPTY = BARRIER_KEYS_FULL + PANELS,
    BARRIER_VALUES_FULL = BARRIER_KEYS_EMPTY + PANELS,
    BARRIER_VALUES_EMPTY = BARRIER_VALUES_FULL + PANELS,
    BARRIER_QUERIES_FULL = BARRIER_VALUES_EMPTY + PANELS,
    BARRIER_QUERIES_EMPTY = BARRIER_QUERIES_FULL + 1,
    BARRIER_RUN_FULL = BARRIER_QUERIES_EMPTY + 1, /* per run of keys */
    BARRIER_RUN_EMPTY = BARRIER_RUN_FULL + KEY_RUNS,
    BARRIER_TURN = BARRIER_RUN_EMPTY + KEY_RUNS, /* per warpgroup: it may use the matrix units */
    BARRIER_COUNT = BARRIER_TURN + 2,
};
static_assert(BARRIER_COUNT * 8 <= 512, "barriers fit");

/* ---- roles ---- */

#define LOAD_WARP 0
#define FETCH_WARP 1
#define STORE_WARP 2 /* and 3: one for each consuming warpgroup */
#define CONSUMER_WARP 4
#define CONSUMERS 256
#define TASK_WRITERS 4                    /* lanes of the fetcher, 16 bytes each */
#define TASK_READERS (3 + CONSUMERS / 32) /* loader, two storers, the consumers' warps */

struct site {
    const gpu_program *program;
    const gpu_worker *worker;
    char *memory;    /* shared */
    uint32_t shared; /* the same, as an address in shared memory */
    uint64_t begun_ns;
};

PTX uint32_t barrier_at(const site &s, uint32_t index)
{
    return s.shared + BARRIERS_AT + 8 * index;
}

PTX bool aborted(const site &s)
{
    return load_relaxed(s.program->abort) != 0;
}

/* Consumers look here instead: whoever they wait for looks at the abort word. */
PTX bool someone_left(const site &s)
{
    return load_shared(s.shared + ENDED_AT) != 0;
}

PTX void leave(const site &s)
{
    store_shared(s.shared + ENDED_AT, 1);
    thread_exit();
}

#define TRIES_PER_LOOK 64 /* at the abort word */

/* For one thread. */
PTX void await_barrier(const site &s, uint32_t barrier, uint32_t phase)
{
    for (uint32_t tries = 1; !barrier_try(barrier, phase); tries++)
        if (tries % TRIES_PER_LOOK == 0 && aborted(s))
            leave(s);
}

/* For a whole warp, whose lanes stay together. */
PTX void await_barrier_warp(const site &s, uint32_t barrier, uint32_t phase)
{
    for (uint32_t tries = 1; !__all_sync(ALL_LANES, barrier_try(barrier, phase)); tries++)
        if (tries % TRIES_PER_LOOK == 0 && __any_sync(ALL_LANES, aborted(s)))
            leave(s);
}

/* ---- the ring of fetched tasks ---- */

struct ring {
    uint32_t slot, phase;
};

PTX void ring_advance(const site &s, ring &r)
{
    if (++r.slot == s.program->prefetch) {
        r.slot = 0;
        r.phase ^= 1;
    }
}

PTX const gpu_task &ring_task(const site &s, const ring &r)
{
    return ((const gpu_task *)(s.memory + RING_AT))[r.slot];
}

PTX void ring_free(const site &s, ring &r)
{
    barrier_arrive(barrier_at(s, BARRIER_TASK_EMPTY + r.slot));
    ring_advance(s, r);
}

/* Until the other roles are done with the task before: for the loader, where a task uses shared
 * memory in another way. */
PTX void ring_await_others(const site &s, const ring &r)
{
    uint32_t last = (r.slot ? r.slot : s.program->prefetch) - 1;

    await_barrier(s, barrier_at(s, BARRIER_TASK_EMPTY + last), r.slot ? r.phase : r.phase ^ 1);
}

/* ---- the rings of panels ---- */

/* A block takes one panel, or two that follow each other: as many as its head has times 64 columns.
 */
struct panel_ring {
    uint32_t place; /* panel, and above it the phases: a bit a panel */
};

#define PANEL_BITS 2
static_assert(PANELS == 1 << PANEL_BITS, "a panel's number fits");

PTX uint32_t panel_of(const panel_ring &r)
{
    return r.place & (PANELS - 1);
}

PTX uint32_t panel_phase(const panel_ring &r)
{
    return r.place >> PANEL_BITS >> panel_of(r) & 1;
}

/* Where it was before it advanced; what lies in between has not been reused. */
PTX panel_ring panels_before(const panel_ring &r, uint32_t panels)
{
    uint32_t at = (panel_of(r) - panels) & (PANELS - 1);

    return {((r.place & ~(PANELS - 1)) | at) ^ (PANELS << at)};
}

/* To the first panel of the next block of so many panels. */
PTX void panels_align(panel_ring &r, uint32_t panels)
{
    r.place = (r.place & ~(PANELS - 1)) | ((panel_of(r) + panels - 1) & (PANELS - panels));
}

PTX void panels_advance(panel_ring &r, uint32_t panels)
{
    uint32_t phases = r.place ^ (PANELS << panel_of(r));

    r.place = (phases & ~(PANELS - 1)) | ((panel_of(r) + panels) & (PANELS - 1));
}

/* What stands in a block of keys. */
struct key_block {
    uint32_t keys;  /* the rows behind them are somebody else's */
    uint32_t ahead; /* of the first query, in positions, wrapping; without a mask far behind it */
};

#define KEYS_FAR_BEHIND 0xc0000000u

/* In the block's first panel. */
PTX key_block *key_block_at(const site &s, const panel_ring &r)
{
    return (key_block *)(s.memory + KEY_BLOCKS_AT) + panel_of(r);
}

/* A GEMM that the loader feeds through the stages. */
PTX bool uses_tiles(const gpu_task &t)
{
    return t.kind == GPU_GEMM || t.kind == GPU_GEMM_ROWS || t.kind == GPU_GEMM_DIRECT;
}

PTX bool is_attention(const gpu_task &t)
{
    return t.kind == GPU_ATTENTION || t.kind == GPU_ATTENTION_DIRECT;
}

/* ---- from the fetcher to the loader ---- */

/* A matrix where it stands in this epoch. */
struct feed_matrix {
    uint64_t address;
    uint32_t ld, is_wide;
};

/* Of the attention in a slot of the ring. */
struct attention_feed {
    const void *keys, *values, *queries; /* tensor maps */
    uint32_t row, col;                   /* of the queries */
    feed_matrix lse, result;             /* the former only where something is handed on */
    uint32_t leaves;                     /* log-sum-exps are to be written */
    uint32_t queries_loaded;             /* the fetcher could do that itself */
};
static_assert(sizeof(attention_feed) <= FEED_BYTES, "feeds fit");

PTX attention_feed &feed_at(const site &s, uint32_t slot)
{
    return ((attention_feed *)(s.memory + FEEDS_AT))[slot];
}

/* Keys that stand together, have arrived and are seen by some query. */
struct key_run {
    uint32_t keys, ahead; /* as in struct key_block; 0 keys: no query of the task sees any */
    uint32_t key_row, value_row;
};

/* A ring of runs, seen from one end. */
struct run_ring {
    uint32_t number;
};

PTX key_run &run_at(const site &s, const run_ring &r)
{
    return ((key_run *)(s.memory + RUNS_AT))[r.number % KEY_RUNS];
}

PTX uint32_t run_phase(const run_ring &r)
{
    return r.number / KEY_RUNS & 1;
}

/* ---- links, views, signals ---- */

PTX const gpu_link *task_targets(const site &s, const gpu_task &t)
{
    return s.program->links + t.links + t.entry_waits + t.late_waits;
}

PTX gpu_matrix task_target(const site &s, const gpu_task &t, uint32_t i)
{
    gpu_matrix m = task_targets(s, t)[i].matrix;

    m.row += t.down;
    return m;
}

PTX const gpu_link *task_addends(const site &s, const gpu_task &t)
{
    return task_targets(s, t) + t.targets;
}

PTX const gpu_link *task_signals(const site &s, const gpu_task &t)
{
    return task_addends(s, t) + t.addends;
}

/* What a dynamic task has behind its signals. */
PTX const gpu_link *task_selects(const site &s, const gpu_task &t)
{
    return task_signals(s, t) + t.signals;
}

PTX void signal_one(const gpu_signal &g)
{
    add_release(g.address, g.add, g.system);
}

/* One fence for all: a release each would wait for the others'. */
PTX void signal_many(const gpu_link *link, uint32_t count)
{
    bool system = false;

    for (uint32_t i = 0; i < count; i++)
        system |= link[i].signal.system != 0;
    fence_release(system);
    for (uint32_t i = 0; i < count; i++)
        add_relaxed(link[i].signal.address, link[i].signal.add, link[i].signal.system);
}

PTX void signal_all(const site &s, const gpu_task &t)
{
    const gpu_link *link = task_signals(s, t);

    if (t.signals == 1)
        signal_one(link->signal);
    else if (t.signals > 1)
        signal_many(link, t.signals);
}

PTX uint32_t view_copy(const site &s, const gpu_view &v)
{
    return v.depth > 1 ? (uint32_t)s.program->epoch % v.depth : 0;
}

/* Where element (row, col) stands in this epoch. */
PTX uint64_t view_address(const site &s, const gpu_view &v, uint64_t row, uint64_t col)
{
    return v.base + view_copy(s, v) * v.copy_bytes + (row * v.ld + col) * (v.is_wide ? 4 : 2);
}

#define MAP_BYTES 128

PTX const void *view_load_map(const site &s, const gpu_view &v)
{
    return (const char *)s.program->maps + (uint64_t)(v.maps + 2 * view_copy(s, v)) * MAP_BYTES;
}

PTX const void *view_store_map(const site &s, const gpu_view &v)
{
    return (const char *)view_load_map(s, v) + MAP_BYTES;
}

#endif
