/* Contestants of one problem side by side: who is best, and by how much fused beats or trails NCCL. */
#ifndef CORE_RESULTS_COMPARE_H
#define CORE_RESULTS_COMPARE_H

#include <stdint.h>

#include "core/run/run.h"
#include "core/statistics/stats.h"

#define COMPARE_NONE UINT64_MAX

/* Points that differ in variant, program and parameters only.  Each member is the index of the fastest
 * point of its kind, or COMPARE_NONE. */
struct compare_group {
    uint64_t first;
    uint64_t best, fused, unfused, nccl, streams;
};

struct compare {
    const struct run_unit *points;
    uint64_t count;
    struct stats *times; /* by point, ps; all 0 where there is no result */
    uint64_t *group_of;  /* by point */
    struct compare_group *groups;
    uint64_t group_count;
};

void compare_create(const struct run_unit *points, uint64_t count, struct compare *out);
void compare_destroy(struct compare *c); /* safe on a zeroed compare */

/* Median time of `other` over that of `point`; 0 where either is missing. */
double compare_ratio(const struct compare *c, uint64_t other, uint64_t point);

/* Over the nccl variant of the same problem; 0: unknown. */
double compare_speedup(const struct compare *c, uint64_t point);

/* "best", "ok" (not slower than nccl), "slower", "skipped", or the failure in a word: "hang". */
const char *compare_verdict(const struct compare *c, uint64_t point);

#endif
