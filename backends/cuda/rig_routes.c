/* Routes: scratch memory, and what they had no room for. */
#include <inttypes.h>

#include "backends/cuda/rig.h"
#include "backends/ops/route.h"

static uint64_t scratch_words(const struct lowered_route *x)
{
    const struct route *r = x->route;
    const struct gpu_route *g = &x->word;
    uint32_t ranks = g->returns ? g->gpus : 1, first = g->returns ? g->rank / g->gpus * g->gpus : g->rank;
    uint64_t experts = route_expert_begin(r, first + ranks) - route_expert_begin(r, first);
    uint64_t held = g->lists_pulls ? (uint64_t)g->gpus * g->nodes * r->slot_rows : 0;

    return GPU_ROUTE_WORDS(ranks, experts, g->list_rows, r->tokens, g->list_rows * r->tile_rows, held);
}

enum status rig_create_routes(struct rig *r)
{
    struct lowered_route *routes = r->lowered.routes.items;

    for (size_t i = 0; i < r->lowered.routes.count; i++) {
        struct rig_rank *rank = rig_rank(r, routes[i].word.rank);
        void *scratch;

        TRY_CUDA(r, cudaSetDevice(rank->device->index));
        TRY_CUDA(r, cudaMalloc(&scratch, scratch_words(&routes[i]) * sizeof(uint32_t)));
        routes[i].word.scratch = (uintptr_t)scratch;
        routes[i].word.dropped = (uintptr_t)(rank->counters + r->program->queue_count + 1);
    }
    return ST_OK;
}

void rig_destroy_routes(struct rig *r)
{
    struct lowered_route *routes = r->lowered.routes.items;

    for (size_t i = 0; i < r->lowered.routes.count; i++)
        cudaFree((void *)(uintptr_t)routes[i].word.scratch);
}

static enum status check_route(struct rig *r, const struct lowered_route *x)
{
    struct rig_rank *rank = rig_rank(r, x->word.rank);
    struct task task = {.route = x->route};
    uint64_t dropped, before = rank->dropped;

    TRY_CUDA(r, cudaMemcpy(&dropped, (const void *)(uintptr_t)x->word.dropped, sizeof dropped, cudaMemcpyDeviceToHost));
    rank->dropped = dropped;
    if (dropped == before || x->route->drop)
        return ST_OK;
    tile_route_refusal(&task, rank->index, r->epoch, dropped - before, r->why, sizeof r->why);
    return ST_INPUT;
}

enum status rig_check_routes(struct rig *r)
{
    const struct lowered_route *routes = r->lowered.routes.items;

    for (size_t i = 0; i < r->lowered.routes.count; i++)
        if (routes[i].route->kind == ROUTE_RECEIVE)
            TRY(check_route(r, &routes[i]));
    return ST_OK;
}
