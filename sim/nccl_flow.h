/* NCCL's chosen algorithm simulated chunk by chunk: what its CTAs and proxy threads do, slice after
 * slice, over the links that fused programs use.  The second opinion on NCCL beside its own cost
 * model (sim/nccl.h), which knows neither pipeline fill nor the size of chunks.
 *
 * Channels that do the same at the same time are simulated once, with their share of each link, and
 * so are the nodes of a ring; docs/nccl-model.md says what else is simplified.  The constants are
 * the machine file's section nccl_flow. */
#ifndef SIM_NCCL_FLOW_H
#define SIM_NCCL_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/machine/machine.h"
#include "core/world.h"
#include "sim/nccl.h"

enum nccl_flow_extent {
    NCCL_FLOW_FOLDED, /* one channel of each kind and, of a ring, one node */
    NCCL_FLOW_WHOLE,  /* every channel of every GPU: what the folded form is checked against */
};

/* Up to so many a simulation takes less than about a second, of trees too, whose nodes are all there. */
#define NCCL_FLOW_RANKS_MAX 1024

/* Whether there is something to simulate, and in no more ranks than that. */
bool nccl_flow_fits(const struct nccl_comm *comm, const struct nccl_choice *choice);

/* Only for what fits.  Time of one call from launch to end.  `choice` as nccl_predict() returns it, with found set;
 * `bytes` as there, and for COLLECTIVE_ALL_TO_ALL, where only choice->channels counts, what all
 * ranks' parts have together on one rank. */
uint64_t nccl_flow_time_ps(const struct nccl_comm *comm, const struct machine *m, enum collective what,
                           const struct nccl_choice *choice, uint64_t bytes, enum nccl_flow_extent extent);

#endif
