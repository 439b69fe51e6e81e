/* An attention as a task of the interpreter: what it takes of shapes and places, and which way its
 * result goes out. */
#include <inttypes.h>

#include "backends/cuda/lower_task.h"

/* One block even where no query sees a key. */
static uint32_t total_blocks(const struct lowering *l)
{
    uint64_t blocks = 0;

    for (uint32_t i = 0; i < program_step_count(l->task); i++) {
        struct segment s;
        struct operand ignored;

        program_step(l->out->program, l->rank, l->task, i, &s, &ignored, &ignored);
        blocks += ceil_div(s.k, GPU_KEYS);
    }
    return (uint32_t)max_u64(blocks, 1);
}

static enum status check_extents(struct lowering *l)
{
    const struct task *t = l->task;

    if (t->select.mode != SELECT_ALL)
        return lower_refuse(l, "an attention with a selection");
    if (t->n != 64 && t->n != 128)
        return lower_refuse(l, "heads of %" PRIu64 " elements, this backend has 64 and 128", t->n);
    if (t->m > GPU_TILE_M)
        return lower_refuse(l, "a tile of %" PRIu64 " queries, this backend's have at most %d", t->m, GPU_TILE_M);
    if (t->attention.position + t->m > INT32_MAX)
        return lower_refuse(l, "queries behind position 2^31");
    return ST_OK;
}

static bool is_f32(const struct lowering *l, const struct operand *o)
{
    return l->out->program->buffers[o->buffer].dtype == DTYPE_F32;
}

/* By tensor map. */
static enum status place_loaded(struct lowering *l, const struct operand *o, bool wide, const char *what,
                                struct gpu_matrix *m_out)
{
    const struct gpu_view *v;

    TRY(lower_place(l, o, o->rank, 0, m_out));
    v = lower_view(l->out, m_out->view);
    if (v->maps == NO_VIEW || is_f32(l, o) != wide || m_out->col + l->task->n > v->ld)
        return lower_refuse(l, "%s must be %s, in rows of whole 16 bytes", what, wide ? "f32" : "bf16");
    return ST_OK;
}

/* What ordinary accesses take: two elements at a time. */
static bool in_pairs(const struct operand *o)
{
    return o->offset % 2 == 0 && o->ld % 2 == 0;
}

static enum status check_results(struct lowering *l)
{
    const struct task *t = l->task;
    bool hands_on = t->attention.leaves || t->addend_count > 0;

    for (uint32_t i = 0; i < t->out_count; i++)
        if (!in_pairs(&t->out[i]))
            return lower_refuse(l, "a result whose rows do not start at an even element");
    if (hands_on && !is_f32(l, &t->attention.lse))
        return lower_refuse(l, "log-sum-exps must be f32");
    return ST_OK;
}

enum status lower_attention(struct lowering *l)
{
    const struct task *t = l->task;
    struct gpu_matrix keys, values;

    TRY(check_extents(l));
    TRY(check_results(l));
    TRY(place_loaded(l, &t->a, false, "keys", &keys));
    TRY(place_loaded(l, &t->b, false, "values", &values));
    l->word.kind = GPU_ATTENTION_DIRECT;
    if (lower_stores_by_map(l, false) || lower_stores_by_map(l, true))
        l->word.kind = GPU_ATTENTION;
    l->word.a_view = keys.view;
    l->word.a_row = keys.row;
    l->word.a_col = keys.col;
    l->word.b_view = values.view;
    l->word.b_row = values.row;
    l->word.b_col = values.col;
    l->word.k = total_blocks(l);
    return lower_segments(l);
}

enum status lower_attention_links(struct lowering *l)
{
    const struct task *t = l->task;
    struct gpu_matrix queries, before;

    TRY(place_loaded(l, &t->attention.q, false, "queries", &queries));
    TRY(lower_addend(l, &t->attention.q, t->attention.causal ? (uint32_t)t->attention.position : GPU_UNMASKED));
    if (t->attention.leaves || t->addend_count > 0)
        TRY(lower_addend(l, &t->attention.lse, t->attention.leaves));
    if (t->addend_count == 0)
        return ST_OK;
    TRY(place_loaded(l, &t->addend, true, "the result so far", &before));
    return lower_addend(l, &t->addend, 0);
}
