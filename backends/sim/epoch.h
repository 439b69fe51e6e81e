/* Ranks and epochs: when they start, when they are over, what is sampled. */
#ifndef BACKENDS_SIM_EPOCH_H
#define BACKENDS_SIM_EPOCH_H

#include "backends/sim/state.h"

/* How many epochs the job asks for; a deterministic isolated run needs no second one. */
void epoch_plan(struct sim *s);

/* Schedules the first epoch of all ranks. */
void epoch_start(struct sim *s);

/* One task of the rank is complete, but for its result, which takes flush_ps into memory: with the last one its epoch
 * ends. */
void epoch_task_done(struct sim *s, uint32_t rank, uint64_t flush_ps);

/* After engine_run(): whether all ranks have run all epochs. */
bool epoch_all_done(const struct sim *s);

#endif
