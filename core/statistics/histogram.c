#include "core/statistics/histogram.h"

/* Below HISTOGRAM_STEPS a bucket each; from there on the three bits behind the leading one choose it. */
static uint32_t bucket_of(uint64_t ns)
{
    uint32_t octave, bucket;

    if (ns < HISTOGRAM_STEPS)
        return (uint32_t)ns;
    octave = 63 - (uint32_t)__builtin_clzll(ns) - 3;
    bucket = octave * HISTOGRAM_STEPS + (uint32_t)(ns >> octave);
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* The largest duration that falls into it. */
static uint64_t bucket_end(uint32_t bucket)
{
    uint32_t octave;

    if (bucket < HISTOGRAM_STEPS)
        return bucket;
    octave = bucket / HISTOGRAM_STEPS - 1;
    return ((uint64_t)(bucket % HISTOGRAM_STEPS + HISTOGRAM_STEPS + 1) << octave) - 1;
}

void histogram_add(struct histogram *h, uint64_t ns)
{
    h->buckets[bucket_of(ns)]++;
    h->count++;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
    into->count += from->count;
}

uint64_t histogram_quantile(const struct histogram *h, double share)
{
    double wanted = share * (double)h->count;
    uint64_t seen = 0;

    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen > 0 && (double)seen >= wanted)
            return bucket_end(i);
    }
    return 0;
}
