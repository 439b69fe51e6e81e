/* Control buffers: their contents are real even when time alone is wanted, and tasks of dynamic work are looked
 * up in them.  With data they are part of the windows; without, only the windows' heads exist. */
#ifndef BACKENDS_SIM_CONTROL_H
#define BACKENDS_SIM_CONTROL_H

#include "backends/sim/state.h"

/* Behind data_open().  False: the system refused memory; control_close() is still to be called. */
bool control_open(struct sim *s);
void control_close(struct sim *s);

/* The rank's begin writes its control inputs. */
void control_begin_epoch(struct sim *s, uint32_t rank);

/* Narrows a task to what was selected for it; its entry waits must have been met. */
void control_select(const struct sim *s, const struct task_id *id, struct task *t);

/* The task of that name, as control_select() leaves it. */
void control_task(const struct sim *s, const struct task_id *id, struct task *out);

/* Of the values of the task's index list, row by row, the i-th; false where it names no row. */
bool control_index(const struct sim *s, const struct task_id *id, const struct task *t, uint64_t i,
                   uint64_t *value_out);

/* The task's bytes have arrived: does what it does to control buffers, if data_finish() will not. */
void control_finish(struct sim *s, const struct task_id *id, const struct task *t);

#endif
