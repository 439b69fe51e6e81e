/* How long the library calls take that compute a kernel's problem, by the family of its problem. */
#ifndef SIM_LIBRARY_COST_H
#define SIM_LIBRARY_COST_H

#include <stdint.h>

#include "core/kernel.h"
#include "core/machine/machine.h"

struct library_cost {
    const struct problem_family *family;
    /* One rank's share, at most GEMM_TIME_MAX_PS. */
    uint64_t (*ps)(const struct machine *m, const struct problem *p, struct world w);
    const char *table; /* where the numbers come from, for a result's `model` */
};

const struct library_cost *library_cost_of(const struct kernel *k);

#endif
