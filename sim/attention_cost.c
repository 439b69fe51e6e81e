#include "sim/attention_cost.h"

#include "sim/gemm_cost.h"

uint64_t attention_piece_ps(const struct machine *m, const struct problem *p, struct world w, uint64_t positions,
                            uint64_t sms)
{
    const struct attention_problem *a = &p->attention;
    uint64_t queries = ceil_div(a->seq, world_ranks(w)), keys = a->causal ? ceil_div(positions, 2) : positions;
    double tiles = (double)(a->batch * a->heads) * (double)ceil_div(queries, m->attention.tile_queries);
    double steps = (double)ceil_div(keys, m->attention.step_keys);
    double tile_ps = (double)m->attention.fixed_ps +
                     steps * (double)machine_attention_step_ps(m, a->head_dim) * m->library.attention;

    if (tiles / (double)sms * tile_ps >= (double)GEMM_TIME_MAX_PS)
        return GEMM_TIME_MAX_PS;
    return (uint64_t)((double)ceil_div((uint64_t)tiles, sms) * tile_ps + 0.5);
}

uint64_t attention_ps(const struct machine *m, const struct problem *p, struct world w)
{
    return attention_piece_ps(m, p, w, p->attention.seq, m->gpu.sms);
}
