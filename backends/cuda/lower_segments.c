/* Segment tables, as tasks walk them. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "backends/cuda/lower_task.h"

struct walk {
    uint32_t rank, table, first, count;
    uint32_t segments; /* where it stands */
};

static enum status write_segments(struct lowering *l)
{
    const struct task *t = l->task;

    for (uint32_t i = 0; i < t->segment_count; i++) {
        struct segment s;
        struct operand a, b;
        struct gpu_segment g = {0};

        program_step(l->out->program, l->rank, t, i, &s, &a, &b);
        if (s.k >= UINT32_MAX)
            return lower_refuse(l, "a segment of k = %" PRIu64 " is more than 32 bits hold", s.k);
        g.k = (uint32_t)s.k;
        g.a_add = s.a_offset;
        g.b_add = s.b_offset;
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
    struct walk w = {l->rank, t->segment_table, t->segment_first, t->segment_count,
                     (uint32_t)out->segments.count};

    if (t->segment_table == NO_TABLE)
        return ST_OK;
    l->word.segment_count = t->segment_count;
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
