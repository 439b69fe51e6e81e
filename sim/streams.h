/* The harder baseline: what a good engineer writes by hand with streams, copy engines, cuBLAS or cuDNN and,
 * between nodes, NCCL send / receive. */
#ifndef SIM_STREAMS_H
#define SIM_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/kernel.h"
#include "core/machine/machine.h"
#include "core/world.h"

/* How the work is cut.  `remote` and `local`: pieces of the rows (of attention: positions) that other nodes and the
 * node's peers own; `own`: pieces of the own rows (all-reduce).  0 where there are no such rows. */
struct streams_cut {
    bool whole; /* one call computes all, nothing overlaps it */
    uint32_t remote, local, own;
};

/* Into how many pieces a program is cut at most; 0: 32. */
struct streams_pieces {
    uint32_t others; /* rows of other nodes, and of peers */
    uint32_t own;
};

struct streams_setup {
    const struct machine *machine;
    struct world world;
    struct problem problem; /* a GEMM or an attention */
    enum collective collective;
    /* The host's time, 0 where it does not count: before the first call and for each one; and, when
     * iterations follow each other and the host runs ahead, the least time that a call costs. */
    uint64_t launch_ps, issue_ps, period_ps;
    struct streams_pieces most;
};

struct streams_time {
    double time_ps;
    uint32_t calls; /* that the host issues per iteration and rank */
    struct streams_cut cut;
};

/* One iteration, all ranks aligned, cut as given. */
struct streams_time streams_time(const struct streams_setup *setup, struct streams_cut cut);

/* The fastest of all cuts into 1, 2, 4 .. pieces, up to `most`, and of the whole. */
struct streams_time streams_best(const struct streams_setup *setup);

/* "4 pieces", "8 remote + 2 local pieces", "no overlap" */
void streams_cut_print(const struct streams_cut *cut, char *out, size_t out_bytes);

#endif
