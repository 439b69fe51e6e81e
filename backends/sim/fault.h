/* One injected fault a run: what a machine does wrong, to see what a program and its user make of it.
 *
 * straggler       all of the rank's work takes `fault_factor` times as long
 * slow_link       so does every message that the rank puts to another node
 * lossy_link      each such message is lost with `fault_loss` and sent again after `fault_delay`, until it
 *                 arrives; those behind it are not held up
 * dead_link       messages that arrive from `fault_time` on are lost for good
 * dropped_put     the rank's `fault_put`th put, from 1, is lost for good
 * duplicated_put  it arrives twice.  A transport delivers at most once (core/program.h): each put has one
 *                 completion, so the second delivery is caught where it lands, and fails the run
 * stopped_rank    from `fault_time` on the rank does nothing any more; what it has sent still arrives */
#ifndef BACKENDS_SIM_FAULT_H
#define BACKENDS_SIM_FAULT_H

#include "backends/sim/state.h"

enum fault_kind {
    FAULT_NONE,
    FAULT_STRAGGLER,
    FAULT_SLOW_LINK,
    FAULT_LOSSY_LINK,
    FAULT_DEAD_LINK,
    FAULT_DROPPED_PUT,
    FAULT_DUPLICATED_PUT,
    FAULT_STOPPED_RANK,
};

#define FAULT_CHOICES "none|straggler|slow_link|lossy_link|dead_link|dropped_put|duplicated_put|stopped_rank"

/* ST_INPUT, with the reason in the report, when the world has no such rank or no such link. */
enum status fault_open(struct sim *s);

bool fault_stopped(const struct sim *s, uint32_t rank);

/* Time that a worker of the rank needs for what takes `ps`. */
uint64_t fault_work_ps(const struct sim *s, uint32_t rank, uint64_t ps);

/* How often a put of the rank that took `ps` arrives (0, 1 or 2), and how much later. */
uint32_t fault_put_arrivals(struct sim *s, const struct task_id *id, uint64_t ps, uint64_t *late_ps_out);

/* Notes a task that will never be done, for the hang report. */
void fault_lose(struct sim *s, const struct task_id *id, const char *state);

/* A put was delivered once more: fails the run. */
void fault_refuse_second(struct sim *s, const struct task_id *id);

/* "stopped at 30 us", or NULL: for the hang report.  Lives as long as the run. */
const char *fault_fate(const struct sim *s, uint32_t rank);

#endif
