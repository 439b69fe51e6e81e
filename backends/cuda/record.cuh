/* What a traced launch leaves: records in memory of the worker's own, by whichever role has
 * something to tell.  In the kernels that are timed GPU_TRACES is 0, and none of this is in them. */
#ifndef BACKENDS_CUDA_RECORD_CUH
#define BACKENDS_CUDA_RECORD_CUH

#include "backends/cuda/site.cuh"

PTX gpu_stamp stamp_now(void)
{
    return {clock_ns(), clock_cycles()};
}

/* nullptr: there is no room; the first ones stay. */
PTX gpu_record *take_record(const site &s)
{
    const gpu_program &p = *s.program;
    uint32_t at = add_shared(s.shared + RECORDS_AT, 1);

    if (at < p.records_max)
        return p.records + (uint64_t)blockIdx.x * p.records_max + at;
    atomicAdd((unsigned long long *)&p.logs[blockIdx.x].lost, 1ull);
    return nullptr;
}

PTX gpu_record *record_begin(const site &s, const gpu_task &t, gpu_event event)
{
    if constexpr (GPU_TRACES) {
        gpu_record *r = take_record(s);

        if (!r)
            return r;
        r->event = event;
        r->queue = t.queue;
        r->index = t.index;
        r->begin = stamp_now();
        return r;
    }
    return nullptr;
}

PTX void record_end(gpu_record *r)
{
    if constexpr (GPU_TRACES)
        if (r)
            r->end = stamp_now();
}

PTX gpu_record *record_wait(const site &s, const gpu_task &t, uint32_t flag, uint64_t wanted, bool inside)
{
    gpu_record *r = record_begin(s, t, GPU_WAITED);

    if constexpr (GPU_TRACES)
        if (r) {
            r->flag = flag;
            r->wanted = wanted;
            r->inside = inside;
        }
    return r;
}

PTX void record_stored(const site &s, const gpu_task &t)
{
    record_end(record_begin(s, t, GPU_STORED));
}

/* ---- the consumers' tasks ----
 *
 * As the first of them sees it, which has no register to spare.  The lanes of a warp stay together. */

PTX bool consumers_run(const gpu_task &t)
{
    return t.kind != GPU_SIGNAL && t.kind != GPU_PUT && t.kind != GPU_COPY && t.kind != GPU_GATHER;
}

PTX gpu_record *&consumers_record(const site &s)
{
    return *(gpu_record **)(s.memory + RAN_AT);
}

PTX void record_consumers_begin(const site &s, const gpu_task &t, uint32_t thread)
{
    if constexpr (GPU_TRACES) {
        if (thread == 0 && consumers_run(t))
            consumers_record(s) = record_begin(s, t, GPU_RAN);
        __syncwarp();
    }
}

PTX void record_consumers_end(const site &s, const gpu_task &t, uint32_t thread)
{
    if constexpr (GPU_TRACES) {
        if (thread == 0 && consumers_run(t) && !someone_left(s))
            record_end(consumers_record(s));
        __syncwarp();
    }
}

/* ---- the clock ---- */

#define TICK_TRIES 4096

/* Until the timer shows another time than `ns`, for a while. */
PTX uint64_t await_tick(uint64_t ns)
{
    uint64_t now = clock_ns();

    for (uint32_t tries = 0; now == ns && tries < TICK_TRIES; tries++)
        now = clock_ns();
    return now;
}

/* By a thread that has nothing to do yet. */
PTX void record_clock_begin(const site &s)
{
    if constexpr (GPU_TRACES) {
        gpu_log &log = s.program->logs[blockIdx.x];
        uint64_t before = await_tick(clock_ns()), tick = await_tick(before);

        log.begin = {tick, clock_cycles()};
        log.begun_ns = s.begun_ns;
        log.tick_ns = tick - before;
    }
}

/* And by one that has nothing to do any more. */
PTX void record_clock_end(const site &s)
{
    if constexpr (GPU_TRACES)
        s.program->logs[blockIdx.x].end = {await_tick(clock_ns()), clock_cycles()};
}

#endif
