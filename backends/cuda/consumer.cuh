/* What the consumers' ops share: who a thread is, its waits, staging. */
#ifndef BACKENDS_CUDA_CONSUMER_CUH
#define BACKENDS_CUDA_CONSUMER_CUH

#include "backends/cuda/site.cuh"

/* Barriers that a consumer waits for turn by turn, as bits of consumer.turns. */
enum { TURN_UNSTAGED = 1, TURN_ADDEND = 2, TURN_QUERIES = 4, TURN_MULTIPLY = 8 };

/* An attention needs nearly all registers: what is kept from task to task is packed, who a thread is
 * can be asked again. */
struct consumer {
    uint32_t group, warp, lane, thread; /* warpgroup; warp in it; lane in that; thread of both */
    uint32_t stages;                    /* stage, and above it the phase of their ring */
    uint32_t turns;                     /* phases */
    panel_ring keys;                    /* that of the values is a block behind */
};

PTX void consumer_identify(consumer &c)
{
    c.thread = thread_index() - CONSUMER_WARP * 32;
    c.group = c.thread / 128;
    c.warp = c.thread / 32 % 4;
    c.lane = c.thread % 32;
}

/* The phase of this turn. */
PTX uint32_t take_turn(consumer &c, uint32_t turn)
{
    c.turns ^= turn;
    return (c.turns & turn) == 0;
}

/* The lanes of a warp stay together.  An exit in the middle would make ptxas serialise the
 * products; so in an aborted run a consumer waits no longer than it takes to see that, and leaves at
 * its next task. */
PTX void await_barrier_consumer(const site &s, uint32_t barrier, uint32_t phase)
{
    barrier_await_unless(barrier, phase, s.shared + ENDED_AT);
}

/* ---- staging ---- */

/* Where a lane's part of columns [8 i, 8 i + 16) stands in boxes of 64 columns, swizzled as tensor maps
 * have it, for stmatrix and ldmatrix. */
PTX uint32_t box_address(const consumer &c, uint32_t i)
{
    uint32_t row = c.warp * 16 + (c.lane & 15), chunk = (i & 7) + (c.lane >> 4);

    return (i >> 3) * STAGING_BOX_BYTES + row * 128 + ((chunk ^ (row & 7)) << 4);
}

PTX uint32_t staging_address(const site &s, const consumer &c, uint32_t i)
{
    return s.shared + STAGING_AT + c.group * STAGING_BYTES + box_address(c, i);
}

/* The warp has written its part. */
PTX void arrive_staged(const site &s, const consumer &c)
{
    __syncwarp();
    barrier_arrive_one(barrier_at(s, BARRIER_STAGED + c.group));
}

PTX void await_staging(const site &s, consumer &c)
{
    await_barrier_consumer(s, barrier_at(s, BARRIER_UNSTAGED + c.group), take_turn(c, TURN_UNSTAGED) ^ 1);
}

#endif
