/* The baselines of kernels that send tokens to experts, and maybe their results back: what a library does with
 * grouped NCCL send / receive and grouped GEMMs, in sequence or overlapped by hand. */
#ifndef SIM_BASELINE_MOE_H
#define SIM_BASELINE_MOE_H

#include "core/backend.h"

/* Rows travel in one of two ways, and their results back in the same. */
enum moe_way {
    MOE_EACH, /* one all-to-all: a row for each (token, expert) pair */
    MOE_ONCE, /* a token once to each node, over the rail, then within the node once to each rank; back, rows of one
                 token are summed before each of the two steps */
    MOE_WAYS,
};

/* Time of one epoch, ps, all ranks aligned.  Sizes are exchanged first and the host waits for them; rows are put in
 * order before and after they travel, at the speed of memory; then come the grouped GEMMs of the rank with most rows
 * (of a feed-forward layer two, and between them a kernel for the activation).
 *
 * `pieces`: every rank cuts its tokens into so many equal parts, which two streams work on: while one computes, NCCL
 * moves another (and its channels keep their SMs).  1: all in sequence, with all SMs. */
double moe_baseline_ps(const struct job *job, uint64_t epoch, enum moe_way way, uint32_t pieces);

/* One sample an iteration, or their mean where iterations follow each other.  BASELINE_NCCL: in sequence, the
 * faster way.  BASELINE_STREAMS: the fastest way and number of pieces, of 1, 2, 4 .. 32.  Fills *r. */
enum status moe_baseline_run(const struct job *job, enum baseline which, struct run_result *r);

#endif
