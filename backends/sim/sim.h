/* The sim backend: interprets a program event by event on a model of the machine.
 *
 * Workers are small state machines (worker.c), not actors: pop a task, wait, charge the time that
 * cost.c says, let its bytes travel as flows (transfer.c) or as puts (put.c), signal (flags.c).
 * With data, bytes really move and accesses that overlap in time are compared (data.c, conflict.c).
 * Read state.h first. */
#ifndef BACKENDS_SIM_SIM_H
#define BACKENDS_SIM_SIM_H

#include "core/backend.h"

extern const struct backend sim_backend;

/* What `options` of a job for this backend points to: the `sim:` section of a scenario. */
struct sim_options {
    bool data;                            /* move and check real data */
    double jitter;                        /* 0..0.5: relative spread of tile times, flag latencies and flows */
    uint32_t engine;                      /* enum engine_api */
    bool unordered;                       /* puts of a pair may overtake each other on every kind of NIC */
    double disorder;                      /* up to which factor delays are stretched (jitter.h); 1: none */
    uint64_t streams_others, streams_own; /* pieces of the streams baseline at most; 0: as many as it can */
    uint64_t launches;                    /* kernels that an epoch takes, one behind the other */
    uint64_t memory_bytes;                /* refuse to run above; 0: the job's limit alone */
    uint32_t fold;                        /* enum fold_mode */

    uint32_t fault; /* enum fault_kind; fault.h says which of the others it reads */
    uint64_t fault_rank, fault_put;
    double fault_factor, fault_loss;
    uint64_t fault_delay_ps, fault_time_ps;
};

#endif
