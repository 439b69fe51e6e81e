/* Copies by a GPU's copy engine, for threads that never wait: behind them the stream writes a number into pinned
 * memory, which is looked at without a call.  Copies of one copier come one after the other, and what a number says to
 * be there is visible to everybody. */
#ifndef BACKENDS_CUDA_COPIER_H
#define BACKENDS_CUDA_COPIER_H

#include <cuda_runtime_api.h>
#include <stdint.h>

struct copier {
    int device;
    cudaStream_t stream;
    uint64_t *completed; /* pinned: the last ticket whose copies are there */
    uint64_t issued;     /* tickets; they count from 1, in order */
};

cudaError_t copier_open(struct copier *c); /* of the current device; zeroed */
/* Waits for what is on its way.  Safe on whatever open left behind. */
void copier_close(struct copier *c);

/* From any thread, one at a time. */
cudaError_t copier_copy(struct copier *c, void *to, const void *from, uint64_t bytes, enum cudaMemcpyKind kind);
/* A ticket for all copies since the last one, by the thread that made them. */
cudaError_t copier_issue(struct copier *c, uint64_t *ticket_out);
uint64_t copier_completed(const struct copier *c); /* the last ticket */

#endif
