/* How long a library GEMM (cuBLAS) takes: whole waves of tiles over the SMs, from the machine file.
 */
#ifndef SIM_GEMM_COST_H
#define SIM_GEMM_COST_H

#include <stdint.h>

#include "core/machine/machine.h"
#include "core/problem.h"

/* Time of one k step while a GEMM of this size runs: the longer it runs, the lower the power cap
 * holds the clock. */
uint64_t gemm_step_ps(const struct machine *m, struct problem p, uint64_t sms);

/* Of a GEMM, or a piece of one, on `sms` SMs at that step time.  0 for an empty one; never more
 * than GEMM_TIME_MAX_PS. */
uint64_t gemm_piece_ps(const struct machine *m, struct problem piece, uint64_t sms, uint64_t step_ps);

/* Of a whole GEMM that has all SMs to itself. */
uint64_t gemm_ps(const struct machine *m, struct problem p);

#define GEMM_TIME_MAX_PS UINT64_C(1000000000000000) /* a thousand seconds */

#endif
