/* What the fetcher finds out in control buffers, once a task's entry waits are met: how much of it
 * there is, and where its rows by index are and what they wait for. */
#ifndef BACKENDS_CUDA_SELECT_CUH
#define BACKENDS_CUDA_SELECT_CUH

#include "backends/cuda/flags.cuh"
#include "backends/cuda/indexed.cuh"

/* Rows of one tile wait for one flag: a lane tells for all of them. */
PTX gpu_record *record_lanes_wait(const site &s, const gpu_task &t, const flag_wait &f, uint32_t flag, uint32_t lane)
{
    if constexpr (GPU_TRACES) {
        bool waits = f.value < f.wanted;
        uint32_t same = __match_any_sync(ALL_LANES, waits ? flag : GPU_NO_FLAG);

        if (waits && lane == __ffs(same) - 1)
            return record_wait(s, t, flag, f.wanted, false);
    }
    return nullptr;
}

/* A flag a lane; the lanes stay together. */
PTX void await_flag_lanes(const site &s, const gpu_task &t, flag_wait f, uint32_t flag, uint32_t lane)
{
    gpu_record *wait = record_lanes_wait(s, t, f, flag, lane);
    uint64_t since_ns = 0;

    for (uint32_t polls = 1; !__all_sync(ALL_LANES, f.value >= f.wanted); polls++) {
        __nanosleep(POLL_NANOSECONDS);
        if (f.value < f.wanted) {
            f.value = load_acquire(f.address, f.system);
            if (f.value >= f.wanted)
                record_end(wait);
        }
        if (polls % POLLS_PER_LOOK != 0)
            continue;
        if (since_ns == 0)
            since_ns = clock_ns();
        if (!__any_sync(ALL_LANES, aborted(s)))
            continue;
        if (lane == __ffs(__ballot_sync(ALL_LANES, f.value < f.wanted)) - 1)
            note_stuck(s, t, {GPU_FETCH, GPU_NO_STEP, flag, f.value, f.wanted, since_ns});
        leave(s);
    }
}

/* A control buffer that holds what it cannot means that somebody reads it before it is written. */
PTX uint32_t control_value(uint64_t address, uint32_t limit)
{
    int32_t v = __ldcg((const int32_t *)address);

    if (v < 0 || (uint32_t)v > limit)
        __trap();
    return (uint32_t)v;
}

/* What an entry {group, first, rows} leaves of the task. */
PTX void narrow(gpu_task &t, const gpu_select &sel, uint32_t group, uint32_t first, uint32_t rows)
{
    bool is_gemm = uses_tiles(t) || t.kind == GPU_GEMM_PLAIN;

    t.m = rows > sel.skip ? min(t.m, rows - sel.skip) : 0;
    if (t.kind == GPU_PUT)
        return; /* of nothing still carries its signal */
    if (t.m == 0) {
        t.kind = GPU_SIGNAL;
        return;
    }
    if (t.kind == GPU_GEMM && t.m < GPU_TILE_M)
        t.kind = GPU_GEMM_ROWS; /* a whole tile would be written */
    if (is_gemm)
        t.b_row += group * sel.b_rows;
    if (t.select != SELECT_ENTRY)
        return;
    t.down = first + sel.skip;
    if (is_gemm && !t.by_index)
        t.a_row += t.down;
}

PTX void select_rows(const site &s, gpu_task &t)
{
    const gpu_select sel = task_selects(s, t)->select;
    uint64_t at = view_address(s, s.program->views[sel.view], sel.entry, 0);

    if (t.select == SELECT_COUNT)
        narrow(t, sel, 0, 0, control_value(at, INT32_MAX));
    else
        narrow(t, sel, control_value(at, INT32_MAX), control_value(at + 4, INT32_MAX),
               control_value(at + 8, INT32_MAX));
}

/* Whether term i of the task, counted over all its rows, names a row; traps if it names one that is
 * not. */
PTX bool names_row(const site &s, const gpu_task &t, const gpu_rows &rows, uint32_t i, uint32_t *value_out)
{
    uint64_t address = index_address(s, t, i / rows.terms, i % rows.terms);

    if (is_combine(t) && __ldcg((const int32_t *)address) == INDEX_DROPPED)
        return false;
    *value_out = control_value(address, rows.limit - 1);
    return true;
}

/* The flags of all rows that are named; and where these are, if the loader needs that: of a whole tile, the last
 * row once more in the place of those that are not there. */
PTX void await_rows(const site &s, const gpu_task &t, uint32_t slot, uint32_t lane)
{
    const gpu_rows rows = index_rows(s, t);
    const gpu_indexed x = task_selects(s, t)[INDEX_FLAGS].indexed;
    uint32_t terms = t.m * rows.terms;

    for (uint32_t first = 0; first < (uses_tiles(t) ? GPU_TILE_M : terms); first += 32) {
        uint32_t value, flag = x.first;
        flag_wait f = {0, 0, 0, false};

        if (names_row(s, t, rows, min(first + lane, terms - 1), &value)) {
            if (x.count > 0) {
                flag += value / x.rows_per_flag;
                f = flag_wait_of(s, {flag, 1, 0, 0}, 0);
            }
            if (uses_tiles(t))
                row_addresses(s, slot)[first + lane] = source_address(s, t, value);
        }
        await_flag_lanes(s, t, f, flag, lane);
    }
}

#endif
