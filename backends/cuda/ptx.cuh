/* One PTX instruction a function. */
#ifndef BACKENDS_CUDA_PTX_CUH
#define BACKENDS_CUDA_PTX_CUH

#include <stdint.h>

#define PTX __device__ __forceinline__

PTX uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* ---- mbarriers ---- */

PTX void barrier_init(uint32_t barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

PTX void barrier_expect(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/* Without arriving; by one lane of a warp whose lanes stay together. */
PTX void barrier_expect_more_one(uint32_t barrier, uint32_t bytes)
{
    asm volatile("{\n.reg .pred p;\n"
                 "elect.sync _|p, 0xffffffff;\n"
                 "@p mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;\n}\n" ::"r"(barrier),
                 "r"(bytes)
                 : "memory");
}

PTX void barrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* Waits a bounded time. */
PTX bool barrier_try(uint32_t barrier, uint32_t phase)
{
    uint32_t done;

    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}\n"
                 : "=r"(done)
                 : "r"(barrier), "r"(phase)
                 : "memory");
    return done;
}

PTX bool barrier_test(uint32_t barrier, uint32_t phase)
{
    uint32_t done;

    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}\n"
                 : "=r"(done)
                 : "r"(barrier), "r"(phase)
                 : "memory");
    return done;
}

/* For a whole warp, whose lanes stay together: until the phase is over, or the word at `unless`, in
 * shared memory, is not 0. */
PTX void barrier_await_unless(uint32_t barrier, uint32_t phase, uint32_t unless)
{
    asm volatile("{\n.reg .pred p;\n.reg .u32 word;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "vote.sync.all.pred p, p, 0xffffffff;\n"
                 "@p bra.uni over;\n"
                 "ld.volatile.shared.u32 word, [%2];\n"
                 "setp.eq.u32 p, word, 0;\n"
                 "vote.sync.all.pred p, p, 0xffffffff;\n"
                 "@p bra.uni again;\n"
                 "over:\n}\n" ::"r"(barrier),
                 "r"(phase), "r"(unless)
                 : "memory");
}

/* The same; with `fences` there is a proxy fence for shared memory behind it. */
PTX void barrier_await_fence_unless(uint32_t barrier, uint32_t phase, uint32_t unless, uint32_t fences)
{
    barrier_await_unless(barrier, phase, unless);
    asm volatile("{\n.reg .pred p;\n"
                 "setp.ne.u32 p, %0, 0;\n"
                 "@p fence.proxy.async.shared::cta;\n}\n" ::"r"(fences)
                 : "memory");
}

/* By one lane of a warp whose lanes stay together. */
PTX void barrier_arrive_one(uint32_t barrier)
{
    asm volatile("{\n.reg .pred p;\n"
                 "elect.sync _|p, 0xffffffff;\n"
                 "@p mbarrier.arrive.shared::cta.b64 _, [%0];\n}\n" ::"r"(barrier)
                 : "memory");
}

/* ---- the copy engine of the SM ---- */

PTX void tensor_load(uint32_t to, const void *map, uint32_t col, uint32_t row, uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(col), "r"(row), "r"(barrier)
                 : "memory");
}

/* By one lane of a warp whose lanes stay together. */
PTX void tensor_load_one(uint32_t to, const void *map, uint32_t col, uint32_t row, uint32_t barrier)
{
    asm volatile("{\n.reg .pred p;\n"
                 "elect.sync _|p, 0xffffffff;\n"
                 "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];\n}\n" ::"r"(to),
                 "l"(map), "r"(col), "r"(row), "r"(barrier)
                 : "memory");
}

PTX void tensor_store(const void *map, uint32_t col, uint32_t row, uint32_t from)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
                 "r"(col), "r"(row), "r"(from)
                 : "memory");
}

PTX void bulk_load(uint32_t to, uint64_t from, uint32_t bytes, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

PTX void bulk_store(uint64_t to, uint32_t from, uint32_t bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
                 : "memory");
}

/* Into the second-level cache. */
PTX void bulk_prefetch(uint64_t from, uint32_t bytes)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}

PTX void prefetch_l2(const void *p)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p) : "memory");
}

PTX void bulk_commit(void)
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* All groups but the last `PENDING` have read their source. */
template <int PENDING> PTX void bulk_wait_read(void)
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

/* All groups are complete: their data have arrived. */
PTX void bulk_wait_all(void)
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* ---- asynchronous copies by single threads ---- */

/* 16 bytes into shared memory. */
PTX void async_copy(uint32_t to, uint64_t from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

/* `bytes` of them are read, the others are 0. */
PTX void async_copy_part(uint32_t to, uint64_t from, uint32_t bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

/* An arrival more, that comes when all copies which the thread has begun have landed. */
PTX void async_arrive(uint32_t barrier)
{
    asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

/* ---- order ---- */

PTX void fence_proxy(void)
{
    asm volatile("fence.proxy.async;" ::: "memory");
}

PTX void fence_proxy_shared(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

PTX uint64_t load_acquire(uint64_t address, bool system)
{
    uint64_t v;

    if (system)
        asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(address) : "memory");
    else
        asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(address) : "memory");
    return v;
}

PTX void add_release(uint64_t address, uint64_t add, bool system)
{
    if (system)
        asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(address), "l"(add) : "memory");
    else
        asm volatile("red.release.gpu.global.add.u64 [%0], %1;" ::"l"(address), "l"(add) : "memory");
}

PTX void fence_release(bool system)
{
    if (system)
        asm volatile("fence.acq_rel.sys;" ::: "memory");
    else
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

PTX void add_relaxed(uint64_t address, uint64_t add, bool system)
{
    if (system)
        asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(address), "l"(add) : "memory");
    else
        asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(address), "l"(add) : "memory");
}

PTX void store_release_system(uint64_t address, uint64_t v)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(address), "l"(v) : "memory");
}

PTX uint32_t load_relaxed(const uint32_t *p)
{
    uint32_t v;

    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

PTX uint32_t load_shared(uint32_t address)
{
    uint32_t v;

    asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
    return v;
}

PTX void store_shared(uint32_t address, uint32_t v)
{
    asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(address), "r"(v) : "memory");
}

/* Returns what it was. */
PTX uint32_t add_shared(uint32_t address, uint32_t add)
{
    uint32_t v;

    asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(v) : "r"(address), "r"(add) : "memory");
    return v;
}

/* Asked again instead of kept in a register. */
PTX uint32_t thread_index(void)
{
    uint32_t v;

    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(v));
    return v;
}

PTX uint64_t clock_ns(void)
{
    uint64_t v;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(v));
    return v;
}

/* Of the SM. */
PTX uint64_t clock_cycles(void)
{
    uint64_t v;

    asm volatile("mov.u64 %0, %%clock64;" : "=l"(v));
    return v;
}

PTX void thread_exit(void)
{
    asm volatile("exit;");
    __builtin_unreachable();
}

/* ---- matrix units ---- */

PTX void wgmma_fence(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

PTX void wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING> PTX void wgmma_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* A K-major operand in shared memory: rows of 128 bytes, swizzled, groups of 8 rows 1024 bytes apart. */
PTX uint64_t wgmma_operand(uint32_t address)
{
    return (uint64_t)((address & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

PTX void matrix_store_x4(uint32_t address, const uint32_t (&r)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r[0]),
                 "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

PTX void matrix_load_x4(uint32_t address, uint32_t (&r)[4])
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

/* ---- bf16 pairs: the lower half is the lower column ---- */

PTX uint32_t pair_of(float low, float high)
{
    uint32_t r;

    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(low), "f"(high));
    return r;
}

PTX float pair_low(uint32_t pair)
{
    return __uint_as_float(pair << 16);
}

PTX float pair_high(uint32_t pair)
{
    return __uint_as_float(pair & 0xffff0000);
}

#endif
