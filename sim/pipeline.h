/* Stages that hand slices of data to each other, on the engine: what a collective's CTAs and proxy
 * threads do.
 *
 * A stage does its operations one after the other.  Each takes a slice from every edge into the
 * stage, or gives one to every edge out of it, or both; `pattern` says which, and is repeated in
 * each of the pipeline's loops.  An operation starts when the stage is free, a slice has arrived on
 * each edge it takes from, and each edge it gives to has a free slot; it lasts `step_ps` and then
 * until the bytes on all its edges have left.  A slice arrives one edge latency after its own bytes
 * have left.  Its slot is free again one latency after its taker has finished. */
#ifndef SIM_PIPELINE_H
#define SIM_PIPELINE_H

#include <stdint.h>

#include "sim/engine.h"

struct pipeline;

enum { PIPELINE_TAKE = 1, PIPELINE_GIVE = 2 };

struct pipeline_stage {
    const uint8_t *pattern; /* PIPELINE_ bits of `length` operations, over and over; borrowed */
    uint32_t length;
    uint32_t period;  /* operations a loop */
    uint64_t step_ps; /* fixed part of each operation */
    double rate;      /* bytes/s of an operation that only takes; 0: no time */
};

struct pipeline_edge {
    uint32_t from, to;          /* stages */
    uint32_t out_port, in_port; /* of the engine; both ENGINE_NO_PORT: no link is used */
    double factor;              /* bytes that travel for each byte of a slice */
    double rate_bound;          /* bytes/s; without links: what sets the pace, 0: no time */
    uint64_t latency_ps;
    uint32_t slots;
};

/* All slices of all loops have slice_bytes, those of the last loop last_bytes.  `engine` is borrowed
 * and must be new; the pipeline is what runs on it. */
struct pipeline *pipeline_create(struct engine *engine, uint32_t loops, uint64_t slice_bytes, uint64_t last_bytes);
uint32_t pipeline_add_stage(struct pipeline *p, const struct pipeline_stage *stage);
void pipeline_add_edge(struct pipeline *p, const struct pipeline_edge *edge);

/* Runs to the end.  Asserts that every stage has done all its operations. */
void pipeline_run(struct pipeline *p);
uint64_t pipeline_loop_end_ps(const struct pipeline *p, uint32_t loop); /* of the last stage in it */
void pipeline_destroy(struct pipeline *p);

#endif
