/* The stages of a rig's ranks: who puts what to whom, found by a walk over the program's puts. */
#include "backends/cuda/rig.h"

/* Puts are numbered as lowering numbers them: by rank, in the order of its queues. */
struct staging {
    struct rig *rig;
    struct stage_part part;
    bool opened; /* the part is known */
    uint32_t from, number;
};

static bool see_put(void *arg, uint32_t from, const struct task *t, const struct signal *s)
{
    struct staging *x = arg;
    const struct rig *r = x->rig;
    uint32_t number = from == x->from ? x->number : 0;

    x->from = from;
    x->number = number + 1;
    if (!x->opened)
        stage_part_add(&x->part, r->program, t);
    else if (s->rank - r->first_rank < r->rank_count)
        return stage_expect(&rig_rank(r, s->rank)->stage, from, number, t, s);
    return true;
}

static bool see_puts(struct staging *x)
{
    const struct program *p = x->rig->program;

    x->from = UINT32_MAX;
    return way_each_put(p, 0, world_ranks(p->world), see_put, x);
}

static enum status open_stage(struct rig *r, struct rig_rank *rank, struct stage_part part, uint32_t depth)
{
    struct stage_config c = {
        .program = r->program,
        .part = part,
        .rank = rank->index,
        .put_count = (uint32_t)r->lowered.puts[rank->index].count,
        .depth = depth,
        .window = rank->window,
        .put_flags = rank->put_flags,
    };

    TRY_CUDA(r, cudaSetDevice(rank->device->index));
    TRY_CUDA(r, stage_open(&rank->stage, &c));
    return ST_OK;
}

enum status rig_open_stages(struct rig *r, uint32_t depth)
{
    struct staging x = {.rig = r};

    see_puts(&x);
    for (uint32_t i = 0; i < r->rank_count; i++)
        TRY(open_stage(r, &r->ranks[i], x.part, depth));
    x.opened = true;
    return see_puts(&x) ? ST_OK : rig_fail(r, ST_MEMORY, "cuda: no memory for the puts that arrive");
}
