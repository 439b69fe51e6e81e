/* The bootstrap of a run's child processes: a child asks its parent, which asks the other nodes' parents. */
#ifndef BACKENDS_NET_BOOTSTRAP_RELAY_H
#define BACKENDS_NET_BOOTSTRAP_RELAY_H

#include <stdbool.h>

#include "backends/net/bootstrap.h"
#include "core/run/node_link.h"

/* Calls wait as long as the others live; give_up(owner), asked ten times a second from the calling thread, ends
 * them with ST_INTERRUPTED.  One thread at a time. */
enum status bootstrap_relay_open(struct bootstrap *b, const struct node_link *link, bool (*give_up)(void *owner),
                                 void *owner);

/* Between calls: ST_OK, or ST_IO with b->error when another node's child has failed.  Does not block. */
enum status bootstrap_relay_check(struct bootstrap *b);

#endif
