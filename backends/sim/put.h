/* Puts: the command FIFO of each rank and the proxy that empties it into the NIC. */
#ifndef BACKENDS_SIM_PUT_H
#define BACKENDS_SIM_PUT_H

#include "backends/sim/state.h"

/* Takes a place in the FIFO for the put in hand; when it is full the worker is blocked: try again.
 */
bool put_reserve(struct sim *s, struct worker *w);

/* The command has been written; proxy and NIC do the rest. */
void put_push(struct sim *s, struct worker *w);

#endif
