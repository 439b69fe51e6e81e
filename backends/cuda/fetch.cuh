/* The fetcher: pops tasks, waits for their entry flags and publishes them in the ring, so that the
 * latency of all this is spent while earlier tasks run. */
#ifndef BACKENDS_CUDA_FETCH_CUH
#define BACKENDS_CUDA_FETCH_CUH

#include "backends/cuda/attention_fetch.cuh"
#include "backends/cuda/select.cuh"

/* The wait for flag number `i` of the runs that the first `waits` lanes hold; count 0: there are no more.
 * *flags_out: how many there are. */
PTX gpu_wait wait_among(const gpu_wait &w, uint32_t waits, uint32_t i, uint32_t *flags_out)
{
    gpu_wait found = {0, 0, 0, 0};
    uint32_t before = 0;

    for (uint32_t k = 0; k < waits; k++) {
        gpu_wait x = {__shfl_sync(ALL_LANES, w.flag, k), __shfl_sync(ALL_LANES, w.count, k),
                      __shfl_sync(ALL_LANES, w.lag, k), __shfl_sync(ALL_LANES, w.value, k)};

        if (i - before < x.count)
            found = {x.flag + i - before, 1, x.lag, x.value};
        before += x.count;
    }
    *flags_out = before;
    return found;
}

/* A lane's wait, asked for together with the task, where its place is known without the task. */
PTX gpu_wait early_wait(const site &s, const gpu_queue &q, uint64_t index, uint32_t lane)
{
    if (lane >= q.links_per_task)
        return {0, 0, 0, 0};
    return s.program->links[q.links + index * q.links_per_task + lane].wait;
}

/* All links are looked up at once, then all flags, a lane each: a launch begins with cold reads, one behind the
 * other.  `early`: the lanes have the first links already. */
PTX void await_entry(const site &s, const gpu_task &t, gpu_wait w, bool early, uint32_t lane)
{
    for (uint32_t first = 0; first < t.entry_waits; first += 32) {
        uint32_t waits = min(t.entry_waits - first, 32u), flags = 1;

        if (lane < waits && !(early && first == 0))
            w = s.program->links[t.links + first + lane].wait;
        for (uint32_t i = lane; i - lane < flags; i += 32) {
            gpu_wait mine = wait_among(w, waits, i, &flags);

            await_flag_lanes(s, t, mine.count ? flag_wait_of(s, mine, 0) : flag_wait{0, 0, 0, false}, mine.flag, lane);
        }
    }
}

/* The place of the next task in the queue; at or past its end when it is empty. */
PTX uint64_t pop(const site &s, const gpu_queue &q, uint32_t lane)
{
    unsigned long long ticket = 0;

    if (lane == 0)
        ticket = atomicAdd((unsigned long long *)q.counter, 1ull);
    return __shfl_sync(ALL_LANES, ticket, 0) - (s.program->epoch - 1) * q.pops_per_epoch;
}

/* The lanes that wrote the task publish it, each its own part; what the others waited for comes
 * before. */
PTX void publish(const site &s, ring &r, uint32_t lane)
{
    __syncwarp();
    if (lane < TASK_WRITERS)
        barrier_arrive(barrier_at(s, BARRIER_TASK_FULL + r.slot));
    ring_advance(s, r);
}

template <bool ATTENDS, bool DYNAMIC>
PTX void fetch_task(const site &s, const gpu_queue &q, uint64_t index, ring &r, attention_fetcher &a, uint32_t lane)
{
    gpu_task &t = ((gpu_task *)(s.memory + RING_AT))[r.slot];
    gpu_wait early = early_wait(s, q, index, lane);

    if (lane < TASK_WRITERS)
        ((uint4 *)&t)[lane] = ((const uint4 *)(s.program->tasks + q.tasks + index))[lane];
    __syncwarp();
    await_entry(s, t, early, q.links_per_task > 0, lane);
    __syncwarp(); /* what any lane has waited for has happened for all */
    if (t.select != SELECT_ALL && lane == 0)
        select_rows(s, t);
    __syncwarp();
    if (DYNAMIC && t.by_index)
        await_rows(s, t, r.slot, lane);
    if (ATTENDS && is_attention(t))
        feed_task(s, a, t, r.slot, lane);
    a.follows = ATTENDS && is_attention(t);
    publish(s, r, lane);
    if (a.follows && lane == 0)
        feed_runs(s, a.runs, t);
    __syncwarp();
    if (someone_left(s)) /* a lane of this warp, perhaps */
        leave(s);
}

template <bool ATTENDS, bool DYNAMIC> PTX void run_fetcher(const site &s, uint32_t lane)
{
    ring r = {0, 0};
    attention_fetcher a = {};

    for (uint32_t i = 0; i < s.worker->queue_count; i++) {
        gpu_queue q = s.worker->queues[i];

        for (;;) {
            if (ATTENDS && DYNAMIC)
                q = s.worker->queues[i]; /* there are no registers to keep it in */
            await_barrier_warp(s, barrier_at(s, BARRIER_TASK_EMPTY + r.slot), r.phase ^ 1);
            uint64_t index = pop(s, q, lane);

            if (index >= q.length)
                break;
            fetch_task<ATTENDS, DYNAMIC>(s, q, index, r, a, lane);
        }
    }
    await_barrier_warp(s, barrier_at(s, BARRIER_TASK_EMPTY + r.slot), r.phase ^ 1);
    if (lane == 0)
        ((gpu_task *)(s.memory + RING_AT))[r.slot].kind = GPU_END;
    publish(s, r, lane);
}

#endif
