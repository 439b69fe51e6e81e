/* Connects the endpoints of a run: everybody to everybody on another node. */
#ifndef BACKENDS_NET_MESH_H
#define BACKENDS_NET_MESH_H

#include <stdint.h>

#include "backends/net/bootstrap.h"
#include "backends/net/transport.h"

/* Collective.  Every member of `b` is a node and brings `count` endpoints, the same number each, whose
 * config.index is b->rank * count + their place in `mine`.  On return every endpoint may put to those of
 * the other nodes.  On an error of the bootstrap see b->error, else the endpoints' endpoint_error(). */
enum status mesh_connect(struct endpoint *const *mine, uint32_t count, struct bootstrap *b);

/* Collective: returns once every member has come here, and polls until then, for others may need this end's
 * progress to complete their puts.  Own puts have been completed before. */
enum status mesh_barrier(struct endpoint *const *mine, uint32_t count, struct bootstrap *b);

#endif
