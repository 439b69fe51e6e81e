/* Inside the way: which transport a scenario has chosen, and the transport's own options. */
#ifndef BACKENDS_NET_WAY_TRANSPORT_H
#define BACKENDS_NET_WAY_TRANSPORT_H

#include "backends/net/way.h"

/* Fills w->transport and w->transport_options. */
enum status way_choose_transport(struct way *w, char why[WAY_WHY_BYTES]);

#endif
