#include "core/trace/trace_bins.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/world.h"

#define FIRST_WIDTH_PS 1000

void trace_bins_init(struct trace_bins *b, uint32_t series_count)
{
    b->width_ps = FIRST_WIDTH_PS;
    b->series_count = series_count;
    b->values = calloc((size_t)series_count + 1, sizeof *b->values);
    assert(b->values);
}

void trace_bins_fini(struct trace_bins *b)
{
    free(b->values);
    b->values = NULL;
}

static void widen(struct trace_bins *b)
{
    for (uint32_t s = 0; s < b->series_count; s++) {
        double *v = b->values[s];

        for (uint32_t i = 0; i < TRACE_BINS / 2; i++)
            v[i] = v[2 * i] + v[2 * i + 1];
        memset(v + TRACE_BINS / 2, 0, TRACE_BINS / 2 * sizeof *v);
    }
    b->width_ps *= 2;
}

void trace_bins_add(struct trace_bins *b, uint32_t series, double amount, uint64_t begin_ps, uint64_t end_ps)
{
    double *v = b->values[series], rate;
    uint64_t last;

    assert(series < b->series_count && begin_ps <= end_ps);
    while (end_ps / b->width_ps >= TRACE_BINS)
        widen(b);
    if (begin_ps == end_ps) {
        v[begin_ps / b->width_ps] += amount;
        return;
    }
    rate = amount / (double)(end_ps - begin_ps);
    last = (end_ps - 1) / b->width_ps;
    for (uint64_t i = begin_ps / b->width_ps; i <= last; i++) {
        uint64_t from = max_u64(begin_ps, i * b->width_ps), to = min_u64(end_ps, (i + 1) * b->width_ps);

        v[i] += rate * (double)(to - from);
    }
}

uint32_t trace_bins_used(const struct trace_bins *b, uint64_t end_ps)
{
    return (uint32_t)min_u64(ceil_div(end_ps, b->width_ps), TRACE_BINS);
}
