/* A mixture of experts for each GEMM that a test lists, so that one list of shapes serves every kernel. */
#ifndef TESTS_MOE_LIKE_H
#define TESTS_MOE_LIKE_H

#include "core/kernel.h"

static inline bool is_moe(const struct kernel *k)
{
    return k->family == &problem_moe || k->family == &problem_moe_ffn;
}

/* tokens x hidden = m x k, inter = n; never more rows than there is room for. */
static inline struct problem moe_like(struct problem p)
{
    p.moe = (struct moe_problem){.tokens = p.m,
                                 .hidden = p.k,
                                 .inter = p.n,
                                 .experts = 11,
                                 .top_k = 3,
                                 .capacity = 1e3};
    return p;
}

#endif
