/* What fused kernels are compared with, timed by models. */
#ifndef SIM_BASELINE_H
#define SIM_BASELINE_H

#include "core/backend.h"
#include "sim/streams.h"

/* Fills *r in every case; returns r->status.  One deterministic sample: the time of one iteration,
 * the same on all ranks.  Needs job->world, kernel, problem, machine and timing; no program.
 *
 * BASELINE_NCCL: the collective and the GEMM in sequence on one stream.
 * BASELINE_STREAMS: overlapped by hand with streams and copy engines, best cut into `most` pieces (sim/streams.h).
 *
 * Epochs of a rank follow each other as in a fused program: in steady state (TIMING_PIPELINED) only
 * the host runs ahead.  Without timing.launch the host costs nothing; hops between streams stay. */
enum status baseline_run(const struct job *job, enum baseline which, struct streams_pieces most, struct run_result *r);

#endif
