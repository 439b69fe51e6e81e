/* Seeded perturbation of durations; without jitter every call returns its argument unchanged. */
#ifndef BACKENDS_SIM_JITTER_H
#define BACKENDS_SIM_JITTER_H

#include "backends/sim/state.h"

void jitter_seed(struct sim *s, uint64_t seed);

/* Uniform in [ps * (1 - jitter), ps * (1 + jitter)). */
uint64_t jitter_spread(struct sim *s, uint64_t ps);

/* Uniform in [0, ps * jitter): what to add to a duration that the model has already let pass. */
uint64_t jitter_extra(struct sim *s, uint64_t ps);

#endif
