/* What a scenario means to do, before anything runs: prove every program (core/verify/verify.h), run each with real
 * data at the check's size, time every point. */
#ifndef CORE_RUN_PLAN_H
#define CORE_RUN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/scenario/scenario.h"

/* Programs with more tasks than this are not proved before they are timed. */
#define PLAN_PROVE_TASKS_MAX 1000000
/* Nor are those in which tasks that read rows by index could be guarded by more flags than this, all together. */
#define PLAN_PROVE_GUARDS_MAX 1000000

/* A file that tells what happened in a run (core/trace/trace.h). */
struct trace_request {
    const struct trace_format *format;
    char path[TRACE_PATH_BYTES];
    uint64_t limit_bytes;
};

/* One run of a backend. */
struct run_unit {
    const struct point *point;
    struct problem problem; /* the point's, or the check's smaller one */
    const struct backend *backend;
    const void *options; /* of the backend */
    struct timing timing;
    bool data;
    const struct node_link *nodes;     /* NULL: all of it runs in one process */
    uint64_t tasks;                    /* of the program, one epoch, all ranks */
    uint64_t memory_bytes;             /* estimate */
    const struct trace_request *trace; /* NULL: none */
    struct run_result *result;         /* NULL: has not run */

    const struct run_unit *proof; /* of a point's program; NULL: there is none, because ... */
    char unproved[80];            /* ... of this */
};

struct run_plan {
    const struct scenario *scenario;
    struct run_unit *proofs, *checks, *points;
    uint64_t proof_count, check_count, point_count;
};

/* `nodes`: this process is one of several, else NULL; kept by the plan.
 * Emits every program once, so that a kernel's refusal (ST_INPUT) and a lack of memory (ST_MEMORY) are
 * known, and logged, before anything runs. */
enum status run_plan_create(const struct scenario *s, uint64_t memory_bytes, const struct node_link *nodes,
                            struct run_plan *out);
void run_plan_destroy(struct run_plan *plan); /* safe on a zeroed plan */

/* Emits the unit's program.  ST_INPUT: *c says why not. */
enum status run_unit_emit(const struct run_unit *u, struct program *p, struct complaint *c);

/* Emits it once: fills tasks and memory_bytes.  ST_INPUT, ST_MEMORY (above `available_bytes`): logged. */
enum status run_unit_plan(const struct scenario *s, struct run_unit *u, uint64_t available_bytes);

/* What the unit's backend is told. */
struct job run_unit_job(const struct run_unit *u, const struct program *p);

/* True when the point is a baseline that this backend has not, or that turned out not to be possible where it runs: the
 * result says why.  Neither is a failure. */
bool run_unit_skipped(const struct run_unit *u);

/* "yes", "refused" or "no: 8808448 tasks, more than 1000000"; "" for baselines, which have no program. */
void run_unit_verified(const struct run_unit *u, char *out, size_t out_bytes);

bool point_is_baseline(const struct point *p);

/* Whether both are contestants of one problem: they differ in variant, program and parameters alone. */
bool point_same_problem(const struct point *a, const struct point *b);

/* Whether both run the same program, whatever the problem's extents and the timing. */
bool point_same_program(const struct point *a, const struct point *b);

#endif
