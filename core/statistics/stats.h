/* What a run's samples come to. */
#ifndef CORE_STATISTICS_STATS_H
#define CORE_STATISTICS_STATS_H

#include <stddef.h>
#include <stdint.h>

struct stats {
    uint64_t min, median, p95, max; /* in the unit of the samples */
};

/* median: the middle sample, or the mean of the middle two, rounded down.
 * p95: the smallest sample that at least 95 % of the samples do not exceed (nearest rank).
 * All 0 for no samples.  `samples` stays as it is. */
struct stats stats_of(const uint64_t *samples, size_t count);

#endif
