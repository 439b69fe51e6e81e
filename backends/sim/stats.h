/* Where the workers' time goes, by crew and cause. */
#ifndef BACKENDS_SIM_STATS_H
#define BACKENDS_SIM_STATS_H

#include "backends/sim/state.h"

/* Names the crews and causes of the result. */
void stats_open(struct sim *s);

uint32_t stats_flag_cause(const struct sim *s, uint32_t flag);
uint32_t stats_fifo_cause(const struct sim *s);
uint32_t stats_store_cause(const struct sim *s);

/* Each accounts for the time since w->since_ps and sets it to now. */
void stats_busy(struct sim *s, struct worker *w);
void stats_waited(struct sim *s, struct worker *w);
void stats_idle(struct sim *s, struct worker *w);

/* Totals, links and model of a finished run. */
void stats_close(struct sim *s);

#endif
