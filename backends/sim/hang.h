/* Not all is done: who waits for what. */
#ifndef BACKENDS_SIM_HANG_H
#define BACKENDS_SIM_HANG_H

#include "backends/sim/state.h"

/* Fills status and report of the result. */
void hang_describe(struct sim *s, enum status st, const char *headline);

#endif
