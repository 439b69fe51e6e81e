/* Accesses in flight: finds two that overlap in time and bytes, one of them a write.
 *
 * Holds for one timing only (the verifier speaks for all), but whatever the values: a race that
 * happens to leave the right numbers behind is found too. */
#ifndef BACKENDS_SIM_CONFLICT_H
#define BACKENDS_SIM_CONFLICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/sim/state.h"

/* rows x cols elements of a rank's buffer, of one epoch's copy. */
struct region {
    uint32_t rank, buffer;
    uint64_t copy; /* epoch mod depth */
    uint64_t offset, ld;
    uint64_t rows, cols;
};

enum access_kind { ACCESS_READ, ACCESS_WRITE };

/* TASK_BEGIN and TASK_END as the queue of a task_id: the rank's virtual tasks. */
#define TASK_BEGIN UINT32_MAX
#define TASK_END (UINT32_MAX - 1)

struct access {
    struct access *next, **link; /* among those of its kind on the same buffer of the same rank */
    struct access *next_owned;
    struct region region;
    enum access_kind kind;
    struct task_id id;
};

struct conflicts;

struct conflicts *conflicts_create(const struct program *p);
void conflicts_destroy(struct conflicts *c);

/* Adds an access to the list *owned of the task `id`.  Returns NULL, or an access of another task
 * that must not happen at the same time. */
const struct access *conflicts_add(struct conflicts *c, const struct region *region, enum access_kind kind,
                                   const struct task_id *id, struct access **owned);

/* All of the list have ended; empties it. */
void conflicts_end(struct conflicts *c, struct access **owned);

/* "gemm #3 of queue compute, rank 1, epoch 2, writes C[0..127, 256..511]" */
void conflicts_describe(const struct program *p, const struct task_id *id, enum access_kind kind,
                        const struct region *region, char *out, size_t out_bytes);

#endif
