/* What a thread did, kept by itself while it runs and told to the job's sink afterwards, so that threads do not
 * meet at the sink (core/trace/trace.h).
 *
 * A signal is logged with the value that it left in its flag.  So it is certain afterwards which signal ended a
 * wait: the first one that left at least what was waited for. */
#ifndef BACKENDS_CPU_FLEET_LOG_H
#define BACKENDS_CPU_FLEET_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/trace/trace.h"

enum log_kind { LOG_TASK, LOG_WAIT, LOG_FLIGHT, LOG_SIGNAL };

struct log_entry {
    enum log_kind      kind;
    struct trace_lane  lane;
    struct trace_place at;
    uint64_t           begin_ns, end_ns; /* a signal: end_ns says when its worker had done its part */
    uint32_t           flag, rank;       /* wait, signal: of the rank; NO_FLAG: a place in the FIFO */
    uint64_t           value;            /* waited for, or left in the flag */
    bool               inside;
};

/* Entries beyond the limit are counted instead; epochs before the first one are nobody's concern. */
struct fleet_log {
    struct log_entry *entries;
    uint64_t          count, capacity, limit, first_epoch, lost;
};

/* Nothing where limit is 0. */
void fleet_log_add(struct fleet_log *log, const struct log_entry *e);
void fleet_log_fini(struct fleet_log *log);

struct fleet;

/* Announces the run to the sink, and says what each thread's log is to be like; limit 0 without a sink. */
struct fleet_log fleet_log_plan(const struct fleet *f);

/* Tells the sink all logs of the fleet; its threads have ended. */
void fleet_log_tell(const struct fleet *f);

#endif
