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

/* Filled by the owner before a proxy drains it. */
struct put_fifo_config {
    const struct program *program;
    uint32_t rank;
    const struct task *puts; /* by number */
    uint32_t put_count;
    uint64_t *put_flags; /* the rank's own */
    struct stage *stage; /* NULL: the transport reaches the GPU's memory */
};

struct put_fifo {
    struct put_fifo_config config;
    uint64_t *arrived_ns; /* by number, of the last time; NULL: nobody asks.  From malloc(), freed by close */

    struct gpu_command *slots;
    uint64_t *tail;
    uint64_t capacity, taken;
    uint32_t *under_way; /* by number: the epoch; 0: it is not */
    /* These three are read by others, too. */
    uint64_t bytes, control_bytes; /* put so far, the latter of control buffers */
    uint64_t finished;             /* puts */
};

/* Allocates it; close is safe on whatever open left behind. */
cudaError_t put_fifo_open(struct put_fifo *f, uint64_t capacity);
void put_fifo_close(struct put_fifo *f);

/* Before a proxy drains it.  False: out of memory. */
bool put_fifo_configure(struct put_fifo *f, const struct put_fifo_config *c);

/* Once no proxy drains it: what became of put `number`, for reports, and its epoch.  NULL: it was not handed over, or
 * is complete. */
const char *put_fifo_state(const struct put_fifo *f, uint32_t number, uint64_t *epoch_out);

extern const struct proxy_source put_fifo_source; /* of struct put_fifo */

#endif
