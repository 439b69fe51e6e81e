/* The worker's state machine. */
#ifndef BACKENDS_SIM_WORKER_H
#define BACKENDS_SIM_WORKER_H

#include "backends/sim/state.h"

/* Starts a worker on its rank's present epoch. */
void worker_start(struct sim *s, struct worker *w);

struct signal_origin; /* tracing.h */

/* Marks the worker as blocked; whoever lifts the cause calls worker_wake(), and says whose signal it was if it
 * knows (else NULL). */
void worker_block(struct sim *s, struct worker *w, uint32_t cause);
void worker_wake(struct sim *s, struct worker *w, const struct signal_origin *by);

#endif
