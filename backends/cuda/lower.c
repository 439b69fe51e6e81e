#include "backends/cuda/lower.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/lower_task.h"

enum status lower_refuse(struct lowering *l, const char *format, ...)
{
    struct lowered *out = l->out;
    va_list args;
    int used = snprintf(out->why, sizeof out->why, "cuda: rank %" PRIu32 " queue %s %s #%" PRIu64 ": ", l->rank,
                        out->program->queues[l->queue].name, op_name(l->task->op), l->index);

    va_start(args, format);
    vsnprintf(out->why + used, sizeof out->why - (size_t)used, format, args);
    va_end(args);
    return ST_INPUT;
}

enum status lower_out_of_memory(struct lowered *out)
{
    snprintf(out->why, sizeof out->why, "cuda: no memory for the program's tables");
    return ST_MEMORY;
}

/* ---- tasks ---- */

static uint32_t total_blocks(const struct lowering *l)
{
    uint64_t blocks = 0;

    for (uint32_t i = 0; i < program_step_count(l->task); i++) {
        struct segment s;
        struct operand ignored;

        program_step(l->out->program, l->rank, l->task, i, &s, &ignored, &ignored);
        blocks += ceil_div(s.k, GPU_TILE_K);
    }
    return (uint32_t)blocks;
}

static enum status lower_gemm(struct lowering *l)
{
    const struct task *t = l->task;
    struct gpu_matrix a = {.view = NO_VIEW, .col = (uint32_t)t->k}, b;
    uint64_t sums = step_extent_b(t, &(struct segment){.k = t->k}).rows;

    if (t->m > GPU_TILE_M || sums > GPU_TILE_N)
        return lower_refuse(l, "a tile of %" PRIu64 " x %" PRIu64 ", this backend's are at most %d x %d", t->m, sums,
                            GPU_TILE_M, GPU_TILE_N);
    l->word.epilogue = t->epilogue;
    l->out->activated += t->epilogue != EPILOGUE_NONE;
    TRY(t->by_index ? lower_check_index(l) : lower_place(l, &t->a, t->a.rank, 0, &a));
    TRY(lower_place(l, &t->b, t->b.rank, 0, &b));
    l->word.kind = (uint8_t)lower_gemm_kind(l, &a, &b);
    l->word.a_view = a.view;
    l->word.a_row = a.row;
    l->word.a_col = a.col;
    l->word.b_view = b.view;
    l->word.b_row = b.row;
    l->word.b_col = b.col;
    if (l->word.kind != GPU_GEMM_PLAIN)
        l->word.k = total_blocks(l);
    return lower_segments(l);
}

static enum status lower_move(struct lowering *l)
{
    struct gpu_matrix a = {0};

    l->word.kind = (uint8_t)lower_move_kind(l);
    if (l->task->op == OP_COPY)
        TRY(lower_place(l, &l->task->a, l->task->a.rank, 0, &a));
    l->word.a_view = a.view;
    l->word.a_row = a.row;
    l->word.a_col = a.col;
    return ST_OK;
}

static enum status lower_put(struct lowering *l)
{
    struct gpu_table *puts = &l->out->puts[l->rank];

    if (l->task->m > UINT32_MAX)
        return lower_refuse(l, "extents beyond 32 bits");
    l->word.kind = GPU_PUT;
    l->word.k = (uint32_t)puts->count;
    if (!gpu_table_add(puts, sizeof(struct task), l->task))
        return lower_out_of_memory(l->out);
    l->out->put_count++;
    return ST_OK;
}

static enum status lower_op(struct lowering *l)
{
    const struct task *t = l->task;

    if (t->op == OP_PUT)
        return lower_put(l);
    if (t->op == OP_ROUTE)
        return lower_route(l);
    if (t->op == OP_NOP || t->m == 0 || t->n == 0) {
        l->word.kind = GPU_SIGNAL;
        return ST_OK;
    }
    if (t->m > UINT32_MAX || t->n > UINT32_MAX / 4 || t->k > UINT32_MAX)
        return lower_refuse(l, "extents beyond 32 bits");
    if (t->op == OP_ATTENTION)
        return lower_attention(l);
    if (task_indexes(t) && t->op != OP_GEMM)
        return lower_indexed(l);
    return t->op == OP_GEMM ? lower_gemm(l) : lower_move(l);
}

static bool without_gaps(const struct task *t)
{
    bool all = t->a.ld == t->n;

    for (uint32_t i = 0; i < t->out_count; i++)
        all = all && t->out[i].ld == t->n;
    return all && t->m * t->n < UINT32_MAX / 4;
}

/* Rows without gaps are one long row, if all of them are there.  A copy to nobody but itself is
 * nothing; one to more targets than the loader remembers goes the plain way. */
static void settle_copy(struct lowering *l)
{
    if (l->word.kind == GPU_COPY && l->word.select == SELECT_ALL && without_gaps(l->task)) {
        l->word.n *= l->word.m;
        l->word.m = 1;
    }
    if (l->word.kind == GPU_COPY && l->word.targets == 0)
        l->word.kind = GPU_SIGNAL;
    if (l->word.kind == GPU_COPY && l->word.targets > GPU_COPY_TARGETS_MAX)
        l->word.kind = GPU_COPY_PLAIN;
}

static enum status lower_task(struct lowered *out, uint32_t rank, uint32_t queue, uint64_t index)
{
    struct task task = {0};
    struct lowering l = {.out = out, .task = &task, .rank = rank, .queue = queue, .index = index};

    program_task(out->program, rank, queue, index, &task);
    l.word = (struct gpu_task){.queue = (uint8_t)queue,
                               .index = (uint32_t)index,
                               .m = (uint32_t)task.m,
                               .n = (uint32_t)task.n,
                               .k = (uint32_t)task.k};
    TRY(lower_op(&l));
    l.word.links = (uint32_t)out->links.count;
    TRY(lower_waits(&l));
    if (l.word.kind != GPU_PUT && l.word.kind != GPU_SIGNAL) {
        TRY(lower_targets(&l));
        TRY(lower_addends(&l));
    }
    if (l.word.kind != GPU_PUT)
        TRY(lower_signals(&l));
    TRY(lower_dynamic(&l));
    settle_copy(&l);
    out->kinds[l.word.kind]++;
    ADD(out, tasks, struct gpu_task, &l.word);
    return ST_OK;
}

/* ---- the program ---- */

/* Which flags are raised in some way: by rank * flag_count + flag. */
struct marks {
    const struct program *program;
    const struct placement *ranks;
    uint8_t *raised;
};

typedef void mark_fn(const struct marks *m, uint32_t rank, const struct task *t);

static void mark_put(const struct marks *m, uint32_t rank, const struct task *t)
{
    for (uint32_t i = 0; t->op == OP_PUT && i < t->signal_count; i++)
        m->raised[(uint64_t)t->signals[i].rank * m->program->flag_count + t->signals[i].flag] =
            t->signals[i].rank == rank ? LOWERED_BY_COMPLETION : LOWERED_BY_ARRIVAL;
}

static void mark_far(const struct marks *m, uint32_t rank, const struct task *t)
{
    for (uint32_t i = 0; t->op != OP_PUT && i < t->signal_count; i++) {
        uint32_t first, count = program_target_ranks(m->program, rank, t->signals[i].rank, &first);

        for (uint32_t to = first; to < first + count; to++)
            if (m->ranks[to].device != m->ranks[rank].device)
                m->raised[(uint64_t)to * m->program->flag_count + t->signals[i].flag] = 1;
    }
}

/* NULL: out of memory. */
static uint8_t *find_flags(const struct lowered *out, mark_fn *mark)
{
    const struct program *p = out->program;
    uint32_t ranks = world_ranks(p->world);
    struct marks m = {p, out->ranks, calloc((uint64_t)ranks * p->flag_count + 1, 1)};

    for (uint32_t rank = 0; m.raised && rank < ranks; rank++)
        for (uint32_t q = 0; q < p->queue_count; q++)
            for (uint64_t i = 0; i < program_queue_length(p, rank, q); i++) {
                struct task t = {0};

                program_task(p, rank, q, i, &t);
                mark(&m, rank, &t);
            }
    return m.raised;
}

static bool devices_differ(const struct lowered *out)
{
    const struct placement *first = NULL;
    bool differ = false;

    for (uint32_t i = 0; i < world_ranks(out->program->world); i++) {
        const struct placement *here = out->ranks[i].window ? &out->ranks[i] : NULL;

        first = first ? first : here;
        differ = differ || (here && here->device != first->device);
    }
    return differ;
}

static enum status find_raised(struct lowered *out)
{
    bool nodes = out->program->world.nodes > 1, devices = devices_differ(out);

    if (nodes)
        out->put_raised = find_flags(out, mark_put);
    if (devices)
        out->far_raised = find_flags(out, mark_far);
    return (nodes && !out->put_raised) || (devices && !out->far_raised) ? lower_out_of_memory(out) : ST_OK;
}

static bool attends(const struct lowered *out, uint32_t rank, uint32_t queue)
{
    for (uint64_t i = 0; i < program_queue_length(out->program, rank, queue); i++) {
        struct task t = {0};

        program_task(out->program, rank, queue, i, &t);
        if (t.op == OP_ATTENTION)
            return true;
    }
    return false;
}

static enum status lower_queue(struct lowered *out, uint32_t rank, uint32_t queue)
{
    uint64_t length = program_queue_length(out->program, rank, queue);

    out->queue_first[rank * out->program->queue_count + queue] = out->tasks.count;
    for (uint64_t i = 0; i < length; i++)
        TRY(lower_task(out, rank, queue, i));
    return ST_OK;
}

unsigned lowered_needs(const struct lowered *l)
{
    static const enum gpu_kind dynamic[] = {GPU_ROUTE, GPU_GATHER, GPU_GATHER_PLAIN, GPU_COMBINE, GPU_COMBINE_PLAIN};
    uint64_t others = l->activated + l->by_index;

    for (uint32_t i = 0; i < sizeof dynamic / sizeof *dynamic; i++)
        others += l->kinds[dynamic[i]];
    return (l->attends ? GPU_NEEDS_ATTENTION : 0) | (others ? GPU_NEEDS_DYNAMIC : 0);
}

/* A task's links end where the next one's begin. */
static uint32_t link_count(const struct lowered *l, uint64_t task)
{
    const struct gpu_task *t = (const struct gpu_task *)l->tasks.items + task;

    return (uint32_t)(task + 1 < l->tasks.count ? t[1].links : l->links.count) - t->links;
}

uint32_t lowered_links_per_task(const struct lowered *l, uint64_t first, uint64_t count)
{
    uint32_t each = count > 0 ? link_count(l, first) : 0;

    for (uint64_t i = 1; i < count; i++)
        if (link_count(l, first + i) != each)
            return 0;
    return each;
}

enum status lower_program(const struct program *p, const struct placement *ranks, struct lowered *out)
{
    uint32_t count = world_ranks(p->world);

    memset(out, 0, sizeof *out);
    out->program = p;
    out->ranks = ranks;
    out->first_view = malloc((uint64_t)count * p->buffer_count * sizeof *out->first_view + 1);
    out->queue_first = calloc((uint64_t)count * p->queue_count + 1, sizeof *out->queue_first);
    out->puts = calloc(count, sizeof *out->puts);
    if (!out->first_view || !out->queue_first || !out->puts)
        return lower_out_of_memory(out);
    TRY(find_raised(out));
    for (uint32_t i = 0; i < count * p->buffer_count; i++)
        out->first_view[i] = NO_VIEW;
    for (uint32_t rank = 0; rank < count; rank++)
        for (uint32_t q = 0; ranks[rank].window && q < p->queue_count && !out->attends; q++)
            out->attends = attends(out, rank, q);
    for (uint32_t rank = 0; rank < count; rank++)
        for (uint32_t q = 0; ranks[rank].window && q < p->queue_count; q++)
            TRY(lower_queue(out, rank, q));
    return ST_OK;
}

void lowered_free(struct lowered *l)
{
    struct gpu_table *tables[] = {&l->tasks, &l->links, &l->segments,  &l->views,
                                  &l->maps,  &l->walks, &l->view_next, &l->routes};

    for (uint32_t i = 0; i < sizeof tables / sizeof *tables; i++)
        free(tables[i]->items);
    for (uint32_t i = 0; l->puts && i < world_ranks(l->program->world); i++)
        free(l->puts[i].items);
    free(l->puts);
    free(l->first_view);
    free(l->queue_first);
    free(l->put_raised);
    free(l->far_raised);
    memset(l, 0, sizeof *l);
}
