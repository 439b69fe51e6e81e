/* A run on two nodes, as mkernel makes it under mpirun: two processes of the test, joined by a socket pair, and a child
 * of each that runs the backend. */
#ifndef TESTS_NET_PAIR_H
#define TESTS_NET_PAIR_H

#include <stddef.h>
#include <stdint.h>

#include "core/backend.h"
#include "core/run/nodes.h"

struct pair_trial {
    const struct backend *backend;
    const struct kernel *kernel;
    struct problem problem;
    uint32_t gpus; /* per node */
    struct timing timing;
    const char *params, *options; /* as harness_options() reads them */
    /* All that node 1 tells node 0 passes through it; NULL: as it is. */
    void (*tamper)(uint8_t *message, size_t bytes);
};

struct pair_outcome {
    enum status status;
    char report[sizeof((struct run_result *)0)->report];
    char model[sizeof((struct run_result *)0)->model];
    uint64_t checked, puts, puts_completed;
};

/* Both nodes', by node.  Returns how many seconds it took. */
double pair_run(const struct pair_trial *t, struct pair_outcome outcomes[2]);

extern uint32_t pair_node; /* which this process is, or its parent */

#endif
