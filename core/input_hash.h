/* The values of exact inputs (core/check.h), for the host and for GPUs alike.
 *
 * One hash yields four elements of 16 bits each: 15 decide between zero and non-zero, one is the sign. */
#ifndef CORE_INPUT_HASH_H
#define CORE_INPUT_HASH_H

#include <stdint.h>

#ifdef __CUDACC__
#define INPUT_HASH static inline __host__ __device__
#else
#define INPUT_HASH static inline
#endif

#define INPUT_LANES 4
#define INPUT_LANE_BITS 16
#define INPUT_LANE_ONE (1u << (INPUT_LANE_BITS - 1))
#define INPUT_GOLDEN 0x9e3779b97f4a7c15ull

/* The finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
 * 2014). */
INPUT_HASH uint64_t input_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

INPUT_HASH uint64_t input_tensor_key(uint64_t seed, uint64_t epoch, uint32_t tensor)
{
    return input_mix(input_mix(input_mix(seed + INPUT_GOLDEN) ^ epoch) + tensor);
}

INPUT_HASH uint64_t input_row_key(uint64_t tensor_key, uint64_t row)
{
    return input_mix(tensor_key ^ row);
}

/* Of columns [INPUT_LANES * group, INPUT_LANES * (group + 1)). */
INPUT_HASH uint64_t input_hash(uint64_t row_key, uint64_t group)
{
    return input_mix(row_key + group * INPUT_GOLDEN);
}

INPUT_HASH uint32_t input_lane(uint64_t hash, uint32_t lane)
{
    return (uint32_t)(hash >> lane * INPUT_LANE_BITS) & ((1u << INPUT_LANE_BITS) - 1);
}

INPUT_HASH int input_value(uint32_t lane_bits, uint32_t threshold)
{
    return lane_bits >> 1 < threshold ? 1 - 2 * (int)(lane_bits & 1) : 0;
}

/* Density x INPUT_LANE_ONE.  An element of C sums depth * density^2 non-zero products: 64 expected, with
 * a deviation below 8, so that 256 is never reached; reference_gemm() asserts it. */
INPUT_HASH uint32_t input_threshold(uint64_t depth)
{
    uint64_t square = depth <= 64 ? 0 : 64ull * INPUT_LANE_ONE * INPUT_LANE_ONE / depth, root = 0;

    if (depth <= 64)
        return INPUT_LANE_ONE;
    for (uint64_t bit = 1ull << 31; bit > 0; bit >>= 1)
        if ((root + bit) * (root + bit) <= square)
            root += bit;
    return root > 0 ? (uint32_t)root : 1;
}

#endif
