#include "mutant.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/parse/option.h"

const char *const mutation_names[MUTATIONS] = {
    "drop wait",      "drop signal",  "halve wait",   "early reuse",  "early signal",
    "shallow buffer", "shift source", "shift target", "swap targets",
};

bool mutation_by_group(enum mutation m)
{
    return m <= EARLY_SIGNAL;
}

static bool in_group(const struct mutant *m, uint32_t flag)
{
    const struct flag_group *g = &m->inner.flag_groups[m->group];

    return flag - g->first < g->count;
}

static void mutate_waits(struct mutant *m, struct task *t)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < t->wait_count; i++) {
        struct wait w = t->waits[i];

        if (in_group(m, w.flag)) {
            if (m->mutation == DROP_WAIT) {
                m->hits++;
                continue;
            }
            if (m->mutation == HALVE_WAIT && w.count > 1) {
                m->hits++;
                w.count /= 2;
            }
            if (m->mutation == EARLY_REUSE && w.lag > 0) {
                m->hits++;
                w.lag++;
            }
        }
        t->waits[kept++] = w;
    }
    t->wait_count = kept;
    if (t->indexed.count == 0 || !in_group(m, t->indexed.first) || m->mutation == EARLY_REUSE)
        return;
    t->indexed.count = m->mutation == DROP_WAIT ? 0 : t->indexed.count / 2;
    m->hits++;
}

static void mutate_signals(struct mutant *m, struct task *t)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < t->signal_count; i++) {
        if (in_group(m, t->signals[i].flag))
            m->hits++;
        else
            t->signals[kept++] = t->signals[i];
    }
    t->signal_count = kept;
}

static void shift(struct mutant *m, struct operand *o, uint64_t rows)
{
    const struct buffer *b = &m->inner.buffers[o->buffer];
    uint64_t row = o->offset / b->cols;

    if (o->buffer != m->buffer || rows == 0)
        return;
    if (row > 0)
        o->offset -= b->cols;
    else if (row + rows < b->rows)
        o->offset += b->cols;
    else
        return;
    m->hits++;
}

/* Keys (segments lie behind `a`), queries, and what the tile's chain hands on. */
static void shift_attention(struct mutant *m, struct task *t)
{
    if (t->a.buffer == m->buffer) {
        t->a.offset += m->inner.buffers[t->a.buffer].cols;
        m->hits++;
    }
    shift(m, &t->attention.q, t->m);
    if (t->addend_count)
        shift(m, &t->addend, t->m);
    if (t->addend_count || t->attention.leaves)
        shift(m, &t->attention.lse, t->m);
}

/* The other of the pair that a task forms with its neighbour in the queue; false: it has none of its kind. */
static bool neighbour(const struct mutant *m, uint32_t rank, uint32_t queue, uint64_t index, const struct task *t,
                      struct task *out)
{
    if ((index ^ 1) >= program_queue_length(&m->inner, rank, queue))
        return false;
    program_task(&m->inner, rank, queue, index ^ 1, out);
    return out->op == t->op && out->m == t->m && out->n == t->n && out->out_count == t->out_count &&
           out->signal_count == t->signal_count;
}

static void swap_signals(struct mutant *m, struct task *t, const struct task *other)
{
    for (uint32_t i = 0; t->op == OP_PUT && t->n > 0 && i < t->signal_count; i++) {
        const struct signal *s = &other->signals[i];

        if (s->rank != t->signals[i].rank || s->flag == t->signals[i].flag || !in_group(m, s->flag))
            continue;
        t->signals[i] = *s;
        m->hits++;
    }
}

static void swap_targets(struct mutant *m, struct task *t, const struct task *other)
{
    for (uint32_t i = 0; t->n > 0 && i < t->out_count; i++) {
        const struct operand *o = &other->out[i];

        if (o->buffer != m->buffer || o->buffer != t->out[i].buffer || o->rank != t->out[i].rank ||
            o->offset == t->out[i].offset)
            continue;
        t->out[i] = *o;
        m->hits++;
    }
}

static void mutant_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *t)
{
    struct mutant *m = p->state;
    struct task other;

    program_task(&m->inner, rank, queue, index, t);
    if (queue != m->queue)
        return;
    if ((m->mutation == EARLY_SIGNAL || m->mutation == SWAP_TARGETS) && neighbour(m, rank, queue, index, t, &other)) {
        if (m->mutation == EARLY_SIGNAL)
            swap_signals(m, t, &other);
        else
            swap_targets(m, t, &other);
        return;
    }
    if (m->mutation == DROP_WAIT || m->mutation == HALVE_WAIT || m->mutation == EARLY_REUSE)
        mutate_waits(m, t);
    else if (m->mutation == DROP_SIGNAL)
        mutate_signals(m, t);
    else if (m->mutation == SHIFT_SOURCE && (t->op == OP_COPY || t->op == OP_PUT))
        shift(m, &t->a, t->m);
    else if (m->mutation == SHIFT_SOURCE && t->op == OP_REDUCE)
        shift(m, &t->addend, t->m);
    else if (m->mutation == SHIFT_SOURCE && t->op == OP_GEMM)
        shift(m, &t->a, t->m);
    else if (m->mutation == SHIFT_SOURCE && t->op == OP_ATTENTION)
        shift_attention(m, t);
    else if (m->mutation == SHIFT_TARGET)
        for (uint32_t i = 0; i < t->out_count; i++)
            shift(m, &t->out[i], t->m);
}

static uint64_t mutant_queue_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    return program_queue_length(&((struct mutant *)p->state)->inner, rank, queue);
}

static uint64_t mutant_flag_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    return program_flag_total(&((struct mutant *)p->state)->inner, rank, flag);
}

static uint32_t mutant_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    return program_io(&((struct mutant *)p->state)->inner, rank, out);
}

static uint32_t mutant_table_size(const struct program *p, uint32_t rank, uint32_t table)
{
    const struct program *inner = &((struct mutant *)p->state)->inner;

    return inner->ops->segment_table_size(inner, rank, table);
}

static void mutant_segment(const struct program *p, uint32_t rank, uint32_t table, uint32_t index, struct segment *out)
{
    struct mutant *m = p->state;

    m->inner.ops->segment(&m->inner, rank, table, index, out);
    if (m->queue == 0 && in_group(m, out->wait.flag)) {
        if (m->mutation == DROP_WAIT && out->wait.count) {
            out->wait.count = 0;
            m->hits++;
        }
        if (m->mutation == HALVE_WAIT && out->wait.count > 1) {
            out->wait.count /= 2;
            m->hits++;
        }
    }
}

static const struct program_ops mutant_ops = {
    .queue_length = mutant_queue_length,
    .task = mutant_task,
    .flag_total = mutant_flag_total,
    .io = mutant_io,
    .segment_table_size = mutant_table_size,
    .segment = mutant_segment,
};

struct program mutant_program(struct mutant *m)
{
    struct program p = m->inner;

    p.ops = &mutant_ops;
    p.state = m;
    m->hits = 0;
    if (m->mutation == SHALLOW) {
        p.buffers[m->buffer].depth--;
        m->hits = 1;
    }
    return p;
}

/* Reads a queue's tasks, and their segments, until one is changed. */
static bool changes_queue(struct mutant *m, const struct program *p, uint32_t rank, uint32_t queue)
{
    for (uint64_t i = 0; m->hits == 0 && i < program_queue_length(p, rank, queue); i++) {
        struct segment segment;
        struct operand a, b;
        struct task t;

        program_task(p, rank, queue, i, &t);
        for (uint32_t s = 0; t.segment_table != NO_TABLE && s < program_step_count(&t); s++)
            program_step(p, rank, &t, s, &segment, &a, &b);
    }
    return m->hits > 0;
}

bool mutant_applies(struct mutant *m)
{
    struct program p;
    bool changes = false;

    if (m->mutation == SHALLOW)
        return m->inner.buffers[m->buffer].depth > 1 && m->queue == 0;
    p = mutant_program(m);
    for (uint32_t rank = 0; rank < world_ranks(p.world); rank++)
        for (uint32_t q = 0; q < p.queue_count; q++)
            if (q == m->queue || m->queue == 0) /* segments are no queue's own */
                changes = changes || changes_queue(m, &p, rank, q);
    return changes;
}

/* ---- shapes ---- */

const struct machine mutant_machine = {.gpu = {.model = "test", .sms = 32}};

/* clang-format off */
#define SHAPES_OF_WORLD(nodes, gpus, problem)                                                      \
    {{nodes, gpus}, problem, ""}, {{nodes, gpus}, problem, "depth=1"},                             \
        {{nodes, gpus}, problem, "panels=2"}, {{nodes, gpus}, problem, "inter=direct"},            \
        {{nodes, gpus}, problem, "inter=ring"}, {{nodes, gpus}, problem, "reduce=crew"},           \
        {{nodes, gpus}, problem, "join=false"}, {{nodes, gpus}, problem, "split=1"},               \
        {{nodes, gpus}, problem, "layout=zigzag"}, {{nodes, gpus}, problem, "rows=in_place"}

/* A kernel reads the members of its family. */
#define USUAL                                                                                      \
    {.m = 96, .n = 40, .k = 130,                                                                   \
     .attention = {.seq = 99, .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 64},               \
     .moe = {.tokens = 24, .hidden = 130, .inter = 40, .experts = 11, .top_k = 3, .capacity = 1e3}}
#define EMPTY /* most ranks have no rows */                                                        \
    {.m = 1, .n = 40, .k = 130,                                                                    \
     .attention = {.seq = 7, .batch = 2, .heads = 1, .kv_heads = 1, .head_dim = 64, .causal = true}, \
     .moe = {.tokens = 1, .hidden = 130, .inter = 40, .experts = 11, .top_k = 3, .capacity = 1e3}}
/* clang-format on */

const struct mutant_shape mutant_shapes[] = {
    SHAPES_OF_WORLD(1, 3, USUAL), SHAPES_OF_WORLD(3, 1, USUAL), SHAPES_OF_WORLD(3, 2, USUAL),
    SHAPES_OF_WORLD(1, 3, EMPTY), SHAPES_OF_WORLD(3, 1, EMPTY), SHAPES_OF_WORLD(3, 2, EMPTY),
};
const int mutant_shape_count = sizeof mutant_shapes / sizeof *mutant_shapes;

/* False: the kernel has no such key or value. */
static bool set_option(const struct kernel *k, void *params, const char *key, const char *value)
{
    const struct option *o = option_find(k->options, key);
    char why[256];

    return o && option_parse(o, params, value, NULL, why, sizeof why) == ST_OK;
}

static bool fill_params(const struct kernel *k, const char *setting, void *params)
{
    char key[64], *value;

    option_defaults(k->options, params);
    set_option(k, params, "tile_m", "8"); /* those of them that the kernel has */
    set_option(k, params, "tile_n", "16");
    set_option(k, params, "chunk", "512B");
    set_option(k, params, "combine_rows", "2");
    set_option(k, params, "gather_rows", "5");
    snprintf(key, sizeof key, "%s", setting);
    value = strchr(key, '=');
    if (!value)
        return true;
    *value++ = '\0';
    return set_option(k, params, key, value);
}

bool mutant_shape_emit(const struct kernel *k, enum form form, const struct mutant_shape *shape,
                       const struct machine *machine, struct program *p)
{
    void *params = calloc(1, k->params_size);
    struct complaint complaint;
    bool filled;

    assert(params);
    filled = fill_params(k, shape->setting, params);
    if (filled) {
        enum status st = k->emit(&shape->problem, shape->world, machine, form, params, p, &complaint);

        assert(st == ST_OK);
        (void)st;
    }
    free(params);
    return filled;
}
