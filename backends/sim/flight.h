/* Tasks whose worker has gone on while their bytes travel. */
#ifndef BACKENDS_SIM_FLIGHT_H
#define BACKENDS_SIM_FLIGHT_H

#include "backends/sim/state.h"

/* The result of the GEMM or attention in hand, local or remote: it is flushed, and remote stores travel.  Sets
 * w->storing until all of it has arrived. */
void flight_start_stores(struct sim *s, struct worker *w);

/* A flight for the put in hand, not yet travelling. */
struct flight *flight_of_put(struct sim *s, struct worker *w);

/* The put's bytes have arrived: an engine_fn, (sim, flight, start time). */
void flight_put_arrived(void *arg, uint64_t flight, uint64_t started_ps);

#endif
