#include <stddef.h>

#include "backends/net/transports.h"

const struct transport *const transport_list[] = {
    &loopback_transport,
#if HAVE_LIBFABRIC
    &ofi_transport,
#endif
#if HAVE_VERBS
    &verbs_transport,
#endif
    NULL,
};
