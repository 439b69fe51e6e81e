/* What happens around an epoch: inputs in, outputs compared, poison. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/rig.h"
#include "core/bf16.h"

#define POISON_BYTE 0xff /* all bits set is a NaN in either type */

/* Where everything is checked, with the poison of core/check.h, by way of the mirror. */
enum status rig_poison(struct rig *r)
{
    uint64_t bytes = program_window_bytes(r->program);

    if (r->job->data)
        check_poison(r->job, r->mirror);
    for (uint32_t i = 0; i < r->rank_count; i++) {
        uint8_t *window = r->ranks[i].window;

        TRY_CUDA(r, cudaSetDevice(r->ranks[i].device->index));
        if (r->job->data)
            TRY_CUDA(r, cudaMemcpy(window, r->mirror, bytes, cudaMemcpyHostToDevice));
        else
            TRY_CUDA(r, cudaMemset(window, POISON_BYTE, bytes));
        TRY_CUDA(r, cudaDeviceSynchronize()); /* the program's stream waits for no other */
    }
    return ST_OK;
}

static uint64_t slice_offset(const struct rig *r, const struct io_slice *io, uint64_t epoch)
{
    const struct buffer *b = &r->program->buffers[io->buffer];

    return program_buffer_offset(r->program, io->buffer, epoch) + io->row * b->cols * dtype_bytes(b->dtype);
}

static uint64_t slice_bytes(const struct rig *r, const struct io_slice *io)
{
    const struct buffer *b = &r->program->buffers[io->buffer];

    return io->rows * b->cols * dtype_bytes(b->dtype);
}

/* ---- begin ---- */

static enum status write_slice(struct rig *r, struct rig_rank *rank, const struct io_slice *io, uint64_t epoch,
                               bool noise)
{
    const struct job *job = r->job;
    const struct buffer *b = &r->program->buffers[io->buffer];
    struct gpu_input in = {
        .address = (uintptr_t)rank->window + program_buffer_offset(r->program, io->buffer, epoch) +
                   io->row * b->cols * dtype_bytes(b->dtype),
        .ld = b->cols,
        .rows = io->rows,
        .cols = io->cols,
        .seed = job->seed,
        .epoch = epoch,
        .depth = noise ? 0 : job->kernel->global(job->problem, r->program->world).k,
        .tensor_row = io->tensor_row,
        .tensor_col = io->tensor_col,
        .tensor = io->tensor,
        .is_f32 = b->dtype == DTYPE_F32,
        .spread = 1,
    };

    TRY_CUDA(r, gpu_write_input(&in, rank->device->stream));
    return ST_OK;
}

/* What the host writes, by way of the mirror: control buffers, which are real always, and inputs that
 * the kernel makes itself. */
static enum status copy_slice(struct rig *r, struct rig_rank *rank, const struct io_slice *io, uint64_t epoch)
{
    uint64_t at = slice_offset(r, io, epoch);

    TRY_CUDA(r, cudaMemcpyAsync(rank->window + at, r->mirror + at, slice_bytes(r, io), cudaMemcpyHostToDevice,
                                rank->device->stream));
    return ST_OK;
}

static enum status write_rank(struct rig *r, struct rig_rank *rank, uint64_t epoch, bool noise)
{
    struct io_slice io[PROGRAM_IO_MAX];
    uint32_t count = program_io(r->program, rank->index, io);
    bool host = !noise && r->job->kernel->bounded;

    if (host)
        check_write_inputs(r->job, rank->index, epoch, r->mirror);
    else
        check_write_control(r->job, rank->index, epoch, r->mirror);
    for (uint32_t s = 0; s < count; s++)
        if (io[s].role == IO_INPUT && io[s].rows > 0)
            TRY(host || buffer_is_control(&r->program->buffers[io[s].buffer])
                    ? copy_slice(r, rank, &io[s], epoch)
                    : write_slice(r, rank, &io[s], epoch, noise));
    return ST_OK;
}

enum status rig_begin(struct rig *r, uint64_t epoch, bool noise)
{
    for (uint32_t i = 0; i < r->rank_count; i++) {
        TRY_CUDA(r, cudaSetDevice(r->ranks[i].device->index));
        TRY(write_rank(r, &r->ranks[i], epoch, noise));
    }
    return r->prepare ? r->prepare(r, epoch) : ST_OK;
}

/* ---- end: every element, by way of a mirror of the window ---- */

/* There and back: check_outputs() leaves poison behind. */
static enum status check_all(struct rig *r, struct rig_rank *rank, uint64_t epoch)
{
    struct io_slice io[PROGRAM_IO_MAX];
    uint32_t count = program_io(r->program, rank->index, io);

    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t s = 0; s < count; s++) {
            uint64_t at = slice_offset(r, &io[s], epoch);
            uint8_t *here = r->mirror + at, *there = rank->window + at;

            if (io[s].role == IO_OUTPUT)
                TRY_CUDA(r, cudaMemcpy(pass ? there : here, pass ? here : there, slice_bytes(r, &io[s]),
                                       pass ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost));
        }
        if (pass == 0)
            check_outputs(r->job, rank->index, epoch, r->mirror, &r->check);
    }
    return ST_OK;
}

/* ---- end: a sample of blocks, where all would take too long ---- */

#define SAMPLE_BLOCKS 8
#define SAMPLE_ROWS 4
#define SAMPLE_COLS 64

static float element(enum dtype dtype, const void *at, uint64_t i)
{
    if (dtype == DTYPE_BF16)
        return f32_from_bits((uint32_t)((const uint16_t *)at)[i] << 16);
    return ((const float *)at)[i];
}

/* Exact values are right within 0; where nothing may have been written a NaN is expected. */
static void expect_block(const struct rig *r, const struct io_slice *io, uint64_t epoch, uint64_t row, uint64_t rows,
                         uint64_t col, uint64_t cols, struct expected *out)
{
    const struct kernel *k = r->job->kernel;
    struct problem global = k->global(r->job->problem, r->program->world);
    int16_t exact[SAMPLE_ROWS * SAMPLE_COLS];

    row += io->tensor_row;
    col += io->tensor_col;
    if (k->bounded) {
        k->bounded->expected(&global, r->job->seed, epoch, row, rows, col, cols, out);
        return;
    }
    k->reference(&global, r->job->seed, epoch, row, rows, col, cols, exact);
    for (uint64_t i = 0; i < rows * cols; i++)
        out[i] = (struct expected){.value = exact[i] == CHECK_UNWRITTEN ? NAN : exact[i]};
}

static bool is_right(float value, const struct expected *want)
{
    return isnan(want->value) ? isnan(value) : fabsf(value - want->value) <= want->tolerance;
}

/* Block (row, col) of the slice. */
static enum status check_block(struct rig *r, struct rig_rank *rank, const struct io_slice *io, uint64_t epoch,
                               uint64_t row, uint64_t col)
{
    const struct buffer *b = &r->program->buffers[io->buffer];
    uint64_t rows = min_u64(SAMPLE_ROWS, io->rows - row), cols = min_u64(SAMPLE_COLS, io->cols - col);
    uint64_t bytes = dtype_bytes(b->dtype);
    struct expected want[SAMPLE_ROWS * SAMPLE_COLS];
    float got[SAMPLE_ROWS * SAMPLE_COLS];

    TRY_CUDA(r,
             cudaMemcpy2D(got, cols * bytes, rank->window + slice_offset(r, io, epoch) + (row * b->cols + col) * bytes,
                          b->cols * bytes, cols * bytes, rows, cudaMemcpyDeviceToHost));
    expect_block(r, io, epoch, row, rows, col, cols, want);
    for (uint64_t i = 0; i < rows * cols; i++) {
        float value = element(b->dtype, got, i);

        if (is_right(value, &want[i]))
            continue;
        if (r->check.wrong++ == 0)
            snprintf(r->check.first, sizeof r->check.first,
                     "rank %u, epoch %llu: %s[%llu, %llu] is %g and should be %g", rank->index,
                     (unsigned long long)epoch, b->name, (unsigned long long)(io->row + row + i / cols),
                     (unsigned long long)(col + i % cols), (double)value, (double)want[i].value);
    }
    r->check.checked += rows * cols;
    return ST_OK;
}

static enum status poison_outputs(struct rig *r, struct rig_rank *rank, uint64_t epoch)
{
    struct io_slice io[PROGRAM_IO_MAX];
    uint32_t count = program_io(r->program, rank->index, io);

    for (uint32_t s = 0; s < count; s++)
        if (io[s].role == IO_OUTPUT)
            TRY_CUDA(r, cudaMemset(rank->window + slice_offset(r, &io[s], epoch), POISON_BYTE, slice_bytes(r, &io[s])));
    return ST_OK;
}

static enum status check_sample(struct rig *r, struct rig_rank *rank, uint64_t epoch)
{
    struct io_slice io[PROGRAM_IO_MAX];
    uint32_t count = program_io(r->program, rank->index, io);
    uint64_t random = r->job->seed + rank->index;

    for (uint32_t s = 0; s < count; s++)
        for (uint32_t i = 0; i < SAMPLE_BLOCKS && io[s].role == IO_OUTPUT && io[s].rows && io[s].cols; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
            TRY(check_block(r, rank, &io[s], epoch, (random >> 33) % io[s].rows, (random >> 13) % io[s].cols));
        }
    return poison_outputs(r, rank, epoch);
}

enum status rig_end(struct rig *r, uint64_t epoch)
{
    for (uint32_t i = 0; i < r->rank_count; i++) {
        TRY_CUDA(r, cudaSetDevice(r->ranks[i].device->index));
        TRY(r->job->data ? check_all(r, &r->ranks[i], epoch) : check_sample(r, &r->ranks[i], epoch));
        TRY_CUDA(r, cudaDeviceSynchronize());
    }
    return ST_OK;
}
