/* What a thread or a device did, kept by itself while it runs and told to the job's sink afterwards, so that
 * threads do not meet at the sink (core/trace/trace.h).
 *
 * A signal is logged with the value that it left in its flag.  So it is certain afterwards which signal ended a
 * wait: the first one that left at least what was waited for. */
#ifndef CORE_TRACE_TRACE_LOG_H
#define CORE_TRACE_TRACE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/trace/trace.h"

enum trace_entry_kind { TRACE_ENTRY_TASK, TRACE_ENTRY_WAIT, TRACE_ENTRY_FLIGHT, TRACE_ENTRY_SIGNAL };

struct trace_entry {
    enum trace_entry_kind kind;
    struct trace_lane lane;
    struct trace_place at;
    uint64_t begin_ns, end_ns; /* a signal: end_ns says when its worker had done its part */
    uint32_t flag, rank;       /* wait, signal: of the rank; NO_FLAG: a place in the FIFO */
    uint64_t value;            /* waited for, or left in the flag */
    bool inside;
};

/* Entries beyond the limit are counted instead; epochs before the first one are nobody's concern. */
struct trace_log {
    struct trace_entry *entries;
    uint64_t count, capacity, limit, first_epoch, lost;
};

/* Nothing where limit is 0. */
void trace_log_add(struct trace_log *log, const struct trace_entry *e);
void trace_log_fini(struct trace_log *log);

/* Tells the sink what the logs hold, with the bytes that tasks and flights moved between ranks; nobody adds to them
 * any more.  `begin_ns`: of the run. */
void trace_log_tell(struct trace *t, const struct program *p, const struct trace_log *const logs[], uint64_t count,
                    uint64_t begin_ns);

#endif
