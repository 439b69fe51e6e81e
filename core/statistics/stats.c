#include "core/statistics/stats.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

struct stats stats_of(const uint64_t *samples, size_t count)
{
    struct stats s = {0};
    uint64_t *sorted, low, high;

    if (count == 0)
        return s;
    sorted = malloc(count * sizeof *sorted);
    assert(sorted);
    memcpy(sorted, samples, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare);
    low = sorted[(count - 1) / 2];
    high = sorted[count / 2];
    s = (struct stats){
        .min = sorted[0],
        .median = low + (high - low) / 2,
        .p95 = sorted[(count * 95 + 99) / 100 - 1],
        .max = sorted[count - 1],
    };
    free(sorted);
    return s;
}
