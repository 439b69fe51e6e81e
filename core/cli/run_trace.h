/* `mkernel run --trace FILE`: which points leave a trace, and where. */
#ifndef CORE_CLI_RUN_TRACE_H
#define CORE_CLI_RUN_TRACE_H

#include <stdint.h>

#include "core/run/plan.h"

/* Asks for a trace of every point that runs a program: `path` for one, with -INDEX before its extension for
 * each of several.  *out is the caller's to free; the plan's units borrow it.  ST_INPUT: logged. */
enum status run_trace_plan(struct run_plan *plan, const struct trace_format *format, const char *path,
                           uint64_t limit_bytes, struct trace_request **out);

/* Says where the traces are and what is missing in them. */
void run_trace_report(const struct run_plan *plan);

#endif
