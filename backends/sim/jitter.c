#include "backends/sim/jitter.h"

#include <math.h>

#define PAUSE_PS 1000000 /* about a flag's latency */

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

bool jitter_chance(struct sim *s, double probability)
{
    return next_unit(&s->prng) < probability;
}

/* ---- disorder ---- */

static bool disordered(const struct sim *s)
{
    return s->options.disorder > 1;
}

static double next_factor(struct sim *s)
{
    return pow(s->options.disorder, next_unit(&s->prng));
}

static void draw_slow_ranks(struct sim *s)
{
    static const double rates[] = {0, 1.0 / 64, 1.0 / 8, 1};

    s->stretched = rates[next_u64(&s->prng) % 4];
    for (uint32_t rank = 0; rank < s->rank_count; rank++)
        for (int kind = 0; kind < DELAYS; kind++)
            s->ranks[rank].slow[kind] = next_u64(&s->prng) % 4 == 0 ? next_factor(s) : 1;
}

/* Half of the crews are complete. */
static void draw_crew(struct sim *s, uint32_t rank, uint32_t first, uint32_t workers)
{
    uint64_t present = workers;

    if (workers > 0 && next_u64(&s->prng) % 2)
        present = 1 + next_u64(&s->prng) % workers;
    for (uint64_t i = present; i < workers; i++)
        sim_worker(s, rank, first + (uint32_t)i)->absent = true;
}

void jitter_open(struct sim *s, uint64_t seed)
{
    s->prng.state = seed;
    if (!disordered(s))
        return;
    draw_slow_ranks(s);
    for (uint32_t rank = 0; rank < s->rank_count; rank++)
        for (uint32_t crew = 0, first = 0; crew < s->program->crew_count; crew++) {
            draw_crew(s, rank, first, s->program->crews[crew].workers);
            first += s->program->crews[crew].workers;
        }
}

static double disorder(struct sim *s, enum delay kind, uint32_t rank)
{
    double factor = s->ranks[rank].slow[kind];

    if (next_unit(&s->prng) < s->stretched)
        return factor * next_factor(s);
    return factor * (0.5 + next_unit(&s->prng)); /* ties and near ties fall either way */
}

uint64_t jitter_pause(struct sim *s, uint32_t rank)
{
    if (!disordered(s) || next_u64(&s->prng) % 4)
        return 0;
    return (uint64_t)(PAUSE_PS * (disorder(s, DELAY_PAUSE, rank) - 0.5));
}

/* ---- either ---- */

uint64_t jitter_spread(struct sim *s, enum delay kind, uint32_t rank, uint64_t ps)
{
    if (disordered(s))
        return (uint64_t)((double)ps * disorder(s, kind, rank));
    if (s->options.jitter == 0)
        return ps;
    return (uint64_t)((double)ps * (1 + s->options.jitter * (2 * next_unit(&s->prng) - 1)));
}

uint64_t jitter_extra(struct sim *s, enum delay kind, uint32_t rank, uint64_t ps)
{
    if (disordered(s))
        return (uint64_t)((double)ps * (disorder(s, kind, rank) - 0.5));
    if (s->options.jitter == 0)
        return 0;
    return (uint64_t)((double)ps * s->options.jitter * next_unit(&s->prng));
}
