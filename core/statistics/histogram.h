/* Counts of durations by size, so that percentiles of millions cost a few hundred words and merge exactly.
 * Plain data: a child process sends it through a pipe. */
#ifndef CORE_STATISTICS_HISTOGRAM_H
#define CORE_STATISTICS_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_STEPS 8                        /* buckets an octave: a percentile is at most 1/8 too large */
#define HISTOGRAM_BUCKETS (38 * HISTOGRAM_STEPS) /* up to 2^40 ns, 18 minutes; the last one takes the rest */

struct histogram {
    uint64_t buckets[HISTOGRAM_BUCKETS];
    uint64_t count;
};

void histogram_add(struct histogram *h, uint64_t ns);
void histogram_merge(struct histogram *into, const struct histogram *from);

/* An upper bound of the smallest duration that at least `share` of all do not exceed; 0: there are none. */
uint64_t histogram_quantile(const struct histogram *h, double share);

#endif
