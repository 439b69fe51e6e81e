/* Views: a matrix of a rank, as operands address it, and what tensor maps it can have. */
#include <inttypes.h>

#include "backends/cuda/lower_task.h"

const struct gpu_view *lower_view(const struct lowered *out, uint32_t view)
{
    return (const struct gpu_view *)out->views.items + view;
}

uint64_t lower_copy_bytes(const struct program *p, uint32_t buffer)
{
    if (p->buffers[buffer].depth == 1)
        return 0;
    return program_buffer_offset(p, buffer, 1) - program_buffer_offset(p, buffer, 0);
}

uint64_t lower_view_rows(const struct lowered *out, uint32_t buffer, uint64_t ld)
{
    return buffer_elements(&out->program->buffers[buffer]) / ld;
}

/* What a tensor map can describe. */
static bool mappable(const struct gpu_view *v, enum dtype dtype, uint64_t rows)
{
    return (dtype == DTYPE_BF16 || dtype == DTYPE_F32) && v->base % 16 == 0 && v->ld * dtype_bytes(dtype) % 16 == 0 &&
           rows > 0 && rows < 1u << 31 && v->ld < 1u << 31 && v->copy_bytes % 16 == 0;
}

static enum status add_maps(struct lowered *out, struct gpu_view *v, enum dtype dtype, uint64_t rows)
{
    v->maps = NO_VIEW;
    if (!mappable(v, dtype, rows))
        return ST_OK;
    v->maps = (uint32_t)out->maps.count;
    for (uint32_t copy = 0; copy < v->depth; copy++)
        for (uint32_t store = 0; store < 2; store++) {
            struct view_map m = {v->base + copy * v->copy_bytes, rows, v->ld, store ? 64 : 128, v->is_wide != 0};

            ADD(out, maps, struct view_map, &m);
        }
    return ST_OK;
}

static enum status add_view(struct lowered *out, uint32_t rank, uint32_t buffer, uint64_t ld)
{
    const struct buffer *b = &out->program->buffers[buffer];
    uint32_t *head = &out->first_view[rank * out->program->buffer_count + buffer];
    struct gpu_view v = {
        .base = out->ranks[rank].window + program_buffer_offset(out->program, buffer, 0),
        .copy_bytes = lower_copy_bytes(out->program, buffer),
        .ld = ld,
        .depth = b->depth,
        .is_wide = b->dtype != DTYPE_BF16,
    };

    TRY(add_maps(out, &v, b->dtype, lower_view_rows(out, buffer, ld)));
    ADD(out, view_next, uint32_t, head);
    *head = (uint32_t)out->views.count;
    ADD(out, views, struct gpu_view, &v);
    return ST_OK;
}

static enum status find_view(struct lowered *out, uint32_t rank, uint32_t buffer, uint64_t ld, uint32_t *view_out)
{
    const uint32_t *head = &out->first_view[rank * out->program->buffer_count + buffer];

    for (uint32_t v = *head; v != NO_VIEW; v = ((const uint32_t *)out->view_next.items)[v])
        if (lower_view(out, v)->ld == ld) {
            *view_out = v;
            return ST_OK;
        }
    TRY(add_view(out, rank, buffer, ld));
    *view_out = *head;
    return ST_OK;
}

enum status lower_place(struct lowering *l, const struct operand *o, uint32_t owner, uint64_t extra,
                        struct gpu_matrix *m_out)
{
    uint64_t ld = o->ld ? o->ld : 1, offset = o->offset + extra;

    if (offset / ld >= UINT32_MAX || ld >= UINT32_MAX)
        return lower_refuse(l, "row %" PRIu64 " of a matrix with rows of %" PRIu64 " is out of reach", offset / ld, ld);
    TRY(find_view(l->out, owner, o->buffer, ld, &m_out->view));
    m_out->row = (uint32_t)(offset / ld);
    m_out->col = (uint32_t)(offset % ld);
    m_out->more = 0;
    return ST_OK;
}
