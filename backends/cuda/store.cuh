/* The two store warps, a thread each: late waits, addends into staging, results out of it, signals.
 * The first of them also does what needs no data here: bare signals and commands to the proxy. */
#ifndef BACKENDS_CUDA_STORE_CUH
#define BACKENDS_CUDA_STORE_CUH

#include "backends/cuda/flags.cuh"

struct storer {
    uint32_t group;   /* 0 or 1: the consuming warpgroup it serves */
    uint32_t staged;  /* phases seen of BARRIER_STAGED */
    uint32_t stored;  /* of BARRIER_STORED: a bit a slot */
    uint64_t emptied; /* slots of the FIFO, as last seen: looking there costs a trip to the host */
};

PTX void await_staged(const site &s, storer &st)
{
    await_barrier(s, barrier_at(s, BARRIER_STAGED + st.group), st.staged++ & 1);
}

struct tile_place {
    const void *map;
    uint32_t row, col, box_cols;
};

PTX tile_place place_of(const site &s, const storer &st, const gpu_matrix &m)
{
    const gpu_view &v = s.program->views[m.view];

    return {view_store_map(s, v), m.row + st.group * 64, m.col, v.is_wide ? 32u : 64u};
}

PTX uint32_t staging_of(const site &s, const storer &st)
{
    return s.shared + STAGING_AT + st.group * STAGING_BYTES;
}

PTX void load_box_row(const site &s, const storer &st, const tile_place &from, uint32_t cols)
{
    uint32_t barrier = barrier_at(s, BARRIER_ADDEND + st.group), boxes = cols / from.box_cols;

    barrier_expect(barrier, boxes * STAGING_BOX_BYTES);
    for (uint32_t box = 0; box < boxes; box++)
        tensor_load(staging_of(s, st) + box * STAGING_BOX_BYTES, from.map, from.col + box * from.box_cols, from.row,
                    barrier);
}

/* One after the other; after each but the last the consumers hand staging back. */
PTX void load_addends(const site &s, storer &st, const gpu_task &t)
{
    const gpu_link *link = task_addends(s, t);

    for (uint32_t i = 0; i < t.addends; i++) {
        if (i > 0)
            await_staged(s, st);
        load_box_row(s, st, place_of(s, st, link[i].matrix), GPU_TILE_N);
    }
}

/* Boxes that lie outside a narrow matrix altogether are left out. */
PTX void store_box_row(const site &s, const storer &st, const tile_place &to, uint32_t cols)
{
    for (uint32_t box = 0; box * to.box_cols < cols; box++)
        tensor_store(to.map, to.col + box * to.box_cols, to.row, staging_of(s, st) + box * STAGING_BOX_BYTES);
}

PTX void store_result(const site &s, storer &st, const gpu_task &t)
{
    tile_place first = place_of(s, st, task_target(s, t, 0)); /* found while the products run */

    await_staged(s, st);
    store_box_row(s, st, first, t.n);
    for (uint32_t i = 1; i < t.targets; i++)
        store_box_row(s, st, place_of(s, st, task_target(s, t, i)), t.n);
    bulk_commit();
    bulk_wait_read<0>();
    barrier_arrive(barrier_at(s, BARRIER_UNSTAGED + st.group));
}

/* All rows of the tile have arrived at their readers before the first thread signals: behind the completion of bulk
 * copies that a thread has waited for stands a proxy fence.  The second thread may be tasks ahead, but not a turn of
 * the ring: so a barrier a slot. */
PTX void signal_stored(const site &s, storer &st, const gpu_task &t, uint32_t slot)
{
    uint32_t barrier = barrier_at(s, BARRIER_STORED + slot);

    bulk_wait_all();
    if (st.group == 1) {
        barrier_arrive(barrier);
        return;
    }
    await_barrier(s, barrier, st.stored >> slot & 1);
    st.stored ^= 1u << slot;
    signal_all(s, t);
    record_stored(s, t);
}

PTX void store_tile(const site &s, storer &st, const gpu_task &t, uint32_t slot)
{
    const gpu_link *late = s.program->links + t.links + t.entry_waits;

    for (uint32_t i = 0; i < t.late_waits; i++)
        await_flags(s, late[i].wait, GPU_STORE, t, GPU_NO_STEP);
    fence_proxy();
    load_addends(s, st, t);
    store_result(s, st, t);
    if (t.signals > 0)
        signal_stored(s, st, t, slot);
}

/* The consumers write the results themselves. */
PTX void lend_staging(const site &s, storer &st)
{
    await_staged(s, st);
    barrier_arrive(barrier_at(s, BARRIER_UNSTAGED + st.group));
}

/* Log-sum-exps have stood in memory for long and are needed late: they come nearer while the blocks are done.  In
 * units of 16 bytes. */
PTX void prefetch_log_sums(const storer &st, const gpu_task &t, const feed_matrix &from)
{
    uint32_t end = min(t.m, (st.group + 1) * 64);

    for (uint32_t row = st.group * 64; row < end; row += 4)
        bulk_prefetch((from.address + (uint64_t)row * from.ld * 4) & ~15ull, 16);
}

/* What the task before has left, into staging. */
PTX void load_before(const site &s, const storer &st, const gpu_task &t, uint32_t slot)
{
    fence_proxy();
    load_box_row(s, st, place_of(s, st, task_addends(s, t)[2].matrix), t.n);
    prefetch_log_sums(st, t, feed_at(s, slot).lse);
}

PTX void store_attention(const site &s, storer &st, const gpu_task &t, uint32_t slot)
{
    if (t.addends > 2)
        load_before(s, st, t, slot);
    if (t.kind == GPU_ATTENTION) {
        store_result(s, st, t);
    } else {
        lend_staging(s, st);
        fence_proxy();
    }
    if (t.signals > 0)
        signal_stored(s, st, t, slot);
}

/* ---- puts ---- */

/* Slots are taken in the order of tickets, and emptied in that order. */
PTX void await_slot(const site &s, storer &st, const gpu_fifo &f, uint64_t ticket, const gpu_task &t)
{
    gpu_record *wait = st.emptied + f.capacity <= ticket ? record_wait(s, t, GPU_NO_FLAG, 0, true) : nullptr;

    for (uint32_t polls = 1; st.emptied + f.capacity <= ticket; polls++) {
        st.emptied = load_acquire(f.tail, true);
        if (polls % POLLS_PER_LOOK == 0 && aborted(s)) {
            note_stuck(s, t, {GPU_STORE, GPU_NO_STEP, GPU_NO_FLAG, 0, 0, s.begun_ns});
            leave(s);
        }
    }
    record_end(wait);
}

PTX void push_put(const site &s, storer &st, const gpu_task &t)
{
    const gpu_fifo &f = s.worker->fifo;
    uint64_t ticket = atomicAdd((unsigned long long *)f.head, 1ull);
    gpu_command *slot = (gpu_command *)f.slots + ticket % f.capacity;

    await_slot(s, st, f, ticket, t);
    slot->rows = t.m;
    store_release_system((uint64_t)&slot->word, s.program->epoch << 32 | (t.k + 1));
}

/* ---- the role ---- */

PTX void run_signal(const site &s, const gpu_task &t)
{
    gpu_record *ran = record_begin(s, t, GPU_RAN);

    signal_all(s, t);
    record_end(ran);
}

PTX void run_put(const site &s, storer &st, const gpu_task &t)
{
    gpu_record *ran = record_begin(s, t, GPU_RAN);

    push_put(s, st, t);
    record_end(ran);
}

PTX void run_storer(const site &s, uint32_t group)
{
    storer st = {group, 0, 0, 0};
    ring r = {0, 0};

    if (group == 1)
        record_clock_begin(s);
    for (;;) {
        await_barrier(s, barrier_at(s, BARRIER_TASK_FULL + r.slot), r.phase);
        const gpu_task &t = ring_task(s, r);

        if (t.kind == GPU_END)
            break;
        if (t.kind == GPU_GEMM)
            store_tile(s, st, t, r.slot);
        else if (is_attention(t))
            store_attention(s, st, t, r.slot);
        else if (uses_tiles(t))
            lend_staging(s, st);
        else if (t.kind == GPU_SIGNAL && group == 0)
            run_signal(s, t);
        else if (t.kind == GPU_PUT && group == 0)
            run_put(s, st, t);
        ring_free(s, r);
    }
    bulk_wait_all();
    if (group == 1)
        record_clock_end(s);
}

#endif
