/* What the roles of a CTA share: the layout of shared memory, the ring of fetched tasks, waiting.
 *
 * Every wait looks at the abort word now and then; a thread that sees it set ends.  Whoever waits
 * for a flag first notes what it waited for. */
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
#define BARRIERS_AT (STAGING_AT + 2 * STAGING_BYTES)
#define RING_AT (BARRIERS_AT + 512)
#define COPY_TARGETS_AT (RING_AT + GPU_PREFETCH_MAX * 64)
#define SHARED_BYTES (COPY_TARGETS_AT + GPU_COPY_TARGETS_MAX * 16)

/* A copy borrows the stages, in slots. */
#define COPY_SLOTS 9
#define COPY_SLOT_BYTES 16384
static_assert(COPY_SLOTS * COPY_SLOT_BYTES == STAGES * STAGE_BYTES, "slots are the stages");

enum {
    BARRIER_STAGE_FULL = 0,
    BARRIER_STAGE_EMPTY = BARRIER_STAGE_FULL + STAGES,
    BARRIER_TASK_FULL = BARRIER_STAGE_EMPTY + STAGES,
    BARRIER_TASK_EMPTY = BARRIER_TASK_FULL + GPU_PREFETCH_MAX,
    BARRIER_STAGED =
        BARRIER_TASK_EMPTY + GPU_PREFETCH_MAX, /* per warpgroup: consumers are done with it */
    BARRIER_UNSTAGED = BARRIER_STAGED + 2,     /* the store has read it */
    BARRIER_ADDEND = BARRIER_UNSTAGED + 2,     /* an addend stands in it */
    BARRIER_STORED =
        BARRIER_ADDEND + 2, /* per task slot: the second warpgroup's rows have arrived */
    BARRIER_COPIED = BARRIER_STORED + GPU_PREFETCH_MAX, /* per copy slot */
    BARRIER_COUNT = BARRIER_COPIED + COPY_SLOTS,
};
static_assert(BARRIER_COUNT * 8 <= 512, "barriers fit");

/* ---- roles ---- */

#define LOAD_WARP 0
#define FETCH_WARP 1
#define STORE_WARP 2 /* and 3: one for each consuming warpgroup */
#define CONSUMER_WARP 4
#define CONSUMERS 256
#define TASK_WRITERS 4               /* lanes of the fetcher, 16 bytes each */
#define TASK_READERS (32 + 2 + CONSUMERS) /* threads: the loader's warp, two storers, consumers */

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

#define TRIES_PER_LOOK 64 /* at the abort word */

/* For one thread. */
PTX void await_barrier(const site &s, uint32_t barrier, uint32_t phase)
{
    for (uint32_t tries = 1; !barrier_try(barrier, phase); tries++)
        if (tries % TRIES_PER_LOOK == 0 && aborted(s))
            thread_exit();
}

/* For a whole warp, whose lanes stay together. */
PTX void await_barrier_warp(const site &s, uint32_t barrier, uint32_t phase)
{
    for (uint32_t tries = 1; !__all_sync(ALL_LANES, barrier_try(barrier, phase)); tries++)
        if (tries % TRIES_PER_LOOK == 0 && __any_sync(ALL_LANES, aborted(s)))
            thread_exit();
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

/* A GEMM that the loader feeds through the stages. */
PTX bool uses_tiles(const gpu_task &t)
{
    return t.kind == GPU_GEMM || t.kind == GPU_GEMM_ROWS || t.kind == GPU_GEMM_DIRECT;
}

/* ---- flags ---- */

struct flag_wait {
    uint64_t address, wanted;
    uint64_t value; /* at a first look */
    bool system;
};

/* The first look is at the flag itself, beside what says how to wait for it: most flags are met by
 * then. */
PTX flag_wait flag_wait_of(const site &s, const gpu_wait &w, uint32_t i)
{
    const gpu_flag *f = (const gpu_flag *)s.worker->flags + w.flag + i;
    uint64_t epoch = s.program->epoch, total = f->total, address = f->address, system = f->system;
    uint64_t value = load_acquire((uint64_t)&f->counter, true), wanted = 0;

    if (epoch > w.lag)
        wanted = (epoch - w.lag - 1) * total + (w.value ? w.value : total);
    return {address, wanted, value, system != 0};
}

/* What a role waits for, and since when. */
struct stuck_wait {
    gpu_role role;
    uint32_t step; /* GPU_NO_STEP: none */
    uint32_t flag;
    uint64_t value, wanted;
    uint64_t since_ns;
};

PTX void note_stuck(const site &s, const gpu_task &t, const stuck_wait &w)
{
    s.program->stuck[blockIdx.x * GPU_ROLE_COUNT + w.role] = {
        1,      t.queue, t.index,  w.role == GPU_STORE,    w.step,
        w.flag, w.value, w.wanted, w.since_ns - s.begun_ns};
}

#define POLL_NANOSECONDS 20
#define POLLS_PER_LOOK 256 /* at the abort word */

/* For one thread. */
PTX void await_flags(const site &s, const gpu_wait &w, gpu_role role, const gpu_task &t,
                     uint32_t step)
{
    for (uint32_t i = 0; i < w.count; i++) {
        flag_wait f = flag_wait_of(s, w, i);
        uint64_t since_ns = 0;

        for (uint32_t polls = 1; f.value < f.wanted; polls++) {
            __nanosleep(POLL_NANOSECONDS);
            f.value = load_acquire(f.address, f.system);
            if (polls % POLLS_PER_LOOK != 0)
                continue;
            if (since_ns == 0)
                since_ns = clock_ns();
            if (aborted(s)) {
                note_stuck(s, t, {role, step, w.flag + i, f.value, f.wanted, since_ns});
                thread_exit();
            }
        }
    }
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

/* One fence for all: a release each would wait for the others'. */
PTX void signal_all(const site &s, const gpu_task &t)
{
    const gpu_link *link = task_signals(s, t);
    bool system = false;

    for (uint32_t i = 0; i < t.signals; i++)
        system |= link[i].signal.system != 0;
    if (t.signals > 0)
        fence_release(system);
    for (uint32_t i = 0; i < t.signals; i++)
        add_relaxed(link[i].signal.address, link[i].signal.add, link[i].signal.system);
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
