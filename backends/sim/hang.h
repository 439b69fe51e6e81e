/* Nothing is left to happen, but not all is done: who waits for what. */
#ifndef BACKENDS_SIM_HANG_H
#define BACKENDS_SIM_HANG_H

#include "backends/sim/state.h"

void hang_describe(struct sim *s); /* fills status and report of the result */

#endif
