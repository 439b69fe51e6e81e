#include "sim/library_cost.h"

#include <assert.h>
#include <stddef.h>

#include "sim/attention_cost.h"
#include "sim/gemm_cost.h"

static uint64_t gemm(const struct machine *m, const struct problem *p, struct world w)
{
    (void)w;
    return gemm_ps(m, *p);
}

static uint64_t moe(const struct machine *m, const struct problem *p, struct world w)
{
    return gemm_ps(m, problem_moe.rank_gemm(p, w));
}

static uint64_t moe_ffn(const struct machine *m, const struct problem *p, struct world w)
{
    return gemm_ps(m, problem_moe_ffn.rank_gemm(p, w));
}

static const struct library_cost costs[] = {
    {&problem_gemm, gemm, "GEMM table", true},
    {&problem_attention, attention_ps, "attention table", false},
    {&problem_moe, moe, "GEMM table", false},
    {&problem_moe_ffn, moe_ffn, "GEMM table", false},
};

const struct library_cost *library_cost_of(const struct kernel *k)
{
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++)
        if (costs[i].family == k->family)
            return &costs[i];
    assert(!"a family of problems without a library cost");
    return NULL;
}
