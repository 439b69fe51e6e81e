/* Puts: a worker writes a command into the rank's FIFO in pinned host memory; the rank's proxy
 * thread takes it, hands the bytes to a transport and raises flags once they have arrived.
 *
 * Flags that puts raise stand in pinned memory too, where only proxies write and the GPU polls. The
 * proxy waits for commands and completions, never for a flag of the program, so a full FIFO always
 * drains. */
#ifndef BACKENDS_CUDA_PROXY_H
#define BACKENDS_CUDA_PROXY_H

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/cuda/loopback.h"
#include "backends/cuda/words.h"
#include "core/program.h"

#define PROXY_PENDING 256 /* puts on their way at a time */

struct proxy_pending {
    const struct task *put;
    uint64_t ticket; /* the transport's */
};

struct proxy_rank { /* what a proxy needs to know of any rank */
    uint8_t *window;
    uint64_t *put_flags;
};

struct proxy {
    const struct program *program;
    const struct proxy_rank *ranks; /* all, by rank */
    uint32_t rank;
    const struct task *puts; /* by number */
    struct gpu_command *slots;
    uint64_t *tail;
    uint64_t capacity;
    struct loopback link;
    struct proxy_pending pending[PROXY_PENDING];
    uint64_t pending_first, pending_end;
    uint64_t delivered; /* puts; for the watch */
    uint64_t bytes, control_bytes; /* put so far, the latter of control buffers */
    bool failed;
    bool closed, started;
    pthread_t thread;
};

/* Allocates FIFO and transport on the current device.  Close is safe on whatever open left behind.
 */
cudaError_t proxy_open(struct proxy *p, uint64_t capacity);
bool proxy_start(struct proxy *p);
void proxy_close(struct proxy *p); /* what was pushed is still delivered, if the transport lives */

#endif
