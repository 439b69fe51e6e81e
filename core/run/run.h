/* The loop: units run in a child process each, several at once. */
#ifndef CORE_RUN_RUN_H
#define CORE_RUN_RUN_H

#include <signal.h>
#include <stdint.h>

#include "core/run/plan.h"

struct run_config {
    uint32_t jobs;
    uint64_t timeout_ns;   /* of one run, real time */
    uint64_t memory_bytes; /* what all runs together may use */
    const volatile sig_atomic_t *interrupted;
    /* Called after each run and a few times a second in between; may be NULL. */
    void (*progress)(void *arg, uint64_t finished, uint64_t total);
    void *arg;
};

/* Runs them all; what became of each stands in its result.  ST_INTERRUPTED when *interrupted was set: units
 * that were running or waiting then have no result, but one of them says on stderr where it stood. */
enum status run_units(struct run_unit *units, uint64_t count, const struct run_config *config);

/* Runs one, here and now: what children do.  `nodes`: with a way to the others; NULL: the unit's own. */
void run_unit_execute(const struct run_unit *u, const struct node_link *nodes, struct run_result *r);

/* Of two statuses, the one the process exits with: interrupted before wrong before hang before bad input
 * before environment before slow. */
enum status status_worse(enum status a, enum status b);

#endif
