/* The loop: first the same programs with real data (checks), then the timed points, every run in a child
 * process of its own, several at once. */
#ifndef CORE_RUN_H
#define CORE_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/scenario.h"

/* One run of a backend. */
struct run_unit {
    const struct point   *point;
    struct problem        problem; /* the point's, or the check's smaller one */
    const struct backend *backend;
    const void           *options; /* of the backend */
    struct timing         timing;
    bool                  data;
    uint64_t              memory_bytes; /* estimate */
    struct run_result    *result;       /* NULL: has not run */
};

struct run_plan {
    const struct scenario *scenario;
    struct run_unit       *checks;
    uint64_t               check_count;
    struct run_unit       *points;
    uint64_t               point_count;
};

struct run_config {
    uint32_t                     jobs;
    uint64_t                     timeout_ns;   /* of one run, real time */
    uint64_t                     memory_bytes; /* what all runs together may use */
    const volatile sig_atomic_t *interrupted;
    /* Called after each run and a few times a second in between; may be NULL. */
    void (*progress)(void *arg, uint64_t finished, uint64_t total);
    void  *arg;
};

/* Emits every program once, so that a kernel's refusal (ST_INPUT) and a lack of memory (ST_MEMORY) are
 * known, and logged, before anything runs. */
enum status run_plan_create(const struct scenario *s, uint64_t memory_bytes, struct run_plan *out);
void        run_plan_destroy(struct run_plan *plan); /* safe on a zeroed plan */

/* Runs them all; what became of each stands in its result.  ST_INTERRUPTED when *interrupted was set: units
 * that were running or waiting then have no result. */
enum status run_units(struct run_unit *units, uint64_t count, const struct run_config *config);

/* True when the point is a baseline that this backend has no model of. */
bool run_unit_skipped(const struct run_unit *u);

bool point_is_baseline(const struct point *p);

/* Of two statuses, the one the process exits with: interrupted before wrong before hang before bad input
 * before environment before slow. */
enum status status_worse(enum status a, enum status b);

#endif
