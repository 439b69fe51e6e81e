#include "backends/ops/element.h"

#include <assert.h>

#include "core/bf16.h"

struct matrix matrix_locate(const struct memory *m, uint32_t owner, uint64_t epoch, const struct operand *o,
                            uint64_t rows, uint64_t cols)
{
    const struct buffer *b = &m->program->buffers[o->buffer];
    uint64_t elements = buffer_elements(b);

    assert(o->buffer < m->program->buffer_count && owner < world_ranks(m->program->world));
    if (rows > 0 && cols > 0) {
        assert(o->offset <= elements && cols <= elements - o->offset);
        assert(rows == 1 || (o->ld >= cols && (elements - o->offset - cols) / o->ld >= rows - 1));
    }
    return (struct matrix){
        .dtype = b->dtype,
        .base =
            m->windows[owner] + program_buffer_offset(m->program, o->buffer, epoch) + o->offset * dtype_bytes(b->dtype),
        .ld = o->ld,
    };
}

uint8_t *matrix_row(const struct matrix *x, uint64_t row)
{
    return x->base + row * x->ld * dtype_bytes(x->dtype);
}

void matrix_load_row(const struct matrix *x, uint64_t row, uint64_t col, uint64_t count, float *out)
{
    const void *at = matrix_row(x, row);

    if (x->dtype == DTYPE_BF16)
        for (uint64_t i = 0; i < count; i++)
            out[i] = f32_from_bf16(((const uint16_t *)at)[col + i]);
    else
        for (uint64_t i = 0; i < count; i++)
            out[i] = ((const float *)at)[col + i];
}

void matrix_add_row(const struct matrix *x, uint64_t row, uint64_t col, uint64_t count, float *sum)
{
    const void *at = matrix_row(x, row);

    if (x->dtype == DTYPE_BF16)
        for (uint64_t i = 0; i < count; i++)
            sum[i] += f32_from_bf16(((const uint16_t *)at)[col + i]);
    else
        for (uint64_t i = 0; i < count; i++)
            sum[i] += ((const float *)at)[col + i];
}

void matrix_store_row(const struct matrix *x, uint64_t row, uint64_t col, uint64_t count, const float *values)
{
    void *at = matrix_row(x, row);

    if (x->dtype == DTYPE_BF16)
        for (uint64_t i = 0; i < count; i++)
            ((uint16_t *)at)[col + i] = bf16_from_f32(values[i]);
    else
        for (uint64_t i = 0; i < count; i++)
            ((float *)at)[col + i] = values[i];
}
