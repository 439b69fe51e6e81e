/* The baseline of kernels that send tokens to experts: what a library does with NCCL and a grouped GEMM. */
#ifndef SIM_BASELINE_MOE_H
#define SIM_BASELINE_MOE_H

#include "core/backend.h"

/* Times of one epoch, ps, all ranks aligned: sizes are exchanged first and the host waits for them; rows are
 * put in order before and after they travel, at the speed of memory; then comes the grouped GEMM of the rank
 * with most rows.  Rows travel in one of two ways. */
struct moe_baseline {
    double each_ps; /* one all-to-all: a row for each (token, expert) pair */
    double once_ps; /* a token once to each node, over the rail, then within the node once to each rank */
};

struct moe_baseline moe_baseline_time(const struct job *job, uint64_t epoch);

/* One sample an iteration of its faster way, or their mean where iterations follow each other.  Fills *r but
 * for r->report; BASELINE_STREAMS there is none. */
enum status moe_baseline_run(const struct job *job, enum baseline which, struct run_result *r);

#endif
