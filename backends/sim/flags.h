/* Flag counters, who waits for them, and how long a signal takes to be seen. */
#ifndef BACKENDS_SIM_FLAGS_H
#define BACKENDS_SIM_FLAGS_H

#include "backends/sim/state.h"
#include "backends/sim/tracing.h"

/* Whether every flag of `w` has reached its value for the worker's epoch.  If not, the worker is
 * blocked on the first that has not; call again, with w->wait_flag as it was left, once it is
 * woken. */
bool flags_met(struct sim *s, struct worker *worker, const struct wait *w);

/* The same question, without blocking. */
bool flags_would_meet(const struct sim *s, const struct worker *worker, const struct wait *w);

void flags_open(struct sim *s);

/* Raises what the task signals, each after its latency and `late_ps`. */
void flags_signal(struct sim *s, const struct task_id *id, const struct task *t, struct signal_origin from,
                  uint64_t late_ps);

#endif
