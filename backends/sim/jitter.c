#include "backends/sim/jitter.h"

void jitter_seed(struct sim *s, uint64_t seed)
{
    s->prng.state = seed;
}

/* SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
 */
static uint64_t next_u64(struct prng *g)
{
    uint64_t z = g->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double next_unit(struct prng *g)
{
    return (double)(next_u64(g) >> 11) * 0x1p-53;
}

uint64_t jitter_spread(struct sim *s, uint64_t ps)
{
    if (s->options.jitter == 0)
        return ps;
    return (uint64_t)((double)ps * (1 + s->options.jitter * (2 * next_unit(&s->prng) - 1)));
}

uint64_t jitter_extra(struct sim *s, uint64_t ps)
{
    if (s->options.jitter == 0)
        return 0;
    return (uint64_t)((double)ps * s->options.jitter * next_unit(&s->prng));
}
