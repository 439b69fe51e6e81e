#include "backends/sim/collective.h"

#include <stdio.h>
#include <string.h>

#include "sim/nccl.h"
#include "sim/nccl_flow.h"

/* Leaves the named algorithm alone, as NCCL_ALGO does. */
static void keep_algorithm(struct nccl_comm *comm, enum collective what, const char *name)
{
    for (uint32_t a = 0; a < NCCL_ALGORITHMS; a++)
        for (uint32_t p = 0; p < NCCL_PROTOCOLS; p++)
            if (strcmp(nccl_algorithm_name(a), name) != 0)
                comm->costs[what][a][p] = (struct nccl_cost){0};
}

enum status collective_time(const struct collective_call *call, struct collective_times *out)
{
    const struct machine *m = call->machine;
    struct nccl_choice choice = {.found = true, .channels = 1};
    struct nccl_comm comm;

    *out = (struct collective_times){0};
    nccl_comm_init(&comm, m, call->world);
    if (comm.ranks < 2 || call->bytes == 0)
        return ST_UNSUPPORTED;
    if (call->what == COLLECTIVE_ALL_TO_ALL) {
        snprintf(out->choice, sizeof(out->choice), "send / receive");
    } else {
        if (call->algorithm[0] != '\0')
            keep_algorithm(&comm, call->what, call->algorithm);
        choice = nccl_predict(&comm, call->what, call->bytes);
        if (!choice.found)
            return ST_UNSUPPORTED;
        out->model_ps = choice.time_ps;
        out->corrected_ps =
            (uint64_t)((double)choice.time_ps * nccl_correction_factor(&comm, call->what, &choice, call->bytes) + 0.5);
        nccl_choice_print(&choice, out->choice, sizeof(out->choice));
    }
    if (!nccl_flow_fits(&comm, &choice))
        return ST_UNSUPPORTED;
    out->flow_ps = nccl_flow_time_ps(&comm, m, call->what, &choice, call->bytes, NCCL_FLOW_FOLDED);
    return ST_OK;
}
