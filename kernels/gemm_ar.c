/* GEMM + AllReduce.  C[m, n] = sum over r of A_r[m, k] x B_r[n, k]^T on every rank, bf16 in, f32 sums.
 *
 * A reduce-scatter as in gemm_rs.c whose final tiles go on: the task that has the sum in hand stores it into
 * C on every rank of its node and into `result`, and two more queues carry it to the other nodes:
 *
 *   share     puts chunks of final tiles along the rail (ring or direct)
 *   publish   copies tiles that arrived into C on every rank of the node
 *
 * done[owner] counts an owner's tiles in C; the epoch's last task waits for all of them. */
#include "kernels/kernels.h"

#include "kernels/gemm_reduce.h"
#include "kernels/reference.h"

static const struct option ar_options[] = {
    REDUCE_OPTIONS,
    {"comm_sms", OPTION_COUNT, REDUCE_AT(comm_sms), "8", 1, 1024, "2|4|8|16|32",
     "workers that publish tiles from other nodes (none with one node)"},
    {"inter", OPTION_CHOICE, REDUCE_AT(inter), "direct", 0, 0, RAIL_CHOICES, "how final tiles travel between nodes"},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL},
};

static enum status ar_emit(const struct problem *problem, struct world world, const struct machine *machine,
                           enum form form, const void *params, struct program *p, struct complaint *c)
{
    return gemm_reduce_emit(true, problem, world, machine, form, params, p, c);
}

const struct kernel gemm_ar_kernel = {
    .name = "gemm_ar",
    .title = "GEMM + AllReduce: every rank has sum_r A_r x B_r^T",
    .shape = "A_r[m, k], B_r[n, k] and C[m, n] per rank",
    .family = &problem_gemm,
    .collective = COLLECTIVE_ALL_REDUCE,
    .options = ar_options,
    .params_size = sizeof(struct reduce_params),
    .emit = ar_emit,
    .global = gemm_reduce_global,
    .reference = reference_gemm,
};
