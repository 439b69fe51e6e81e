/* NCCL, found at run time: the collectives of the baselines.  Building needs none. */
#ifndef BACKENDS_CUDA_NCCL_H
#define BACKENDS_CUDA_NCCL_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_RANKS_MAX 16

struct nccl {
    void *library;
    int version; /* 22803 is 2.28.3 */
    uint32_t ranks;
    void *comms[NCCL_RANKS_MAX];
    int (*group_start)(void);
    int (*group_end)(void);
    int (*all_gather)(const void *from, void *to, size_t count, int type, void *comm, cudaStream_t stream);
    int (*reduce_scatter)(const void *from, void *to, size_t count, int type, int op, void *comm, cudaStream_t stream);
    int (*all_reduce)(const void *from, void *to, size_t count, int type, int op, void *comm, cudaStream_t stream);
    int (*broadcast)(const void *from, void *to, size_t count, int type, int root, void *comm, cudaStream_t stream);
    int (*reduce)(const void *from, void *to, size_t count, int type, int op, int root, void *comm,
                  cudaStream_t stream);
    int (*send)(const void *from, size_t count, int type, int peer, void *comm, cudaStream_t stream);
    int (*receive)(void *to, size_t count, int type, int peer, void *comm, cudaStream_t stream);
    int (*destroy)(void *comm);
    int (*abort)(void *comm);
    const char *(*error)(int result);
};

/* Rank i on device i. */
bool nccl_open(struct nccl *n, uint32_t ranks, char *why, size_t why_bytes);
void nccl_close(struct nccl *n); /* safe on a zeroed one */
/* Ends what runs on the devices; only nccl_close() may follow. */
void nccl_abort(struct nccl *n);

/* What each rank holds and where it works.  Memory is bf16, sums are NCCL's. */
struct nccl_rank {
    void *from, *to;
    cudaStream_t stream;
};

/* Rows that each rank owns: counts[i] elements, one rank's behind the other's.  Ranks that own equally much do so by
 * one collective, others by a broadcast or a reduction each, as users of NCCL write it.
 *
 *   gather           `to` of every rank gets all parts; `from` is the own one
 *   reduce_scatter   `to` gets the own part of the sum over all ranks' `from`
 *   all_reduce       `to` gets all of it
 *
 * And rows that each rank has for each other one:
 *
 *   exchange         counts[i * ranks + j] elements go from rank i to j; `from` holds them behind each other in order
 *                    of j, `to` gets them in order of i.  What a rank has for itself (i = j) must be 0
 *
 * "": enqueued; else NCCL's words. */
const char *nccl_gather_parts(struct nccl *n, const struct nccl_rank *ranks, const uint64_t *counts);
const char *nccl_reduce_parts(struct nccl *n, const struct nccl_rank *ranks, const uint64_t *counts);
const char *nccl_reduce_all(struct nccl *n, const struct nccl_rank *ranks, uint64_t count);
const char *nccl_exchange(struct nccl *n, const struct nccl_rank *ranks, const uint64_t *counts);

#endif
