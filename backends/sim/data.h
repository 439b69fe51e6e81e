/* Real data: windows, inputs and outputs, and who touches which bytes from when to when.
 *
 * Bytes move when the last flow of a task ends.  Until then all that it reads and writes counts as
 * being read and written, so an access that conflicts fails the run whatever the values.  Without
 * data every call does nothing. */
#ifndef BACKENDS_SIM_DATA_H
#define BACKENDS_SIM_DATA_H

#include "backends/ops/tile_ops.h"
#include "backends/sim/state.h"

/* UINT64_MAX when it does not fit 64 bits. */
uint64_t data_memory_bytes(const struct job *job, uint32_t workers_per_rank);

/* Windows, poisoned.  False: the system refused memory; data_close() is still to be called. */
bool data_open(struct sim *s);
void data_close(struct sim *s);

const struct memory *data_memory(const struct sim *s); /* with data */

/* The rank's virtual tasks: inputs are written; outputs are compared with the reference. */
void data_begin_epoch(struct sim *s, uint32_t rank);
void data_end_epoch(struct sim *s, uint32_t rank);

/* What the task in hand begins to access, phase by phase. */
void data_reads_source(struct sim *s, struct worker *w); /* COPY, PUT, ROUTE, by index; ATTENTION: the queries */
void data_reads_step(struct sim *s, struct worker *w, const struct operand *o, const struct extent *e);
void data_reads_addends(struct sim *s, struct worker *w);
void data_writes(struct sim *s, struct worker *w);

/* The task's bytes have all arrived: does the work, and ends its accesses. */
void data_finish(struct sim *s, const struct task_id *id, const struct task *t, struct access **accesses);

/* After the run: elements checked and wrong, and the status that follows. */
void data_verdict(struct sim *s);

#endif
