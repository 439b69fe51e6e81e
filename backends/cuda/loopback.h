/* The transport inside one process: bytes go from window to window through pinned host memory,
 * moved by the copy engines alone, for a persistent kernel leaves no SM to a copy kernel. */
#ifndef BACKENDS_CUDA_LOOPBACK_H
#define BACKENDS_CUDA_LOOPBACK_H

#include <cuda_runtime_api.h>
#include <stdint.h>

struct loopback {
    cudaStream_t stream;
    uint8_t *bounce;     /* pinned */
    uint64_t *completed; /* pinned: the last ticket whose bytes have arrived */
    uint64_t issued;
};

cudaError_t loopback_open(struct loopback *l);
void loopback_close(struct loopback *l);

/* Starts a put; tickets count from 1 and complete in order. */
cudaError_t loopback_put(struct loopback *l, void *to, const void *from, uint64_t bytes,
                         uint64_t *ticket_out);
uint64_t loopback_completed(const struct loopback *l);

#endif
