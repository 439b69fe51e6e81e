/* The library picks the better of two tile shapes, the machine's tile and one of half the rows,
 * which wastes less of a small GEMM's last wave but feeds the tensor cores less well: a step of a
 * half tile costs 0.55 of a full one.  That reproduces cuBLAS 13.0 on one H200 both at 128 x 8192 x
 * 8192 (50 us, less than one wave of full tiles) and on 100, 116 and 132 SMs
 * (results/reference/h200). */
#include "sim/gemm_cost.h"

#include <assert.h>

#include "core/world.h"

#define HALF_TILE_STEP 0.55

static uint64_t waves_ps(const struct machine *m, struct problem p, uint64_t sms, uint64_t tile_m, double step_ps)
{
    double tiles = (double)ceil_div(p.m, tile_m) * (double)ceil_div(p.n, m->gemm.tile_n);
    double steps = (double)ceil_div(p.k, m->gemm.step_k);
    double tile_ps = (double)m->gemm.fixed_ps + steps * step_ps;

    if (tiles / (double)sms * tile_ps >= (double)GEMM_TIME_MAX_PS)
        return GEMM_TIME_MAX_PS;
    uint64_t waves = ceil_div((uint64_t)tiles, sms);
    return (uint64_t)((double)waves * tile_ps + 0.5);
}

uint64_t gemm_piece_ps(const struct machine *m, struct problem piece, uint64_t sms, uint64_t step_ps)
{
    assert(sms > 0 && m->gemm.tile_m > 0 && m->gemm.tile_n > 0 && m->gemm.step_k > 0);
    if (piece.m == 0 || piece.n == 0)
        return 0;
    uint64_t full = waves_ps(m, piece, sms, m->gemm.tile_m, (double)step_ps);
    uint64_t half = waves_ps(m, piece, sms, max_u64(m->gemm.tile_m / 2, 1), (double)step_ps * HALF_TILE_STEP);

    return min_u64(full, half);
}

uint64_t gemm_step_ps(const struct machine *m, struct problem p, uint64_t sms)
{
    double cold = (double)gemm_piece_ps(m, p, sms, machine_gemm_step_ps(m, 0));

    /* The machine's table is for all SMs busy; fewer draw less power. */
    return machine_gemm_step_ps(m, (uint64_t)(cold * (double)sms / (double)m->gpu.sms));
}

uint64_t gemm_ps(const struct machine *m, struct problem p)
{
    return gemm_piece_ps(m, p, m->gpu.sms, gemm_step_ps(m, p, m->gpu.sms));
}
