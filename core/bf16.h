/* The 16-bit float of the tensor cores: the upper half of an IEEE f32. */
#ifndef CORE_BF16_H
#define CORE_BF16_H

#include <stdint.h>
#include <string.h>

static inline uint32_t f32_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float f32_from_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float f32_from_bf16(uint16_t x)
{
    return f32_from_bits((uint32_t)x << 16);
}

/* Rounds to nearest, ties to even; NaN stays NaN. */
static inline uint16_t bf16_from_f32(float x)
{
    uint32_t bits = f32_bits(x);

    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
