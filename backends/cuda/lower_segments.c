/* Segment tables, as tasks walk them. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "backends/cuda/lower_task.h"

struct walk {
    uint32_t rank, table, first, count;
    uint64_t k, a_ld, b_ld; /* of an attention: without a table; what rows are */
    uint32_t segments;      /* where it stands */
};

/* An attention moves down by whole rows. */
static enum status add_rows(struct lowering *l, const struct segment *s, struct gpu_segment *g)
{
    const struct task *t = l->task;

    if (s->a_offset % t->a.ld != 0 || s->b_offset % t->b.ld != 0 || s->position > INT32_MAX)
        return lower_refuse(l, "a segment that does not start at the head of a row, or is behind "
                               "position 2^31");
    g->position = (uint32_t)s->position;
    g->a_add = s->a_offset / t->a.ld;
    g->b_add = s->b_offset / t->b.ld;
    return ST_OK;
}

/* Tasks that share a walk have masks of their own: here every segment is whole. */
static enum status write_segments(struct lowering *l)
{
    struct task whole = *l->task;

    whole.attention.causal = false;
    for (uint32_t i = 0; i < program_step_count(&whole); i++) {
        struct segment s;
        struct operand a, b;
        struct gpu_segment g = {0};

        program_step(l->out->program, l->rank, &whole, i, &s, &a, &b);
        if (s.k >= UINT32_MAX)
            return lower_refuse(l, "a segment of k = %" PRIu64 " is more than 32 bits hold", s.k);
        g.k = (uint32_t)s.k;
        g.a_add = s.a_offset;
        g.b_add = s.b_offset;
        if (whole.op == OP_ATTENTION)
            TRY(add_rows(l, &s, &g));
        TRY(lower_wait(l, &s.wait, &g.wait));
        ADD(l->out, segments, struct gpu_segment, &g);
    }
    return ST_OK;
}

/* Tasks of one row of tiles walk alike, and mostly follow each other: the latest walks are looked
 * at. */
#define WALKS_SEARCHED 256

enum status lower_segments(struct lowering *l)
{
    const struct task *t = l->task;
    struct lowered *out = l->out;
    struct walk w = {.rank = l->rank,
                     .table = t->segment_table,
                     .first = t->segment_first,
                     .count = t->segment_count,
                     .segments = (uint32_t)out->segments.count};

    if (t->op == OP_ATTENTION) {
        w.k = t->k;
        w.a_ld = t->a.ld;
        w.b_ld = t->b.ld;
    }
    if (t->segment_table == NO_TABLE && t->op != OP_ATTENTION)
        return ST_OK;
    l->word.segment_count = program_step_count(t);
    for (size_t i = out->walks.count; i > 0 && i + WALKS_SEARCHED > out->walks.count; i--) {
        const struct walk *known = (const struct walk *)out->walks.items + i - 1;

        if (memcmp(known, &w, offsetof(struct walk, segments)) == 0) {
            l->word.segments = known->segments;
            return ST_OK;
        }
    }
    l->word.segments = w.segments;
    ADD(out, walks, struct walk, &w);
    return write_segments(l);
}
