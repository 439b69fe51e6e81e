/* Seeded perturbation of a run.  Both kinds draw from the job's seed, so a seed repeats a run.
 *
 * `jitter`    the noise of a real machine: every duration uniform around what the model says.
 * `disorder`  looks for schedules that break a program (mkernel explore): delays are stretched by up to a
 *             factor D, log-uniform, so that a task, a rank or a network can fall behind a hundred others.
 *             What a run disturbs is itself drawn: which ranks are slow at what for the whole run, how
 *             often a single delay is stretched, how many workers each crew has, who starts and wakes
 *             late.  Puts overtake each other on every kind of NIC. */
#ifndef BACKENDS_SIM_JITTER_H
#define BACKENDS_SIM_JITTER_H

#include "backends/sim/state.h"

/* Draws what the run disturbs; workers that it does without are marked. */
void jitter_open(struct sim *s, uint64_t seed);

/* How long something of `rank` takes that takes `ps` by the model; `ps` itself without perturbation. */
uint64_t jitter_spread(struct sim *s, enum delay kind, uint32_t rank, uint64_t ps);

/* What to add to a duration that the model has already let pass. */
uint64_t jitter_extra(struct sim *s, enum delay kind, uint32_t rank, uint64_t ps);

/* Under disorder: how long something is late that takes no time by the model.  Most often 0. */
uint64_t jitter_pause(struct sim *s, uint32_t rank);

/* True with that probability. */
bool jitter_chance(struct sim *s, double probability);

#endif
