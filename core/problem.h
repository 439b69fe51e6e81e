/* What is to be computed.  Kernels that compute the same kind of thing form a family; a family's key table
 * gives the keys of a scenario's `problem` section, their checks, their help, and the columns of results.
 *
 * A new family is a struct of its own within struct problem, a key table in core/problem.c, and a struct
 * problem_family that its kernels name (core/kernel.h). */
#ifndef CORE_PROBLEM_H
#define CORE_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/parse/option.h"
#include "core/world.h"

/* softmax(Q K^T / sqrt(head_dim)) V over a sequence that is dealt to all ranks; every head of a group of
 * heads / kv_heads uses the same keys and values. */
struct attention_problem {
    uint64_t seq; /* positions, over all ranks; queries and keys are the same positions */
    uint64_t batch, heads, kv_heads, head_dim;
    bool causal;      /* a query sees the keys up to its own position */
    uint64_t stripes; /* no key: what kernel->global() cuts the sequence into, see core/attention.h */
};

enum moe_routing {
    MOE_UNIFORM, /* any expert is as likely as any other */
    MOE_SKEWED,  /* the first experts are much likelier than the last */
    MOE_HOT,     /* all tokens choose the same experts, other ones each epoch */
    MOE_HALF,    /* nobody chooses the second half of the experts */
};

enum moe_overflow { MOE_OVERFLOW_ERROR, MOE_OVERFLOW_DROP };

/* A mixture of experts: each token goes to `top_k` of `experts`, which are a GEMM X[., hidden] x W_e[inter, hidden]^T
 * each, or a feed-forward layer with gate and up projections of that shape and one back. */
struct moe_problem {
    uint64_t tokens; /* over all ranks, dealt out evenly; so are the experts */
    uint64_t hidden, inter, experts, top_k;
    uint32_t routing;   /* enum moe_routing */
    double capacity;    /* rows that a rank has room for, over tokens * top_k / ranks */
    uint32_t overflow;  /* enum moe_overflow: of what is routed beyond that */
    struct world world; /* no key: kernel->global() fills it in, for the reference */
};

/* (token, expert) pairs that a rank has room for. */
uint64_t moe_capacity_rows(const struct moe_problem *p, struct world world);

/* Members that are not of the kernel's family are 0. */
struct problem {
    /* The GEMM that each rank runs:
     *   ag_gemm   C_r[m, n] = A[m, k] x B_r[n, k]^T           A arrives row-sharded, m / ranks rows each
     *   gemm_rs   C[m, n]   = sum_r A_r[m, k] x B_r[n, k]^T   rank r keeps m / ranks rows of C
     *   gemm_ar   the same sum, all of it on every rank
     * bf16 operands, f32 accumulation, bf16 results; B is stored [n, k], as linear layers keep weights. */
    uint64_t m, n, k;

    struct attention_problem attention;
    struct moe_problem moe;
};

#define PROBLEM_KEYS_MAX 16

struct problem_family {
    const char *name;
    const struct option *keys; /* rows of struct problem; the last row has no name.  The first key says the
                                  size in a sentence.  Counts may refer to each other */
    const char *const *check;  /* by row: the value of a check that does not state it */

    /* False: 64-bit arithmetic could not hold the problem, or keys contradict each other; `why` says so
     * in a sentence without a full stop. */
    bool (*fits)(const struct problem *p, struct world w, char *why, size_t why_bytes);

    const char *work;    /* what a kernel's main crew does, in sentences: "the GEMM" */
    const char *library; /* what the nccl variant is, in sentences: "NCCL + cuBLAS" */
    /* m, n and k of the GEMM work of one rank; NULL: none other than the problem itself. */
    struct problem (*rank_gemm)(const struct problem *p, struct world w);

    const char *flops_formula; /* of one GPU, as flops() computes it */
    double (*flops)(const struct problem *p, struct world w);
    /* What collectives move, as nccl-tests count a size; NULL: no kernel of the family needs it. */
    double (*gathered_bytes)(const struct problem *p);
    double (*reduced_bytes)(const struct problem *p);
};

extern const struct problem_family problem_gemm, problem_attention, problem_moe, problem_moe_ffn;

uint32_t problem_key_count(const struct problem_family *f);
bool problem_equal(const struct problem_family *f, const struct problem *a, const struct problem *b);

/* "m 4096 n 256 k 4096", and the first key alone, "m 4096".  Return `out`. */
#define PROBLEM_TEXT_BYTES 256
const char *problem_text(const struct problem_family *f, const struct problem *p, char out[PROBLEM_TEXT_BYTES]);
const char *problem_size_text(const struct problem_family *f, const struct problem *p, char out[PROBLEM_TEXT_BYTES]);

#endif
