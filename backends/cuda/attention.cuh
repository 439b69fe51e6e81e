/* The consumers' part of an attention: each warpgroup has 64 queries, in registers, and meets the keys
 * in blocks (Dao, FlashAttention-2, 2023).
 *
 * The products of a block's queries and keys, and those of the weights and values of the block before, go
 * to the matrix units together; then the block is weighed, while these work for the other warpgroup.
 * With heads of 128 that comes about by itself, for the products take longest; with heads of 64 weighing
 * takes as long, and the warpgroups take turns (Shah et al., FlashAttention-3, 2024). */
#ifndef BACKENDS_CUDA_ATTENTION_CUH
#define BACKENDS_CUDA_ATTENTION_CUH

#include "backends/cuda/attention_result.cuh"
#include "backends/cuda/attention_wgmma.cuh"

/* Nothing that uses the registers may move above the wait that precedes this. */
template <int N> PTX void hold(float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(x[i])::"memory");
}

/* ---- operands ---- */

template <int D> PTX void take_queries(const site &s, consumer &c, attending<D> &a)
{
    await_barrier_consumer(s, barrier_at(s, BARRIER_QUERIES_FULL), take_turn(c, TURN_QUERIES));
#pragma unroll
    for (int i = 0; i < D / 16; i++) {
        uint32_t r[4];

        matrix_load_x4(s.shared + QUERIES_AT + c.group * QUERIES_APART + box_address(c, 2 * i), r);
#pragma unroll
        for (int k = 0; k < 4; k++)
            a.queries[4 * i + k] = r[k];
    }
}

/* Rows behind the keys belong to somebody else; a weight of 0 does not help against a NaN there.  So
 * every warp writes zeros over all of them, and need not wait for another. */
template <int D> PTX void clear_tail(const site &s, const panel_ring &values, uint32_t keys)
{
    uint4 *at = (uint4 *)(s.memory + VALUES_AT + panel_of(values) * PANEL_BYTES);

    for (uint32_t panel = 0; panel < D / 64; panel++)
        for (uint32_t i = keys * 8 + thread_index() % 32; i < GPU_KEYS * 8; i += 32)
            at[panel * (PANEL_BYTES / 16) + i] = {0, 0, 0, 0};
    fence_proxy_shared();
    __syncwarp();
}

PTX void release_keys(const site &s, const panel_ring &keys)
{
    barrier_arrive_one(barrier_at(s, BARRIER_KEYS_EMPTY + panel_of(keys)));
}

PTX void release_values(const site &s, const panel_ring &values)
{
    barrier_arrive_one(barrier_at(s, BARRIER_VALUES_EMPTY + panel_of(values)));
}

/* ---- products ---- */

/* Once the next block of keys has arrived, unless that has been seen.  Returns what stands in it. */
template <int D> PTX key_block multiply_keys(const site &s, const panel_ring &ring, bool arrived, attending<D> &a)
{
    uint32_t at = panel_of(ring);
    uint64_t keys = wgmma_operand(s.shared + at * PANEL_BYTES);
    key_block block;

    if (!arrived)
        await_barrier_consumer(s, barrier_at(s, BARRIER_KEYS_FULL + at), panel_phase(ring));
    block = *key_block_at(s, ring);
    wgmma_fence();
    wgmma_keys_start(a.scores, a.queries, keys);
#pragma unroll
    for (int i = 1; i < D / 16; i++) /* 16 columns are 32 bytes, in units of 16 */
        wgmma_keys_add(a.scores, a.queries + 4 * i, keys + i / 4 * (PANEL_BYTES / 16) + i % 4 * 2);
    wgmma_commit();
    return block;
}

/* Once the values of a block with so many keys have arrived, unless that has been seen. */
template <int D>
PTX void multiply_values(const site &s, const panel_ring &ring, uint32_t keys, bool arrived, attending<D> &a)
{
    uint32_t at = panel_of(ring);
    uint64_t values = wgmma_operand_rows(s.shared + VALUES_AT + at * PANEL_BYTES, PANEL_BYTES);

    if (!arrived)
        await_barrier_consumer(s, barrier_at(s, BARRIER_VALUES_FULL + at), panel_phase(ring));
    if (keys < GPU_KEYS)
        clear_tail<D>(s, ring, keys);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < GPU_KEYS / 16; i++) /* 16 rows of 128 bytes, in units of 16 */
        wgmma_values_add(a.result, a.weights + 4 * i, values + i * 128);
    wgmma_commit();
}

/* ---- turns at the matrix units ---- */

/* Elsewhere the products take longest, and the matrix units are best left to whoever comes. */
template <int D> PTX constexpr bool takes_turns(void)
{
    return D == 64;
}

/* The first warpgroup begins. */
template <int D> PTX void await_turn(const site &s, consumer &c, uint32_t group)
{
    if (takes_turns<D>())
        await_barrier_consumer(s, barrier_at(s, BARRIER_TURN + group), take_turn(c, TURN_MULTIPLY) ^ group ^ 1);
}

template <int D> PTX void pass_turn(const site &s, uint32_t group)
{
    if (takes_turns<D>())
        barrier_arrive_one(barrier_at(s, BARRIER_TURN + (group ^ 1)));
}

/* What the next turn needs is looked for before it comes: a look takes long beside the products. */
template <int D> PTX void look_early(const site &s, const panel_ring &keys, bool &sees_keys, bool &sees_values)
{
    panel_ring values = panels_before(keys, D / 64);

    if (!takes_turns<D>())
        return;
    sees_keys = barrier_test(barrier_at(s, BARRIER_KEYS_FULL + panel_of(keys)), panel_phase(keys));
    sees_values = barrier_test(barrier_at(s, BARRIER_VALUES_FULL + panel_of(values)), panel_phase(values));
}

/* ---- all of it ---- */

template <int D> PTX key_block attend_first(const site &s, consumer &c, attending<D> &a)
{
    key_block block;

    panels_align(c.keys, D / 64);
    take_queries(s, c, a);
    block = multiply_keys(s, c.keys, false, a);
    start_afresh(a);
    wgmma_wait<0>();
    hold(a.scores);
    barrier_arrive_one(barrier_at(s, BARRIER_QUERIES_EMPTY));
    mask(block, a);
    release_keys(s, c.keys);
    panels_advance(c.keys, D / 64);
    raise(a);
    weigh(a);
    return block;
}

/* `block`: the last one; `arrived`: the next keys and the last values have been seen. */
template <int D>
PTX void attend_next(const site &s, consumer &c, uint32_t group, key_block &block, bool &arrived, attending<D> &a)
{
    panel_ring values = panels_before(c.keys, D / 64);
    uint32_t keys = block.keys;
    bool sees_keys = false, sees_values = false;

    await_turn<D>(s, c, group);
    block = multiply_keys(s, c.keys, arrived, a);
    multiply_values(s, values, keys, arrived, a);
    wgmma_wait<0>();
    pass_turn<D>(s, group);
    hold(a.scores);
    hold(a.result);
    release_keys(s, c.keys);
    release_values(s, values);
    panels_advance(c.keys, D / 64);
    mask(block, a);
    look_early<D>(s, c.keys, sees_keys, sees_values);
    weigh_or_raise(a);
    if (takes_turns<D>())
        arrived = __all_sync(ALL_LANES, sees_keys && sees_values);
}

/* What the task before has left is merged once the last products are there. */
template <int D>
PTX void attend_last(const site &s, consumer &c, const gpu_task &t, const attention_feed &f, uint32_t keys,
                     attending<D> &a)
{
    panel_ring values = panels_before(c.keys, D / 64);
    float log_sum[2] = {MINUS_INFINITY, MINUS_INFINITY};

    multiply_values(s, values, keys, false, a);
    consumer_identify(c);
    if (continues(t))
        load_log_sums(c, t, f.lse, log_sum);
    wgmma_wait<0>();
    hold(a.result);
    release_values(s, values);
    await_staging(s, c);
    if (continues(t))
        merge_before(s, c, log_sum, a);
    else
        divide(a);
}

template <int D> PTX void attend_blocks(const site &s, consumer &c, const gpu_task &t, uint32_t slot)
{
    uint32_t blocks = __reduce_max_sync(ALL_LANES, t.k);
    uint32_t group = __shfl_sync(ALL_LANES, thread_index() / 128 - 1, 0);
    bool arrived = false;
    attending<D> a;
    key_block block = attend_first(s, c, a);

    while (--blocks > 0)
        attend_next(s, c, group, block, arrived, a);
    attend_last(s, c, t, feed_at(s, slot), block.keys, a);
    finish(s, c, t, feed_at(s, slot), a);
}

PTX void attend(const site &s, consumer &c, const gpu_task &t, uint32_t slot)
{
    if (t.n == 128)
        attend_blocks<128>(s, c, t, slot);
    else
        attend_blocks<64>(s, c, t, slot);
}

#endif
