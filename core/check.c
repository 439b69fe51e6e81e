#include "core/check.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bf16.h"
#include "core/input_hash.h"

/* ---- the generator ---- */

void tensor_row(uint64_t seed, uint64_t epoch, uint32_t tensor, uint64_t depth, uint64_t row, uint64_t col,
                uint64_t count, int8_t *out)
{
    uint64_t key = input_row_key(input_tensor_key(seed, epoch, tensor), row);
    uint32_t threshold = input_threshold(depth);

    for (uint64_t i = 0; i < count;) {
        uint32_t lane = (uint32_t)((col + i) % INPUT_LANES);
        uint64_t hash = input_hash(key, (col + i) / INPUT_LANES);

        for (; lane < INPUT_LANES && i < count; lane++)
            out[i++] = (int8_t)input_value(input_lane(hash, lane), threshold);
    }
}

int tensor_value(uint64_t seed, uint64_t epoch, uint32_t tensor, uint64_t depth, uint64_t row, uint64_t col)
{
    int8_t value;

    tensor_row(seed, epoch, tensor, depth, row, col, 1, &value);
    return value;
}

/* ---- window elements ---- */

#define POISON_BF16 0x7fed
#define POISON_F32 0x7feddeadu /* both quiet NaNs that no arithmetic makes */
#define POISON_I32 INT32_MIN   /* neither a count nor an index */

static uint8_t *buffer_copy(const struct job *job, uint32_t buffer, uint64_t epoch, void *window)
{
    return (uint8_t *)window + program_buffer_offset(job->program, buffer, epoch);
}

static void poison(enum dtype dtype, void *at, uint64_t elements)
{
    if (dtype == DTYPE_I32) {
        for (uint64_t i = 0; i < elements; i++)
            ((int32_t *)at)[i] = POISON_I32;
        return;
    }
    if (dtype == DTYPE_BF16)
        for (uint64_t i = 0; i < elements; i++)
            ((uint16_t *)at)[i] = POISON_BF16;
    else
        for (uint64_t i = 0; i < elements; i++)
            ((float *)at)[i] = f32_from_bits(POISON_F32);
}

/* As f32 bits, which say all of a bf16 too. */
static uint32_t element_bits(enum dtype dtype, const void *at, uint64_t i)
{
    if (dtype == DTYPE_BF16)
        return (uint32_t)((const uint16_t *)at)[i] << 16;
    return f32_bits(((const float *)at)[i]);
}

static void store_values(enum dtype dtype, void *at, uint64_t first, const int8_t *values, uint64_t count)
{
    if (dtype == DTYPE_BF16)
        for (uint64_t i = 0; i < count; i++)
            ((uint16_t *)at)[first + i] = bf16_from_f32(values[i]);
    else
        for (uint64_t i = 0; i < count; i++)
            ((float *)at)[first + i] = values[i];
}

static void poison_buffers(const struct job *job, void *window, bool control_alone)
{
    const struct program *p = job->program;

    for (uint32_t i = 0; i < p->buffer_count; i++)
        if (!control_alone || buffer_is_control(&p->buffers[i]))
            poison(p->buffers[i].dtype, buffer_copy(job, i, 0, window),
                   buffer_bytes(&p->buffers[i]) / dtype_bytes(p->buffers[i].dtype));
}

void check_poison(const struct job *job, void *window)
{
    poison_buffers(job, window, false);
}

void check_poison_control(const struct job *job, void *window)
{
    poison_buffers(job, window, true);
}

/* ---- begin ---- */

#define INPUT_RUN 1024 /* elements generated at a time */

void check_write_control(const struct job *job, uint32_t rank, uint64_t epoch, void *window)
{
    struct io_slice io[PROGRAM_IO_MAX];
    uint32_t count = program_io(job->program, rank, io);

    for (uint32_t s = 0; s < count; s++) {
        const struct buffer *b = &job->program->buffers[io[s].buffer];
        int32_t *base = (int32_t *)(void *)buffer_copy(job, io[s].buffer, epoch, window);

        if (io[s].role != IO_INPUT || !buffer_is_control(b) || io[s].rows == 0)
            continue;
        assert(io[s].cols == b->cols);
        job->kernel->control(job->problem, job->seed, epoch, io[s].tensor_row, io[s].rows, base + io[s].row * b->cols);
    }
}

/* Elements of an input tensor into a buffer, by whichever generator the kernel's check has. */
static void write_run(const struct job *job, const struct problem *global, uint64_t epoch, const struct io_slice *io,
                      uint64_t row, uint64_t col, uint64_t count, void *base)
{
    const struct buffer *b = &job->program->buffers[io->buffer];
    const struct bounded_check *bounded = job->kernel->bounded;
    uint64_t first = (io->row + row) * b->cols + col;
    int8_t values[INPUT_RUN];
    float reals[INPUT_RUN];

    if (!bounded) {
        tensor_row(job->seed, epoch, io->tensor, global->k, io->tensor_row + row, io->tensor_col + col, count, values);
        store_values(b->dtype, base, first, values, count);
        return;
    }
    bounded->input(global, job->seed, epoch, io->tensor, io->tensor_row + row, io->tensor_col + col, count, reals);
    for (uint64_t i = 0; b->dtype == DTYPE_F32 && i < count; i++)
        ((float *)base)[first + i] = reals[i];
    for (uint64_t i = 0; b->dtype == DTYPE_BF16 && i < count; i++)
        ((uint16_t *)base)[first + i] = bf16_from_f32(reals[i]);
}

void check_write_inputs(const struct job *job, uint32_t rank, uint64_t epoch, void *window)
{
    struct io_slice io[PROGRAM_IO_MAX];
    uint32_t count = program_io(job->program, rank, io);
    struct problem global = job->kernel->global(job->problem, job->program->world);

    for (uint32_t s = 0; s < count; s++) {
        void *base = buffer_copy(job, io[s].buffer, epoch, window);

        if (io[s].role != IO_INPUT || buffer_is_control(&job->program->buffers[io[s].buffer]))
            continue;
        for (uint64_t i = 0; i < io[s].rows; i++)
            for (uint64_t j = 0; j < io[s].cols; j += INPUT_RUN)
                write_run(job, &global, epoch, &io[s], i, j, min_u64(INPUT_RUN, io[s].cols - j), base);
    }
    check_write_control(job, rank, epoch, window);
}

/* ---- the expected blocks ---- */

/* An AllReduce asks for the same block on every rank, so blocks are kept.  A block has one slot it
 * can stand in; ranks that share a slot wait for each other, and a slot taken by another block is
 * refilled. */
#define SLOT_COUNT 8

struct block_key {
    const struct kernel *kernel;
    struct problem global;
    uint64_t seed, epoch, row, rows, col, cols;
};

struct slot {
    pthread_mutex_t lock;
    struct block_key key;
    int16_t *values; /* [rows, cols] of the key */
    uint64_t capacity;
};

static struct slot slots[SLOT_COUNT] = {
    [0 ... SLOT_COUNT - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

static bool same_key(const struct block_key *a, const struct block_key *b)
{
    return a->kernel == b->kernel && a->global.m == b->global.m && a->global.n == b->global.n &&
           a->global.k == b->global.k &&
           (!a->kernel->family || problem_equal(a->kernel->family, &a->global, &b->global)) && a->seed == b->seed &&
           a->epoch == b->epoch && a->row == b->row && a->rows == b->rows && a->col == b->col && a->cols == b->cols;
}

/* Returns the block's slot, locked. */
static struct slot *slot_lock(const struct block_key *key)
{
    struct slot *s = &slots[input_mix(input_mix(key->row) ^ key->col) % SLOT_COUNT];
    uint64_t size = key->rows * key->cols;

    pthread_mutex_lock(&s->lock);
    if (same_key(&s->key, key))
        return s;
    if (size > s->capacity) {
        free(s->values);
        s->values = malloc(size * sizeof *s->values);
        assert(s->values); /* promised by check_memory_bytes() */
        s->capacity = size;
    }
    key->kernel->reference(&key->global, key->seed, key->epoch, key->row, key->rows, key->col, key->cols, s->values);
    s->key = *key;
    return s;
}

/* The block, and the reference's own lists: the non-zero elements of B[cols, k] at 8 bytes each
 * (10, as their number varies), and k run heads. */
static bool exact_bytes(const struct io_slice *io, uint64_t depth, uint64_t *out)
{
    uint64_t values, b, nonzeros;

    if (__builtin_mul_overflow(io->rows, io->cols * sizeof(int16_t), &values) ||
        __builtin_mul_overflow(io->cols, depth, &b) ||
        __builtin_mul_overflow(b / INPUT_LANE_ONE, input_threshold(depth) * 10, &nonzeros))
        return false;
    return !__builtin_add_overflow(values, nonzeros + b % INPUT_LANE_ONE * 10, out) &&
           !__builtin_add_overflow(*out, (depth + io->cols) * 16, out);
}

static bool slice_bytes(const struct job *job, const struct io_slice *io, uint64_t *out)
{
    struct problem global = job->kernel->global(job->problem, job->program->world);

    if (!job->kernel->bounded)
        return exact_bytes(io, global.k, out);
    return !__builtin_mul_overflow(io->rows, io->cols * sizeof(struct expected), out) &&
           !__builtin_add_overflow(*out, job->kernel->bounded->memory_bytes(&global), out);
}

uint64_t check_memory_bytes(const struct job *job)
{
    struct io_slice io[PROGRAM_IO_MAX];
    uint32_t ranks = world_ranks(job->program->world);
    uint64_t largest = 0, bytes;

    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t count = program_io(job->program, rank, io);

        for (uint32_t s = 0; s < count; s++) {
            if (io[s].role != IO_OUTPUT)
                continue;
            if (!slice_bytes(job, &io[s], &bytes))
                return UINT64_MAX;
            largest = max_u64(largest, bytes);
        }
    }
    return __builtin_mul_overflow(largest, min_u64(ranks, SLOT_COUNT), &bytes) ? UINT64_MAX : bytes;
}

/* ---- end ---- */

static bool is_poison(uint32_t bits)
{
    return bits == POISON_F32 || bits == (uint32_t)POISON_BF16 << 16;
}

static void describe_wrong(const struct buffer *b, uint32_t rank, uint64_t epoch, const struct io_slice *io, uint64_t i,
                           uint64_t j, uint32_t got, const char *want, struct check_report *report)
{
    char text[40];

    if (is_poison(got))
        snprintf(text, sizeof text, "was never written");
    else
        snprintf(text, sizeof text, "is %g", f32_from_bits(got));
    snprintf(report->first, sizeof report->first,
             "rank %" PRIu32 ", epoch %" PRIu64 ": %s[%" PRIu64 ", %" PRIu64 "] %s and should be %s", rank, epoch,
             b->name, io->row + i, j, text, want);
}

static void check_slice(const struct job *job, uint32_t rank, uint64_t epoch, const struct io_slice *io,
                        const int16_t *want, const void *base, struct check_report *report)
{
    const struct buffer *b = &job->program->buffers[io->buffer];

    for (uint64_t i = 0; i < io->rows; i++)
        for (uint64_t j = 0; j < io->cols; j++) {
            int value = want[i * io->cols + j];
            uint32_t got = element_bits(b->dtype, base, (io->row + i) * b->cols + j);

            if (value == CHECK_UNWRITTEN ? is_poison(got) : got == f32_bits((float)value))
                continue; /* exact in bf16 too: |value| <= 256 */
            if (report->wrong++ == 0) {
                char text[16];

                if (value == CHECK_UNWRITTEN)
                    snprintf(text, sizeof text, "left unwritten");
                else
                    snprintf(text, sizeof text, "%d", value);
                describe_wrong(b, rank, epoch, io, i, j, got, text, report);
            }
        }
    report->checked += io->rows * io->cols;
}

static void check_slice_within_bounds(const struct job *job, uint32_t rank, uint64_t epoch, const struct io_slice *io,
                                      const void *base, struct check_report *report)
{
    const struct buffer *b = &job->program->buffers[io->buffer];
    struct problem global = job->kernel->global(job->problem, job->program->world);
    struct expected *want = malloc(io->rows * io->cols * sizeof *want);

    assert(want); /* promised by check_memory_bytes() */
    job->kernel->bounded->expected(&global, job->seed, epoch, io->tensor_row, io->rows, io->tensor_col, io->cols, want);
    for (uint64_t i = 0; i < io->rows; i++)
        for (uint64_t j = 0; j < io->cols; j++) {
            const struct expected *e = &want[i * io->cols + j];
            uint32_t got = element_bits(b->dtype, base, (io->row + i) * b->cols + j);

            if (fabsf(f32_from_bits(got) - e->value) <= e->tolerance)
                continue;
            if (report->wrong++ == 0) {
                char text[64];

                snprintf(text, sizeof text, "%g, give or take %g", e->value, e->tolerance);
                describe_wrong(b, rank, epoch, io, i, j, got, text, report);
            }
        }
    report->checked += io->rows * io->cols;
    free(want);
}

static void check_slice_exactly(const struct job *job, uint32_t rank, struct block_key *key, const struct io_slice *io,
                                const void *base, struct check_report *report)
{
    struct slot *slot;

    key->row = io->tensor_row;
    key->rows = io->rows;
    key->col = io->tensor_col;
    key->cols = io->cols;
    slot = slot_lock(key);
    check_slice(job, rank, key->epoch, io, slot->values, base, report);
    pthread_mutex_unlock(&slot->lock);
}

void check_outputs(const struct job *job, uint32_t rank, uint64_t epoch, void *window, struct check_report *report)
{
    struct io_slice io[PROGRAM_IO_MAX];
    uint32_t count = program_io(job->program, rank, io);
    struct block_key key = {
        .kernel = job->kernel,
        .global = job->kernel->global(job->problem, job->program->world),
        .seed = job->seed,
        .epoch = epoch,
    };

    for (uint32_t s = 0; s < count; s++) {
        const struct buffer *b = &job->program->buffers[io[s].buffer];
        uint8_t *base = buffer_copy(job, io[s].buffer, epoch, window);

        if (io[s].role != IO_OUTPUT || io[s].rows == 0 || io[s].cols == 0)
            continue;
        if (job->kernel->bounded)
            check_slice_within_bounds(job, rank, epoch, &io[s], base, report);
        else
            check_slice_exactly(job, rank, &key, &io[s], base, report);
        for (uint64_t i = 0; i < io[s].rows; i++)
            poison(b->dtype, base + (io[s].row + i) * b->cols * dtype_bytes(b->dtype), io[s].cols);
    }
}
