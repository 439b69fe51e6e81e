/* A rank's commands to its proxy: a worker writes one into the FIFO in pinned host memory, the proxy
 * (backends/net/proxy.h) takes it.  Flags that puts raise stand in pinned memory too, where only proxies write
 * and the GPU polls. */
#ifndef BACKENDS_CUDA_PUT_FIFO_H
#define BACKENDS_CUDA_PUT_FIFO_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "backends/cuda/stage.h"
#include "backends/cuda/words.h"
#include "backends/net/proxy.h"
#include "core/program.h"

struct put_fifo {
    /* Filled by the owner before a proxy drains it. */
    const struct program *program;
    uint32_t rank;
    const struct task *puts; /* by number */
    uint64_t *put_flags;     /* the rank's own */
    struct stage *stage;     /* NULL: the transport reaches the GPU's memory */
    uint64_t *arrived_ns;    /* by number, of the last time; NULL: nobody asks.  From malloc(), freed by close */

    struct gpu_command *slots;
    uint64_t *tail;
    uint64_t capacity, taken;
    uint64_t bytes, control_bytes; /* put so far, the latter of control buffers; read by others, too */
};

/* Allocates it; close is safe on whatever open left behind. */
cudaError_t put_fifo_open(struct put_fifo *f, uint64_t capacity);
void put_fifo_close(struct put_fifo *f);

extern const struct proxy_source put_fifo_source; /* of struct put_fifo */

#endif
