/* The bytes that a task moves inside its node, as flows over NVLink.
 *
 * One CTA's rate bounds all flows of a copy together; a GEMM's stores come from shared memory and
 * are not bound by it (to store a tile of 64 KiB to a peer and signal it takes 1.5 us more than
 * locally, as measured on two H200: the latencies and the link's own rate account for that).  A
 * target RANK_NODE is one multicast flow where the machine's switch replicates stores, else, like RANK_EACH, a flow
 * for each peer; the rank's own copy is no flow. */
#ifndef BACKENDS_SIM_TRANSFER_H
#define BACKENDS_SIM_TRANSFER_H

#include "backends/sim/state.h"

/* Of rows x cols elements of the operand's buffer. */
uint64_t transfer_bytes(const struct sim *s, const struct operand *o, uint64_t rows, uint64_t cols);
uint64_t transfer_addend_bytes(const struct sim *s, const struct task *t);

/* Whether any of the task's results leaves the rank. */
bool transfer_is_remote(const struct sim *s, uint32_t rank, const struct task *t);
/* The same, or that a COPY, a REDUCE or an op that reads by index reads from a peer. */
bool transfer_has_flows(const struct sim *s, const struct task_id *id, const struct task *t);

/* Each returns how many flows it starts, each to end in fn(s, id, start time). */
uint32_t transfer_stores(struct sim *s, uint32_t rank, const struct task *t, engine_fn *fn, uint64_t id);
uint32_t transfer_pull(struct sim *s, uint32_t rank, uint32_t from, uint64_t bytes, engine_fn *fn, uint64_t id);
/* What a REDUCE adds: of one rank, or of the node. */
uint32_t transfer_addends(struct sim *s, uint32_t rank, const struct task *t, engine_fn *fn, uint64_t id);

/* The rows that an index list names and peers hold: one flow from all of them.  In a GATHER_ROWS or COMBINE_ROWS the
 * CTA's rate is shared by all rows, its own included, so that they end together; what a COMBINE_ROWS reads also passes
 * its adders. */
uint32_t transfer_gather(struct sim *s, const struct task_id *id, const struct task *t, engine_fn *fn, uint64_t worker);
uint64_t transfer_gather_ps(const struct sim *s, const struct task_id *id, const struct task *t);

/* What a ROUTE reads and writes: its part of the table twice, to count and to place, and what it places.
 * With pulls, also what it takes to find each row once. */
uint64_t transfer_route_bytes(const struct program *p, uint32_t rank, const struct route *r);

/* Worker time of the part of a COPY or REDUCE that flows do not cover. */
uint64_t transfer_local_ps(const struct sim *s, uint32_t rank, const struct task *t);

/* A store onto the source itself, which is nothing. */
bool transfer_is_void(const struct task *t, const struct operand *target, uint32_t target_rank);

#endif
