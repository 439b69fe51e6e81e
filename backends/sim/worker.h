/* The worker's state machine. */
#ifndef BACKENDS_SIM_WORKER_H
#define BACKENDS_SIM_WORKER_H

#include "backends/sim/state.h"

/* Starts a worker on its rank's present epoch. */
void worker_start(struct sim *s, struct worker *w);

/* Marks the worker as blocked; whoever lifts the cause calls worker_wake(). */
void worker_block(struct sim *s, struct worker *w, uint32_t cause);
void worker_wake(struct sim *s, struct worker *w);

#endif
