#include "backends/sim/symmetry.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/transfer.h"

#define NO_PARTNER UINT32_MAX

/* Node 0 beside node `node`. */
struct pairing {
    const struct program *p;
    uint32_t node;
    uint32_t *near, *far; /* by gpu and flag: the partner on node 0 of one of `node`, and the other way round */
};

/* A task of node 0 and its counterpart. */
struct pair {
    uint32_t gpu, queue;
    uint64_t index;
    struct task here, there;
};

uint32_t symmetry_move(struct world w, uint32_t rank, uint32_t nodes)
{
    return world_rank(w, (world_node(w, rank) + nodes) % w.nodes, world_gpu(w, rank));
}

static bool same_rank(const struct pairing *x, uint32_t here, uint32_t there)
{
    if (here >= RANK_EACH)
        return here == there;
    return symmetry_move(x->p->world, here, x->node) == there;
}

static bool same_operand(const struct pairing *x, const struct operand *here, const struct operand *there)
{
    const struct buffer *b = x->p->buffers;

    return same_rank(x, here->rank, there->rank) && b[here->buffer].dtype == b[there->buffer].dtype;
}

/* ---- what a task does ---- */

static bool same_extents(const struct task *a, const struct task *b)
{
    return a->op == b->op && a->m == b->m && a->n == b->n && a->k == b->k && a->epilogue == b->epilogue;
}

static bool same_counts(const struct task *a, const struct task *b)
{
    return a->out_count == b->out_count && a->addend_count == b->addend_count && a->wait_count == b->wait_count &&
           a->signal_count == b->signal_count && (!op_walks(a->op) || program_step_count(a) == program_step_count(b));
}

static bool same_operands(const struct pairing *x, const struct pair *t)
{
    const struct task *a = &t->here, *b = &t->there;
    uint32_t there = world_rank(x->p->world, x->node, t->gpu);
    bool reads = (a->op == OP_COPY || a->op == OP_PUT) && a->m > 0 && a->n > 0;

    if (reads && !same_operand(x, &a->a, &b->a))
        return false;
    if (a->addend_count > 0 && !same_operand(x, &a->addend, &b->addend))
        return false;
    for (uint32_t i = 0; i < a->out_count; i++)
        if (!same_operand(x, &a->out[i], &b->out[i]) ||
            transfer_is_void(a, &a->out[i], t->gpu) != transfer_is_void(b, &b->out[i], there))
            return false;
    return true;
}

/* ---- flags ---- */

static uint64_t flag_at(const struct pairing *x, uint32_t gpu, uint32_t flag)
{
    return (uint64_t)gpu * x->p->flag_count + flag;
}

/* Notes that they are partners; false where either has another partner, or another total. */
static bool pair_flags(struct pairing *x, uint32_t gpu, uint32_t here, uint32_t there)
{
    uint32_t *near = &x->near[flag_at(x, gpu, there)], *far = &x->far[flag_at(x, gpu, here)];

    if (*near == here && *far == there)
        return true;
    if (*near != NO_PARTNER || *far != NO_PARTNER)
        return false;
    *near = here;
    *far = there;
    return program_flag_total(x->p, gpu, here) ==
           program_flag_total(x->p, world_rank(x->p->world, x->node, gpu), there);
}

/* The `i`th signal of the task at the pair's place on another node; without one, to nobody. */
static struct signal signal_of(const struct pairing *x, const struct pair *t, uint32_t node, uint32_t i)
{
    struct task other;

    program_task(x->p, world_rank(x->p->world, node, t->gpu), t->queue, t->index, &other);
    return i < other.signal_count ? other.signals[i] : (struct signal){.rank = NO_PARTNER};
}

/* A put signals another node.  What reaches node 0 and node x->node in its place comes from as many
 * nodes before them. */
static bool pair_put_flags(struct pairing *x, const struct pair *t, uint32_t i)
{
    struct world w = x->p->world;
    uint32_t back = w.nodes - world_node(w, t->here.signals[i].rank);
    struct signal here = signal_of(x, t, back % w.nodes, i);
    struct signal there = signal_of(x, t, (back + x->node) % w.nodes, i);

    if (here.rank >= w.gpus_per_node || there.rank != symmetry_move(w, here.rank, x->node))
        return false;
    return pair_flags(x, here.rank, here.flag, there.flag);
}

static bool pair_signal(struct pairing *x, const struct pair *t, uint32_t i)
{
    const struct signal *a = &t->here.signals[i], *b = &t->there.signals[i];
    uint32_t first, count;

    if (!same_rank(x, a->rank, b->rank) || a->add != b->add)
        return false;
    if (a->rank < RANK_EACH && a->rank >= x->p->world.gpus_per_node)
        return pair_put_flags(x, t, i);
    count = program_target_ranks(x->p, t->gpu, a->rank, &first);
    for (uint32_t gpu = first; gpu < first + count; gpu++)
        if (!pair_flags(x, gpu, a->flag, b->flag))
            return false;
    return true;
}

/* How many flags of a wait have partners, all of which must be in `other`, the wait's counterpart.
 * A flag without a partner, which nobody signals, must be one that is not really waited for.  -1:
 * something is amiss. */
static int64_t partners_in(const struct pairing *x, const uint32_t *partners, uint32_t rank, const struct wait *w,
                           const struct wait *other)
{
    uint32_t gpu = world_gpu(x->p->world, rank);
    int64_t count = 0;

    for (uint32_t i = 0; i < w->count; i++) {
        uint32_t partner = partners[flag_at(x, gpu, w->flag + i)];

        if (partner == NO_PARTNER && program_wait_target(x->p, rank, w, i, w->lag + 1) > 0)
            return -1;
        if (partner != NO_PARTNER && (partner < other->flag || partner - other->flag >= other->count))
            return -1;
        count += partner != NO_PARTNER;
    }
    return count;
}

/* On partners, as many. */
static bool same_wait(const struct pairing *x, uint32_t gpu, const struct wait *a, const struct wait *b)
{
    if (a->count != b->count || a->lag != b->lag || a->phase != b->phase || a->value != b->value)
        return false;
    int64_t partners = partners_in(x, x->far, gpu, a, b);
    return partners >= 0 && partners == partners_in(x, x->near, world_rank(x->p->world, x->node, gpu), b, a);
}

static bool same_step(const struct pairing *x, const struct pair *t, uint32_t step)
{
    struct segment here, there;
    struct operand a, b, far_a, far_b;

    program_step(x->p, t->gpu, &t->here, step, &here, &a, &b);
    program_step(x->p, world_rank(x->p->world, x->node, t->gpu), &t->there, step, &there, &far_a, &far_b);
    return here.k == there.k && same_operand(x, &a, &far_a) && same_operand(x, &b, &far_b) &&
           same_wait(x, t->gpu, &here.wait, &there.wait);
}

/* ---- passes over all tasks ---- */

/* Returns what differs, or NULL. */
typedef const char *pass_fn(struct pairing *x, const struct pair *t);

#define GLANCES 8

static const char *pass_glance(struct pairing *x, const struct pair *t)
{
    (void)x;
    return same_extents(&t->here, &t->there) && same_counts(&t->here, &t->there) ? NULL : "work";
}

static const char *pass_work(struct pairing *x, const struct pair *t)
{
    const char *what = pass_glance(x, t);

    if (what)
        return what;
    if (!same_operands(x, t))
        return "operands";
    for (uint32_t i = 0; i < t->here.signal_count; i++)
        if (!pair_signal(x, t, i))
            return "signals";
    return NULL;
}

static const char *pass_waits(struct pairing *x, const struct pair *t)
{
    for (uint32_t i = 0; i < t->here.wait_count; i++)
        if (!same_wait(x, t->gpu, &t->here.waits[i], &t->there.waits[i]))
            return "waits";
    for (uint32_t i = 0; op_walks(t->here.op) && i < program_step_count(&t->here); i++)
        if (!same_step(x, t, i))
            return "steps";
    return NULL;
}

static void load(const struct pairing *x, struct pair *t)
{
    program_task(x->p, t->gpu, t->queue, t->index, &t->here);
    program_task(x->p, world_rank(x->p->world, x->node, t->gpu), t->queue, t->index, &t->there);
}

static bool pass_queue(struct pairing *x, pass_fn *pass, struct pair *t, char *why, size_t why_bytes)
{
    const struct program *p = x->p;
    uint64_t length = program_queue_length(p, t->gpu, t->queue);
    uint64_t there = program_queue_length(p, world_rank(p->world, x->node, t->gpu), t->queue);
    uint64_t count = pass == pass_glance ? min_u64(length, GLANCES) : length;
    const char *what = NULL;

    for (uint64_t i = 0; length == there && !what && i < count; i++) {
        t->index = part_begin(length, count, i);
        load(x, t);
        what = pass(x, t);
    }
    if (length != there)
        snprintf(why, why_bytes,
                 "node %" PRIu32 " has %" PRIu64 " tasks in queue %s of gpu %" PRIu32 ", node 0 has %" PRIu64, x->node,
                 there, p->queues[t->queue].name, t->gpu, length);
    else if (what)
        snprintf(why, why_bytes,
                 "task %" PRIu64 " of queue %s of gpu %" PRIu32 " has other %s on node %" PRIu32 " than on node 0",
                 t->index, p->queues[t->queue].name, t->gpu, what, x->node);
    return length == there && !what;
}

static bool pass_all(struct pairing *x, pass_fn *pass, char *why, size_t why_bytes)
{
    struct pair t;

    for (t.gpu = 0; t.gpu < x->p->world.gpus_per_node; t.gpu++)
        for (t.queue = 0; t.queue < x->p->queue_count; t.queue++)
            if (!pass_queue(x, pass, &t, why, why_bytes))
                return false;
    return true;
}

/* Waits come last: only then each flag has its partner. */
static bool same_node(struct pairing *x, char *why, size_t why_bytes)
{
    size_t bytes = (size_t)x->p->world.gpus_per_node * x->p->flag_count * sizeof x->near[0];
    bool thorough = (x->node & (x->node - 1)) == 0 || x->node + 1 == x->p->world.nodes;

    if (!thorough)
        return pass_all(x, pass_glance, why, why_bytes);
    memset(x->near, 0xff, bytes);
    memset(x->far, 0xff, bytes);
    return pass_all(x, pass_work, why, why_bytes) && pass_all(x, pass_waits, why, why_bytes);
}

uint64_t symmetry_bytes(const struct program *p)
{
    return 2 * ((uint64_t)p->world.gpus_per_node * p->flag_count + 1) * sizeof(uint32_t);
}

bool symmetry_of_nodes(const struct program *p, char *why, size_t why_bytes)
{
    struct pairing x = {.p = p};
    bool same = true;

    if (program_control_bytes(p) > 0) {
        snprintf(why, why_bytes, "its ranks work on what their routing tables say");
        return false;
    }
    x.near = malloc(symmetry_bytes(p) / 2);
    x.far = malloc(symmetry_bytes(p) / 2);
    assert(x.near && x.far);
    for (x.node = 1; same && x.node < p->world.nodes; x.node++)
        same = same_node(&x, why, why_bytes);
    free(x.near);
    free(x.far);
    return same;
}
