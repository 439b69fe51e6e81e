/* The logs of a fleet's threads (core/trace/trace_log.h): each worker's, and one of each rank's proxy. */
#ifndef BACKENDS_CPU_FLEET_LOG_H
#define BACKENDS_CPU_FLEET_LOG_H

#include "core/trace/trace_log.h"

struct fleet;

/* Announces the run to the sink, and says what each thread's log is to be like; limit 0 without a sink. */
struct trace_log fleet_log_plan(const struct fleet *f);

/* Tells the sink all logs of the fleet; its threads have ended. */
void fleet_log_tell(const struct fleet *f);

#endif
