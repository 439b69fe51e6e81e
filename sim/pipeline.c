#include "sim/pipeline.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/world.h"
#include "sim/network.h"

#define EDGES_MAX 4 /* into a stage, and out of it */

struct stage {
    struct pipeline_stage shape;
    uint32_t edges_in[EDGES_MAX], edges_out[EDGES_MAX];
    uint32_t in_count, out_count;
    uint64_t done;   /* operations */
    uint32_t moving; /* edges that the present operation still writes to */
    bool busy;
};

struct edge {
    struct pipeline_edge shape;
    uint64_t arrived; /* slices that wait for their taker */
    uint32_t used;    /* slots */
};

struct pipeline {
    struct engine *engine;
    uint32_t loops;
    uint64_t slice_bytes, last_bytes;
    struct stage *stages;
    uint32_t stage_count, stage_capacity;
    struct edge *edges;
    uint32_t edge_count, edge_capacity;
    uint64_t *loop_end_ps;
};

struct pipeline *pipeline_create(struct engine *engine, uint32_t loops, uint64_t slice_bytes, uint64_t last_bytes)
{
    struct pipeline *p = calloc(1, sizeof(*p));

    assert(p != NULL && loops > 0);
    p->engine = engine;
    p->loops = loops;
    p->slice_bytes = slice_bytes;
    p->last_bytes = last_bytes;
    p->loop_end_ps = calloc(loops, sizeof(p->loop_end_ps[0]));
    assert(p->loop_end_ps != NULL);
    return p;
}

void pipeline_destroy(struct pipeline *p)
{
    if (p == NULL)
        return;
    free(p->stages);
    free(p->edges);
    free(p->loop_end_ps);
    free(p);
}

static void *room_for_one(void *items, uint32_t count, uint32_t *capacity, size_t item_bytes)
{
    if (count < *capacity)
        return items;
    *capacity = *capacity > 0 ? 2 * *capacity : 16;
    items = realloc(items, *capacity * item_bytes);
    assert(items != NULL);
    return items;
}

uint32_t pipeline_add_stage(struct pipeline *p, const struct pipeline_stage *stage)
{
    p->stages = room_for_one(p->stages, p->stage_count, &p->stage_capacity, sizeof(p->stages[0]));
    p->stages[p->stage_count] = (struct stage){.shape = *stage};
    return p->stage_count++;
}

void pipeline_add_edge(struct pipeline *p, const struct pipeline_edge *edge)
{
    struct stage *from = &p->stages[edge->from], *to = &p->stages[edge->to];

    assert(edge->from < p->stage_count && edge->to < p->stage_count && edge->slots > 0);
    assert(from->out_count < EDGES_MAX && to->in_count < EDGES_MAX);
    p->edges = room_for_one(p->edges, p->edge_count, &p->edge_capacity, sizeof(p->edges[0]));
    p->edges[p->edge_count] = (struct edge){.shape = *edge};
    from->edges_out[from->out_count++] = p->edge_count;
    to->edges_in[to->in_count++] = p->edge_count++;
}

static uint32_t loop_of(const struct stage *s)
{
    return (uint32_t)(s->done / s->shape.period);
}

static uint8_t operation_of(const struct stage *s)
{
    return s->shape.pattern[s->done % s->shape.period % s->shape.length];
}

static uint64_t bytes_of(const struct pipeline *p, const struct stage *s, double factor)
{
    uint64_t bytes = loop_of(s) + 1 < p->loops ? p->slice_bytes : p->last_bytes;

    return (uint64_t)((double)bytes * factor + 0.5);
}

static uint64_t duration_ps(uint64_t bytes, double rate)
{
    return rate > 0 ? network_round_ps((double)bytes * 1e12 / rate) : 0;
}

static bool may_start(const struct pipeline *p, const struct stage *s)
{
    if (s->busy || loop_of(s) >= p->loops)
        return false;
    if (operation_of(s) & PIPELINE_TAKE)
        for (uint32_t i = 0; i < s->in_count; i++)
            if (p->edges[s->edges_in[i]].arrived == 0)
                return false;
    if (operation_of(s) & PIPELINE_GIVE)
        for (uint32_t i = 0; i < s->out_count; i++)
            if (p->edges[s->edges_out[i]].used == p->edges[s->edges_out[i]].shape.slots)
                return false;
    return true;
}

static void operation_moves(void *arg, uint64_t stage, uint64_t unused);

static void stage_try(struct pipeline *p, uint32_t stage)
{
    struct stage *s = &p->stages[stage];

    if (!may_start(p, s))
        return;
    s->busy = true;
    if (operation_of(s) & PIPELINE_TAKE)
        for (uint32_t i = 0; i < s->in_count; i++)
            p->edges[s->edges_in[i]].arrived--;
    if (operation_of(s) & PIPELINE_GIVE)
        for (uint32_t i = 0; i < s->out_count; i++)
            p->edges[s->edges_out[i]].used++;
    engine_after(p->engine, s->shape.step_ps, operation_moves, p, stage, 0);
}

static void slice_arrives(void *arg, uint64_t edge, uint64_t unused)
{
    struct pipeline *p = arg;

    (void)unused;
    p->edges[edge].arrived++;
    stage_try(p, p->edges[edge].shape.to);
}

static void slot_is_free(void *arg, uint64_t edge, uint64_t unused)
{
    struct pipeline *p = arg;

    (void)unused;
    p->edges[edge].used--;
    stage_try(p, p->edges[edge].shape.from);
}

static void operation_ends(struct pipeline *p, uint32_t stage)
{
    struct stage *s = &p->stages[stage];
    uint8_t operation = operation_of(s);

    if (operation & PIPELINE_TAKE)
        for (uint32_t i = 0; i < s->in_count; i++)
            engine_after(p->engine, p->edges[s->edges_in[i]].shape.latency_ps, slot_is_free, p, s->edges_in[i], 0);
    p->loop_end_ps[loop_of(s)] = max_u64(p->loop_end_ps[loop_of(s)], engine_now_ps(p->engine));
    s->done++;
    s->busy = false;
    stage_try(p, stage);
}

static void part_ends(void *arg, uint64_t stage, uint64_t unused)
{
    struct pipeline *p = arg;

    (void)unused;
    if (--p->stages[stage].moving == 0)
        operation_ends(p, (uint32_t)stage);
}

static void edge_moved(void *arg, uint64_t stage, uint64_t edge)
{
    struct pipeline *p = arg;

    engine_after(p->engine, p->edges[edge].shape.latency_ps, slice_arrives, p, edge, 0);
    part_ends(p, stage, 0);
}

static void edge_move(struct pipeline *p, uint32_t stage, uint32_t edge)
{
    const struct pipeline_edge *e = &p->edges[edge].shape;
    uint64_t bytes = bytes_of(p, &p->stages[stage], e->factor);

    if (e->out_port == ENGINE_NO_PORT && e->in_port == ENGINE_NO_PORT)
        engine_after(p->engine, duration_ps(bytes, e->rate_bound), edge_moved, p, stage, edge);
    else
        engine_flow(p->engine, e->out_port, e->in_port, bytes, e->rate_bound, edge_moved, p, stage, edge);
}

static void operation_moves(void *arg, uint64_t stage, uint64_t unused)
{
    struct pipeline *p = arg;
    struct stage *s = &p->stages[stage];
    bool gives = operation_of(s) & PIPELINE_GIVE && s->out_count > 0;

    (void)unused;
    s->moving = gives ? s->out_count : 1;
    if (!gives) {
        uint64_t takes_ps = duration_ps(bytes_of(p, s, 1), s->shape.rate);
        engine_after(p->engine, takes_ps, part_ends, p, stage, 0);
        return;
    }
    for (uint32_t i = 0; i < s->out_count; i++)
        edge_move(p, (uint32_t)stage, s->edges_out[i]);
}

void pipeline_run(struct pipeline *p)
{
    for (uint32_t i = 0; i < p->stage_count; i++)
        stage_try(p, i);
    engine_run(p->engine);
    for (uint32_t i = 0; i < p->stage_count; i++)
        assert(loop_of(&p->stages[i]) == p->loops);
}

uint64_t pipeline_loop_end_ps(const struct pipeline *p, uint32_t loop)
{
    assert(loop < p->loops);
    return p->loop_end_ps[loop];
}
