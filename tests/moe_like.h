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
    p.moe =
        (struct moe_problem){.tokens = p.m, .hidden = p.k, .inter = p.n, .experts = 11, .top_k = 3, .capacity = 1e3};
    return p;
}

/* Routings of every kind.  `half` leaves ranks without a token where ranks share the experts out; 3 tokens leave
 * ranks without one to send; with one expert a token, `hot` sends all to one expert. */
static const struct moe_problem moe_problems[] = {
    {.tokens = 100, .hidden = 70, .inter = 65, .experts = 24, .top_k = 4, .routing = MOE_UNIFORM},
    {.tokens = 61, .hidden = 64, .inter = 32, .experts = 9, .top_k = 3, .routing = MOE_SKEWED},
    {.tokens = 50, .hidden = 33, .inter = 17, .experts = 16, .top_k = 1, .routing = MOE_HOT},
    {.tokens = 64, .hidden = 40, .inter = 48, .experts = 8, .top_k = 2, .routing = MOE_HALF},
    {.tokens = 3, .hidden = 16, .inter = 24, .experts = 5, .top_k = 5, .routing = MOE_UNIFORM},
};

#define MOE_PROBLEMS ((int)(sizeof moe_problems / sizeof *moe_problems))

#endif
