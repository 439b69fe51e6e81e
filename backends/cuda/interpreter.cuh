/* The persistent kernel: one CTA per SM, each a worker that runs tasks until its queues are empty.
 *
 *   warp 0       loader     stages of GEMMs, bulk copies          load.cuh, copy.cuh, gather.cuh
 *   warp 1       fetcher    pops, waits at entry, publishes       fetch.cuh, select.cuh
 *   warps 2, 3   storers    results out, signals, puts            store.cuh
 *   warps 4..11  consumers  wgmma, sums                           compute.cuh, plain.cuh, route.cuh
 *
 * docs/cuda.md explains the roles and lists, edge by edge, what makes a write visible to its
 * reader.
 *
 * Compiled twice, into kernels that are timed and others that leave records: GPU_TRACES is 0 or 1. */
#ifndef BACKENDS_CUDA_INTERPRETER_CUH
#define BACKENDS_CUDA_INTERPRETER_CUH

#include <cuda_runtime_api.h>

#include "backends/cuda/compute.cuh"
#include "backends/cuda/fetch.cuh"
#include "backends/cuda/gpu.h"
#include "backends/cuda/store.cuh"

PTX uint32_t barrier_arrivals(uint32_t i)
{
    if (i >= BARRIER_STAGE_EMPTY && i < BARRIER_STAGE_EMPTY + STAGES)
        return CONSUMERS / 32;
    if (i >= BARRIER_TASK_EMPTY && i < BARRIER_TASK_EMPTY + GPU_PREFETCH_MAX)
        return TASK_READERS;
    if (i >= BARRIER_TASK_FULL && i < BARRIER_TASK_FULL + GPU_PREFETCH_MAX)
        return TASK_WRITERS;
    if (i >= BARRIER_KEYS_EMPTY && i < BARRIER_VALUES_FULL)
        return CONSUMERS / 32;
    if (i >= BARRIER_VALUES_EMPTY && i < BARRIER_QUERIES_FULL)
        return CONSUMERS / 32;
    if (i == BARRIER_QUERIES_EMPTY)
        return CONSUMERS / 32;
    if (i == BARRIER_STAGED || i == BARRIER_STAGED + 1 || i >= BARRIER_TURN)
        return CONSUMERS / 2 / 32;
    return 1;
}

/* A thread each. */
PTX void init_barriers(const site &s)
{
    if (threadIdx.x < BARRIER_COUNT)
        barrier_init(barrier_at(s, threadIdx.x), barrier_arrivals(threadIdx.x));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* A launch begins with cold tables: what roles will look up one after the other is on its way from memory while the
 * fetcher pops.  Views and maps are shared out among all CTAs, flags among those of a crew. */
PTX void warm_tables(const site &s, uint32_t lane)
{
    const gpu_program &p = *s.program;
    const gpu_worker &w = *s.worker;
    uint32_t mine = blockIdx.x * 32 + lane;

    if (mine < p.view_count)
        prefetch_l2(p.views + mine);
    if (mine < p.map_count)
        prefetch_l2((const char *)p.maps + (uint64_t)mine * MAP_BYTES);
    mine = w.turn * 32 + lane;
    if (mine < w.flag_count)
        prefetch_l2((const gpu_flag *)w.flags + mine);
    if (lane < w.queue_count && w.turn < w.queues[lane].length) {
        const gpu_queue &q = w.queues[lane];

        prefetch_l2(p.tasks + q.tasks + w.turn);
        prefetch_l2(p.links + q.links + w.turn * q.links_per_task);
    }
}

/* A launch gives each thread 168 registers, at most; the four warps that compute nothing hand some
 * over: attention needs 224 for the others.  Who has nothing to do with attention or with dynamic work is
 * faster without its code, by 1 to 3 %; so there is a kernel for either, and one for both. */
template <bool ATTENDS, bool DYNAMIC>
static __global__ void __launch_bounds__(GPU_THREADS, 1) interpret(const __grid_constant__ gpu_program program)
{
    extern __shared__ __align__(1024) char memory[];
    site s = {&program, program.workers + blockIdx.x, memory, shared_address(memory), clock_ns()};
    uint32_t warp = __shfl_sync(ALL_LANES, threadIdx.x / 32, 0), lane = threadIdx.x % 32;

    init_barriers(s);
    if (threadIdx.x == 0) {
        if (s.shared % 1024 != 0)
            __trap(); /* swizzled tiles would be misread */
        store_shared(s.shared + ENDED_AT, 0);
        if constexpr (GPU_TRACES)
            store_shared(s.shared + RECORDS_AT, 0);
    }
    __syncthreads();
    if (warp >= CONSUMER_WARP) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(ATTENDS ? 224 : 216));
        run_consumer<ATTENDS, DYNAMIC>(s);
        return;
    }
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(ATTENDS ? 56 : 72));
    if (warp == STORE_WARP + 1)
        warm_tables(s, lane);
    if (warp == FETCH_WARP)
        run_fetcher<ATTENDS, DYNAMIC>(s, lane);
    else if (warp == LOAD_WARP && DYNAMIC)
        run_loader<ATTENDS>(s, lane);
    else if (warp == LOAD_WARP && lane == 0)
        run_attending_loader(s);
    else if (warp >= STORE_WARP && lane == 0)
        run_storer(s, warp - STORE_WARP);
}

template <bool ATTENDS, bool DYNAMIC> static cudaError_t prepare_one(void)
{
    return cudaFuncSetAttribute(interpret<ATTENDS, DYNAMIC>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
}

static cudaError_t prepare(void)
{
    cudaError_t error = prepare_one<false, true>();

    if (error == cudaSuccess)
        error = prepare_one<true, false>();
    return error == cudaSuccess ? prepare_one<true, true>() : error;
}

static cudaError_t launch(const struct gpu_program *p, unsigned needs, uint32_t workers, cudaStream_t stream)
{
    if (needs == (GPU_NEEDS_ATTENTION | GPU_NEEDS_DYNAMIC))
        interpret<true, true><<<workers, GPU_THREADS, SHARED_BYTES, stream>>>(*p);
    else if (needs & GPU_NEEDS_ATTENTION)
        interpret<true, false><<<workers, GPU_THREADS, SHARED_BYTES, stream>>>(*p);
    else
        interpret<false, true><<<workers, GPU_THREADS, SHARED_BYTES, stream>>>(*p);
    return cudaGetLastError();
}

#endif
