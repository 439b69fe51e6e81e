/* Max-min fair sharing of links by flows, solved here: what SimGrid's CM02 computes, without
 * SimGrid, so that any number of networks live in one process, and each checks the other.
 *
 * After a flow starts or ends, only flows that share a link with it, directly or through others,
 * get new rates.  Times are whole picoseconds, rounded up or down as the engine rounds them. */
#ifndef SIM_FLUID_H
#define SIM_FLUID_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/engine.h"

struct fluid;

#define FLUID_NEVER UINT64_MAX

/* Ports and groups as in *config, which is borrowed for the call only. */
struct fluid *fluid_create(const struct engine_config *config);
void fluid_destroy(struct fluid *f);

/* `flow` is the caller's number of it, small, unique among those in progress.  Ends as in
 * network_start(); bytes > 0. */
void fluid_start(struct fluid *f, uint64_t now_ps, uint32_t flow, uint32_t src, uint32_t dst, uint64_t bytes,
                 double rate_bound);

/* When the next flow drains, given what has started until now_ps; FLUID_NEVER: none is left. */
uint64_t fluid_next_ps(struct fluid *f, uint64_t now_ps);

/* Takes out one flow that drains at now_ps or earlier; false when there is none. */
bool fluid_take(struct fluid *f, uint64_t now_ps, uint32_t *flow_out);

#endif
