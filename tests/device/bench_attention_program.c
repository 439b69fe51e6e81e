#include "bench_attention_program.h"

#include <assert.h>
#include <stdlib.h>

enum { TILE = 128, GROUP_BYTES = 64 << 20, PART = 4, LSE = 5 };

struct state {
    struct bench_attention shape;
    uint64_t tiles;           /* of a head */
    uint64_t group;           /* heads whose tiles take turns, so that the longest come first */
    uint32_t present, linked; /* flags: of a segment; of a tile's link */
};

struct place {
    uint64_t head, tile;
    uint32_t link;
};

static struct place place_at(const struct state *g, uint64_t i)
{
    uint64_t all = g->shape.heads * g->tiles, in_link = i % all;
    uint64_t first = in_link / (g->group * g->tiles) * g->group;
    uint64_t heads = min_u64(g->group, g->shape.heads - first), rest = in_link - first * g->tiles;

    return (struct place){
        .head = first + rest % heads, .tile = g->tiles - 1 - rest / heads, .link = (uint32_t)(i / all)};
}

static struct operand rows(const struct state *g, uint32_t rank, uint32_t buffer, uint64_t head, uint64_t per_head,
                           uint64_t row)
{
    return (struct operand){rank, buffer, (head * per_head + row) * g->shape.dim, g->shape.dim};
}

static uint32_t links(const struct state *g)
{
    return g->shape.walk == WALK_CHAINED ? g->shape.segments : 1;
}

static void link_task(const struct state *g, uint32_t rank, const struct place *at, struct task *t)
{
    uint64_t row = at->head * g->shape.queries + at->tile * TILE;
    uint32_t flag = g->linked + (uint32_t)(at->head * g->tiles + at->tile) * (links(g) - 1) + at->link;
    bool last = at->link + 1 == links(g);

    t->attention.lse = (struct operand){rank, LSE, row, 1};
    if (at->link > 0) {
        t->addend = rows(g, rank, PART, 0, 0, row);
        t->addend_count = 1;
        task_wait(t, flag - 1, 1, FLAG_TOTAL);
    }
    task_store_to(t, rows(g, rank, last ? ATTENTION_O : PART, 0, 0, row));
    if (last)
        return;
    t->attention.leaves = true;
    task_signal(t, rank, flag, 1);
}

/* The first task says that all segments are there, to the next epoch. */
static void make_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t i, struct task *t)
{
    const struct state *g = p->state;
    struct place at;

    (void)queue;
    if (g->shape.walk == WALK_STEPPED && i < g->shape.segments) {
        task_signal(t, rank, g->present + (uint32_t)i, 1);
        return;
    }
    at = place_at(g, i - (g->shape.walk == WALK_STEPPED ? g->shape.segments : 0));
    t->op = OP_ATTENTION;
    t->m = min_u64(TILE, g->shape.queries - at.tile * TILE);
    t->n = g->shape.dim;
    t->a = rows(g, rank, ATTENTION_K, at.head, g->shape.seq, 0);
    t->b = rows(g, rank, ATTENTION_V, at.head, g->shape.seq, 0);
    t->segment_table = 0;
    t->segment_first = at.link;
    t->segment_count = g->shape.segments / links(g);
    t->attention.q = rows(g, rank, ATTENTION_Q, at.head, g->shape.queries, at.tile * TILE);
    t->attention.position = at.tile * TILE;
    t->attention.causal = g->shape.causal;
    link_task(g, rank, &at, t);
}

static uint64_t length(const struct program *p, uint32_t rank, uint32_t queue)
{
    const struct state *g = p->state;

    (void)rank;
    (void)queue;
    return g->shape.heads * g->tiles * links(g) + (g->shape.walk == WALK_STEPPED ? g->shape.segments : 0);
}

static uint64_t flag_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    (void)p;
    (void)rank;
    (void)flag;
    return 1;
}

static uint32_t no_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    (void)p;
    (void)rank;
    (void)out;
    return 0;
}

static uint32_t table_size(const struct program *p, uint32_t rank, uint32_t table)
{
    (void)rank;
    (void)table;
    return ((const struct state *)p->state)->shape.segments;
}

static void segment(const struct program *p, uint32_t rank, uint32_t table, uint32_t i, struct segment *out)
{
    const struct state *g = p->state;

    (void)rank;
    (void)table;
    out->k = part_size(g->shape.seq, g->shape.segments, i);
    out->position = part_begin(g->shape.seq, g->shape.segments, i);
    out->a_offset = out->b_offset = out->position * g->shape.dim;
    if (g->shape.walk == WALK_STEPPED)
        out->wait = (struct wait){.flag = g->present + i, .count = 1, .lag = 1, .value = FLAG_TOTAL};
}

static void free_state(struct program *p)
{
    free(p->state);
}

static void add_buffers(struct program *p, const struct bench_attention *s)
{
    uint64_t keys = s->heads * s->seq, queries = s->heads * s->queries;

    program_add_buffer(p, (struct buffer){"Q", DTYPE_BF16, queries, s->dim, 1});
    program_add_buffer(p, (struct buffer){"K", DTYPE_BF16, keys, s->dim, 1});
    program_add_buffer(p, (struct buffer){"V", DTYPE_BF16, keys, s->dim, 1});
    program_add_buffer(p, (struct buffer){"O", DTYPE_BF16, queries, s->dim, 1});
    if (s->walk != WALK_CHAINED)
        return;
    program_add_buffer(p, (struct buffer){"part", DTYPE_F32, queries, s->dim, 1});
    program_add_buffer(p, (struct buffer){"lse", DTYPE_F32, queries, 1, 1});
}

void bench_attention(struct program *p, const struct bench_attention *shape)
{
    static const struct program_ops ops = {.queue_length = length,
                                           .task = make_task,
                                           .flag_total = flag_total,
                                           .io = no_io,
                                           .segment_table_size = table_size,
                                           .segment = segment,
                                           .fini = free_state};
    struct state *g = calloc(1, sizeof *g);

    assert(g);
    *p = (struct program){
        .kernel = "attention", .variant = "bench", .world = {1, shape->ranks}, .ops = &ops, .state = g};
    *g = (struct state){.shape = *shape, .tiles = ceil_div(shape->queries, TILE), .group = 1};
    if (shape->causal)
        g->group = max_u64(1, GROUP_BYTES / (shape->seq * shape->dim * 4));
    add_buffers(p, shape);
    g->present = program_add_flags(p, "present", shape->walk == WALK_STEPPED ? shape->segments : 0);
    g->linked = program_add_flags(p, "linked", shape->heads * g->tiles * (links(g) - 1));
    program_add_queue(p, "tiles");
    program_crew_drains(p, program_add_crew(p, "all", 1024), 0);
}
