/* What the sink of the job is told (core/trace/trace.h).  Without one these do nothing. */
#ifndef BACKENDS_SIM_TRACING_H
#define BACKENDS_SIM_TRACING_H

#include "backends/sim/state.h"

/* Where a signal on its way comes from. */
struct signal_origin {
    uint32_t worker;
    uint64_t left_ps; /* when that worker had done its part */
};

void tracing_open(struct sim *s);

/* The worker goes on to its next task. */
void tracing_task(struct sim *s, const struct worker *w);

/* The worker was blocked until now; by == NULL: not by a flag, or nobody knows whose signal it was. */
void tracing_wait(struct sim *s, const struct worker *w, const struct signal_origin *by);

void tracing_landed(struct sim *s, const struct flight *f);

/* The run is over: who still waits has waited until now. */
void tracing_close(struct sim *s);

#endif
