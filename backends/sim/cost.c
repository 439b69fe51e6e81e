#include "backends/sim/cost.h"

#include "core/world.h"

uint64_t cost_start(const struct machine *m, enum op op, bool fetched, bool streaming)
{
    uint64_t dispatch_ps = fetched ? 0 : m->flag.dispatch_ps;

    switch (op) {
    case OP_NOP: return m->flag.dispatch_ps; /* too short to fetch anything behind */
    case OP_GEMM: return dispatch_ps + m->gemm.fixed_ps;
    case OP_ATTENTION: return dispatch_ps + m->attention.fixed_ps;
    case OP_COPY:
    case OP_REDUCE:
    case OP_GATHER_ROWS:
    case OP_COMBINE_ROWS: return dispatch_ps + (streaming ? m->copy.pipelined_ps : m->copy.drained_ps);
    case OP_ROUTE: return dispatch_ps + m->copy.drained_ps;
    case OP_PUT: return dispatch_ps + m->proxy.push_ps;
    }
    return 0;
}

uint64_t cost_before_flows(const struct machine *m, uint64_t fixed_ps)
{
    return fixed_ps - min_u64(fixed_ps, m->nvlink.latency_ps);
}

uint64_t cost_gemm(const struct machine *m, uint64_t step_ps, uint64_t rows, uint64_t cols, uint64_t k)
{
    return ceil_div(rows, m->gemm.tile_m) * ceil_div(cols, m->gemm.tile_n) * ceil_div(k, m->gemm.step_k) * step_ps;
}

uint64_t cost_segment(const struct machine *m, uint64_t step_ps, const struct task *t, uint64_t k)
{
    if (t->op == OP_GEMM)
        return cost_gemm(m, step_ps, t->m, step_extent_b(t, &(struct segment){.k = k}).rows, k);
    return ceil_div(t->m, m->attention.tile_queries) * ceil_div(k, m->attention.step_keys) *
           machine_program_attention_step_ps(m, t->n);
}

uint64_t cost_epilogue(const struct machine *m, const struct task *t)
{
    if (t->op != OP_GEMM || t->epilogue != EPILOGUE_SWIGLU)
        return 0;
    return ceil_div(t->m, m->gemm.tile_m) * ceil_div(2 * t->n, m->gemm.tile_n) * m->gemm.swiglu_ps;
}

uint64_t cost_flush(const struct machine *m, enum op op)
{
    return op == OP_GEMM ? m->gemm.flush_ps : 0;
}

uint64_t cost_addends(const struct machine *m, const struct task *t, uint64_t bytes)
{
    return t->op == OP_ATTENTION ? m->attention.carry_ps : cost_bytes(bytes, m->copy.reduce_rate);
}

uint64_t cost_bytes(uint64_t bytes, double rate)
{
    return (uint64_t)((double)bytes * 1e12 / rate + 0.5);
}
