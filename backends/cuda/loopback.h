/* The transport of ranks whose GPUs one process has: bytes go from window to window through pinned host memory,
 * moved by the copy engines alone, for a persistent kernel leaves no SM to a copy kernel.  Flags are host memory. */
#ifndef BACKENDS_CUDA_LOOPBACK_H
#define BACKENDS_CUDA_LOOPBACK_H

#include "backends/net/transport.h"

/* Opens on the current device.  Peers have to stay open until all puts are complete. */
extern const struct transport cuda_loopback_transport;

#endif
