/* GEMM + ReduceScatter.  C[m, n] = sum over r of A_r[m, k] x B_r[n, k]^T, bf16 in, f32 sums; rank r keeps
 * rows [r * m/W, (r+1) * m/W): a true reduce-scatter.  gemm_reduce.h tells how sums travel.
 *
 *   compute   tiles, other ranks' rows first.  A tile of another GPU's rail is stored straight into that
 *             rail mate's inbox; a tile of the own rail adds what the node's peers stored (late wait)
 *   reduce    only with `reduce: crew`: adds inbox tiles in the place of the epilogue
 *   send      puts this node's sums to their owners
 *   combine   adds the nodes' sums of own tiles
 *
 * With `replicate` a rank keeps the rows of all ranks of its rail, as some published kernels do.
 *
 * On one node with `reduce: epilogue` there is nothing but `compute`. */
#include "kernels/kernels.h"

#include "kernels/gemm_reduce.h"
#include "kernels/reference.h"

static const struct option rs_options[] = {
    REDUCE_OPTIONS,
    {"replicate", OPTION_BOOL, REDUCE_AT(replicate), "false", 0, 0, NULL,
     "every node keeps all rows: a rank those of its rail, at nodes times the traffic between nodes"},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL},
};

static enum status rs_emit(const struct problem *problem, struct world world, const struct machine *machine,
                           enum form form, const void *params, struct program *p, struct complaint *c)
{
    return gemm_reduce_emit(false, problem, world, machine, form, params, p, c);
}

const struct kernel gemm_rs_kernel = {
    .name = "gemm_rs",
    .title = "GEMM + ReduceScatter: rank r keeps its rows of sum_r A_r x B_r^T",
    .shape = "A_r[m, k] and B_r[n, k] per rank; C[m, n] sharded by rows, m/ranks each",
    .family = &problem_gemm,
    .collective = COLLECTIVE_REDUCE_SCATTER,
    .options = rs_options,
    .params_size = sizeof(struct reduce_params),
    .emit = rs_emit,
    .global = gemm_reduce_global,
    .reference = reference_gemm,
};
