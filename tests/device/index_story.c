#include "index_story.h"

#include "core/check.h"
#include "kernels/reference.h"
#include "script.h"

enum { CHUNK = 50, CHUNKS = 3, HELD = CHUNK * CHUNKS, STACK = 2 * HELD }; /* rows of A */
enum { ROWS = 300, F32_ROWS = 100 };                                      /* of the results: rank 0's, rank 1's */

struct problem index_story_problem(uint64_t n, uint64_t k)
{
    return (struct problem){.m = ROWS + F32_ROWS, .n = n, .k = k};
}

static uint64_t named(uint64_t row)
{
    return (row * 131 + 11) % STACK;
}

static void write_index(const struct problem *problem, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                        int32_t *out)
{
    (void)problem;
    (void)seed;
    (void)epoch;
    for (uint64_t i = 0; i < rows; i++)
        out[i] = (int32_t)named(row + i);
}

static void reference(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                      uint64_t col, uint64_t cols, int16_t *out)
{
    for (uint64_t i = 0; i < rows; i++)
        reference_gemm(global, seed, epoch, named(row + i), 1, col, cols, out + i * cols);
}

static struct problem itself(const struct problem *problem, struct world world)
{
    (void)world;
    return *problem;
}

const struct kernel index_story_kernel = {
    .name = "index", .global = itself, .control = write_index, .reference = reference};

struct story_buffers {
    uint32_t held, source, b, index, result, wide;
    uint32_t ready, done; /* flags */
    uint32_t queue;
};

static struct story_buffers add_buffers(struct program *p, const struct problem *problem)
{
    uint64_t n = problem->n, k = problem->k;
    struct story_buffers s = {.held = script_buffer(p, "held", HELD, k, 1),
                              .source = script_buffer(p, "source", HELD, k, 1),
                              .b = script_buffer(p, "b", n, k, 1),
                              .index = script_buffer(p, "index", ROWS, 1, 1),
                              .result = script_buffer(p, "result", ROWS, n, 1),
                              .wide = script_buffer(p, "wide", F32_ROWS, n, 1),
                              .ready = program_add_flags(p, "ready", 2 * CHUNKS),
                              .done = program_add_flags(p, "done", 1),
                              .queue = script_queue_and_crew(p, "main")};

    p->buffers[s.index].dtype = DTYPE_I32;
    p->buffers[s.wide].dtype = DTYPE_F32;
    script_input(p, 0, s.held, TENSOR_A, 0, 0);
    script_input(p, 1, s.source, TENSOR_A, HELD, 0);
    for (uint32_t rank = 0; rank < 2; rank++)
        script_input(p, rank, s.b, TENSOR_B, 0, 0);
    script_io(p, 0, (struct io_slice){IO_INPUT, s.index, 0, ROWS, 1, TENSOR_ROUTING, 0, 0});
    script_io(p, 1, (struct io_slice){IO_INPUT, s.index, 0, F32_ROWS, 1, TENSOR_ROUTING, ROWS, 0});
    script_output(p, 0, s.result, 0, 0);
    script_output(p, 1, s.wide, ROWS, 0);
    return s;
}

static void add_chunks(struct program *p, const struct story_buffers *s, uint64_t k)
{
    for (uint32_t i = 0; i < CHUNKS; i++) {
        struct task *copy = script_task(p, 1, s->queue, OP_COPY, CHUNK, k);

        task_signal(script_task(p, 0, s->queue, OP_NOP, 0, 0), RANK_NODE, s->ready + i, 1);
        copy->a = script_rows(p, 1, s->source, i * CHUNK);
        task_store_to(copy, script_rows(p, 1, s->held, i * CHUNK));
        task_signal(copy, RANK_NODE, s->ready + CHUNKS + i, 1);
    }
}

static void multiply(struct program *p, const struct story_buffers *s, const struct problem *problem, uint32_t rank,
                     uint64_t row, uint64_t rows)
{
    struct task *t = script_task(p, rank, s->queue, OP_GEMM, rows, problem->n);

    t->k = problem->k;
    t->a = script_rows(p, RANK_NODE, s->held, 0);
    t->b = script_rows(p, rank, s->b, 0);
    t->by_index = true;
    t->index = script_rows(p, rank, s->index, row);
    t->index_limit = STACK;
    t->indexed = (struct indexed_wait){s->ready, 2 * CHUNKS, CHUNK};
    task_store_to(t, script_rows(p, rank, rank == 0 ? s->result : s->wide, row));
    task_signal(t, RANK_NODE, s->done, 1);
}

/* An epoch ends when both have read what the next one may overwrite. */
void index_story_build(struct program *p, const struct problem *problem)
{
    struct story_buffers s = add_buffers(p, problem);

    add_chunks(p, &s, problem->k);
    multiply(p, &s, problem, 0, 0, 128);
    multiply(p, &s, problem, 0, 128, 100);
    multiply(p, &s, problem, 0, 228, 72);
    multiply(p, &s, problem, 1, 0, 100);
    for (uint32_t rank = 0; rank < 2; rank++)
        task_wait(script_task(p, rank, s.queue, OP_NOP, 0, 0), s.done, 1, FLAG_TOTAL);
}
