/* Flags: how one is waited for.  Whoever gives up on it first notes what it waited for. */
#ifndef BACKENDS_CUDA_FLAGS_CUH
#define BACKENDS_CUDA_FLAGS_CUH

#include "backends/cuda/record.cuh"

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
    s.program->stuck[blockIdx.x * GPU_ROLE_COUNT + w.role] = {1,      t.queue, t.index,  w.role == GPU_STORE,    w.step,
                                                              w.flag, w.value, w.wanted, w.since_ns - s.begun_ns};
}

#define POLL_NANOSECONDS 20
#define POLLS_PER_LOOK 256 /* at the abort word */

/* For one thread. */
PTX void await_flags(const site &s, const gpu_wait &w, gpu_role role, const gpu_task &t, uint32_t step)
{
    for (uint32_t i = 0; i < w.count; i++) {
        flag_wait f = flag_wait_of(s, w, i);
        gpu_record *wait = f.value < f.wanted ? record_wait(s, t, w.flag + i, f.wanted, role != GPU_FETCH) : nullptr;
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
                leave(s);
            }
        }
        record_end(wait);
    }
}

#endif
