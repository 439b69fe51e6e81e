/* Looks for schedules that break a program: runs it many times on a simulated machine in disorder (every delay
 * perturbed by a seed, puts reordered, workers missing), with real data, exact checks and detection of accesses
 * that conflict in flight.  An independent check on the verifier, whose assumptions it does not share; a
 * seed repeats a run.  docs/exploration.md. */
#ifndef CORE_VERIFY_EXPLORE_H
#define CORE_VERIFY_EXPLORE_H

#include "core/run/plan.h"
#include "core/run/run.h"

#define EXPLORE_EPOCHS 4 /* at least: buffers of depth 2 are used twice */

/* The programs of a scenario, each once, at the check's size where the scenario has one. */
struct explore_plan {
    struct run_unit *units;
    struct explore_batch *batches; /* options of the units */
    uint64_t count;
    void *options; /* the backend's, in disorder */
};

struct explore_result {
    uint64_t runs;                 /* programs x seeds that were run */
    const struct run_unit *failed; /* the one with the lowest seed; NULL: none */
    uint64_t seed;                 /* of its failure */
};

/* `backend` must know the options data, engine and disorder, as sim does.  ST_INPUT, ST_MEMORY: logged. */
enum status explore_plan_create(const struct scenario *s, const struct backend *backend, uint64_t memory_bytes,
                                struct explore_plan *out);
void explore_plan_destroy(struct explore_plan *plan); /* safe on a zeroed plan */

/* Runs seeds first .. first + count - 1 of every program, until one fails.  The status of that failure;
 * its report is in out->failed->result. */
enum status explore_run(struct explore_plan *plan, uint64_t first, uint64_t count, const struct run_config *config,
                        struct explore_result *out);

#endif
