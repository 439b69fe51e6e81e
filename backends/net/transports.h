/* The transports by name, for their list and for tests that set a transport's own options. */
#ifndef BACKENDS_NET_TRANSPORTS_H
#define BACKENDS_NET_TRANSPORTS_H

#include "backends/net/transport.h"

extern const struct transport loopback_transport;
extern const struct transport ofi_transport;
extern const struct transport verbs_transport;

#endif
