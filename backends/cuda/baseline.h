/* What fused kernels are compared with, on real devices: NCCL and a library in sequence, or copy engines on streams
 * beside cuBLAS.
 *
 * A baseline is a rig (rig.h) whose epochs are library calls: inputs, checks and times are those of programs.  Its
 * program has buffers, inputs and outputs.  Of the GEMM kernels, without a task:
 *
 *   A [m, k], B [n, k]   operands.  All-gather: A is complete behind the collective, the own rows are input
 *   C                    the result: [m, n], or the own rows of it (reduce-scatter)
 *   P [m, n]             partial sums, with more than one rank (reduce-scatter, all-reduce)
 *   inbox                streams: the own rows as the other ranks computed them, rank + 1's first; two copies
 *
 *   baseline.c             the rig, and the search for the best cut
 *   baseline_nccl.c        NCCL, opened and called
 *   baseline_gemm.c        GEMM kernels: buffers, inputs, outputs; an epoch of NCCL and cuBLAS
 *   baseline_streams.c     GEMM kernels: an epoch of copies and cuBLAS
 *   baseline_attention.c   attention: its program, an epoch of NCCL and the interpreter
 *   baseline_moe.c         experts: memory, an epoch of NCCL and cuBLAS
 *   baseline_layer.c       a layer of experts: the same, and back
 *   baseline_routing.c     experts: which row goes where
 *
 * Ranks that share a device take turns on its stream. */
#ifndef BACKENDS_CUDA_BASELINE_H
#define BACKENDS_CUDA_BASELINE_H

#include "backends/cuda/cublas.h"
#include "backends/cuda/nccl.h"
#include "backends/cuda/rig.h"

/* Rows of other ranks in `others` pieces, own rows of an all-reduce in `own`.  `whole`: one GEMM of all rows, which
 * overlaps with nothing. */
struct baseline_cut {
    bool whole;
    uint32_t others, own;
};

/* A rank's copies, and what they and the GEMMs wait for. */
struct baseline_lane {
    cudaStream_t copies;
    cudaEvent_t piece;    /* computed, or arrived: recorded and waited for in turns */
    cudaEvent_t sent;     /* all that others add */
    cudaEvent_t copied;   /* all of the epoch */
    cudaEvent_t added[2]; /* own rows, by the inbox's copy: peers may store there again */
};

struct baseline_rig;

/* What a family of problems makes of it. */
struct baseline_kind {
    const struct problem_family *family;
    const char *detail; /* of its NCCL variant, for the record; "" */
    bool overlaps;      /* there is one of streams, too */
    void (*add_program)(struct baseline_rig *b, enum baseline which);
    /* With NCCL: what the host prepares when inputs are written (NULL: nothing), an epoch, and what of it is NCCL's. */
    enum status (*begin)(struct rig *r, uint64_t epoch);
    enum status (*enqueue)(struct rig *r);
    enum status (*collect)(struct rig *r);
};

extern const struct baseline_kind baseline_gemm, baseline_attention, baseline_moe, baseline_layer;

/* Q and O hold the queries and results of a rank, KV the keys and values of all. */
struct baseline_attention {
    struct attention_problem problem; /* the global one: with stripes */
    uint32_t q, kv, o;                /* buffers */
};

/* On the host, of the epoch whose inputs were written last.  Ranks in pairs: [from * ranks + to]. */
struct baseline_routing {
    int32_t *table;                   /* [tokens, top_k]: experts, or -1 where there was no room */
    int32_t *send_index;              /* [ranks, outgoing]: what stands in the outbox: place in the shard */
    int32_t *row_index;               /* [ranks, capacity]: what `rows` are: rows of `tokens` */
    int32_t *back_index;              /* [ranks, capacity]: what goes back for what has come: rows of `rows` */
    int32_t *sum_index;               /* [ranks, shard, top_k]: own rows; from `capacity` on, places in the outbox */
    uint64_t *expert_rows, *next_row; /* by expert */
    uint64_t sent[NCCL_RANKS_MAX * NCCL_RANKS_MAX];         /* pairs; none to the rank itself */
    uint64_t kept[NCCL_RANKS_MAX], dropped[NCCL_RANKS_MAX]; /* pairs of a rank's experts */
};

/* See baseline_moe.c; baseline_layer.c has all but the last two, and others in their place. */
struct baseline_experts {
    uint64_t shard, outgoing, capacity; /* the most tokens, pairs that leave, and pairs of own experts, of any rank */
    uint32_t send_index, row_index, tokens, outbox, rows, weights, result; /* buffers */
    struct baseline_routing routing;
};

/* See baseline_layer.c: buffers. */
struct baseline_layer {
    uint32_t back_index, sum_index, scores, gate_up, down, sums, active, expert, returns, result;
};

struct baseline_rig {
    struct rig rig; /* first: an epoch gets it alone */
    const struct baseline_kind *kind;
    struct job job;
    struct cuda_options options;
    struct program program;
    uint32_t a, b, c, p, inbox; /* GEMM: buffers; NO_BUFFER: there is none */
    struct baseline_attention attention;
    struct baseline_experts experts;
    struct baseline_layer layer;
    uint32_t ranks;
    uint64_t calls; /* that the host has made */
    struct cublas blas[DEVICES_MAX];
    struct nccl nccl;
    struct baseline_cut cut;
    struct baseline_lane *lanes; /* streams: by rank */
    cudaEvent_t forked[DEVICES_MAX];
};

/* The backend's entry for baselines.  ST_UNSUPPORTED, with the reason in r->report, where this baseline cannot be:
 * other kernels, several nodes, no library, NCCL with several ranks on a device. */
enum status baseline_measure(const struct job *job, enum baseline which, struct run_result *r);

/* A program without buffers yet, whose state is the rig. */
void baseline_start_program(struct baseline_rig *b, const struct program_ops *ops);
uint32_t baseline_add(struct baseline_rig *b, const char *name, enum dtype dtype, uint64_t rows, uint64_t cols);
/* Row `row` of a buffer of a rank's, in the copy of this epoch. */
void *baseline_at(const struct baseline_rig *b, uint32_t rank, uint32_t buffer, uint64_t row);

/* ---- baseline_gemm.c ---- */

uint64_t baseline_first_row(const struct baseline_rig *b, uint32_t rank); /* that it owns */
uint64_t baseline_rows(const struct baseline_rig *b, uint32_t rank);
/* Of one rank in another's inbox: as many as any rank owns. */
uint64_t baseline_inbox_rows(const struct baseline_rig *b);

/* rows [row, row + rows) of A times B, into rows of `out` from out_row on, on the device's stream. */
enum status baseline_multiply(struct baseline_rig *b, uint32_t rank, uint64_t row, uint64_t rows, uint32_t out,
                              uint64_t out_row);

/* ---- baseline_nccl.c ---- */

enum status baseline_open_nccl(struct baseline_rig *b);
/* What a rank gives to a collective: from a row of one buffer to a row of another. */
struct nccl_rank baseline_nccl_rank(const struct baseline_rig *b, uint32_t rank, uint32_t from, uint64_t from_row,
                                    uint32_t to, uint64_t to_row);
/* `why`: NCCL's answer to a call of each rank; "": it took them. */
enum status baseline_nccl_called(struct baseline_rig *b, const char *why);

/* out[m, n] = x[m, k] x w[n, k]^T by cuBLAS on the device's stream. */
struct baseline_product {
    uint64_t m, n, k;
    const void *x, *w;
    void *out;
};
enum status baseline_compute(struct baseline_rig *b, uint32_t rank, const struct baseline_product *p);

/* ---- baseline_moe.c ---- */

/* Adds what tokens need on their way to the rows of their experts. */
void baseline_add_dispatch(struct baseline_rig *b);
/* Finds out where they go, and writes the index lists of it. */
enum status baseline_begin_dispatch(struct rig *r, uint64_t epoch);
/* A rank's part of the lists of all ranks into a buffer of it. */
enum status baseline_write_list(struct baseline_rig *b, uint32_t rank, uint32_t buffer, const int32_t *lists);
/* Up to their rows; and NCCL's part of that alone. */
enum status baseline_dispatch(struct baseline_rig *b);
enum status baseline_exchange(struct rig *r);
/* Row i of `to` is the row of `from` that value i of the list names. */
enum status baseline_pick(struct baseline_rig *b, uint32_t rank, uint32_t from, uint32_t index, uint64_t rows,
                          uint32_t to);
/* Each own expert's rows times its weights; of as many columns as the buffers have. */
enum status baseline_multiply_experts(struct baseline_rig *b, uint32_t rank, uint32_t rows, uint32_t weights,
                                      uint32_t out);

/* ---- baseline_routing.c ---- */

/* ST_INPUT: there is no room for all rows, and none may be dropped. */
enum status baseline_route(struct baseline_rig *b, uint64_t epoch);
void baseline_routing_free(struct baseline_routing *x); /* safe on a zeroed one */

/* ---- baseline_streams.c ---- */

enum status baseline_open_streams(struct baseline_rig *b);
void baseline_close_streams(struct baseline_rig *b);
enum status baseline_enqueue_streams(struct rig *r);

#endif
