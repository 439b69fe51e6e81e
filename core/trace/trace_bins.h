/* Quantities over time in a fixed number of bins: when time runs past the last one, every bin becomes twice
 * as wide.  Many series share one time axis. */
#ifndef CORE_TRACE_TRACE_BINS_H
#define CORE_TRACE_TRACE_BINS_H

#include <stdint.h>

#define TRACE_BINS 256

struct trace_bins {
    uint64_t width_ps;
    uint32_t series_count;
    double (*values)[TRACE_BINS]; /* by series */
};

void trace_bins_init(struct trace_bins *b, uint32_t series_count);
void trace_bins_fini(struct trace_bins *b);

/* Spreads `amount` evenly over [begin, end); all of it into one bin where that is empty. */
void trace_bins_add(struct trace_bins *b, uint32_t series, double amount, uint64_t begin_ps, uint64_t end_ps);

/* How many bins up to `end_ps`. */
uint32_t trace_bins_used(const struct trace_bins *b, uint64_t end_ps);

#endif
