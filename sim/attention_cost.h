/* How long a library's attention takes on one GPU: whole waves of query tiles over the SMs, from the machine
 * file. */
#ifndef SIM_ATTENTION_COST_H
#define SIM_ATTENTION_COST_H

#include <stdint.h>

#include "core/machine/machine.h"
#include "core/problem.h"

/* One rank's share: its queries, all keys.  With a causal mask the work is dealt evenly and a query meets half
 * of the keys on average: the best case.  Never more than GEMM_TIME_MAX_PS (sim/gemm_cost.h). */
uint64_t attention_ps(const struct machine *m, const struct problem *p, struct world w);

/* The same queries on `sms` SMs and that many positions of keys, of which half with a causal mask. */
uint64_t attention_piece_ps(const struct machine *m, const struct problem *p, struct world w, uint64_t positions,
                            uint64_t sms);

#endif
