#include "bench_links_program.h"

#include <assert.h>
#include <stdlib.h>

struct state {
    uint64_t tasks; /* of a queue; hops: of both ranks together */
    bool far;
};

static struct state *new_state(struct program *p, const struct program_ops *ops, struct world world, struct state s)
{
    struct state *x = malloc(sizeof *x);

    assert(x);
    *x = s;
    *p = (struct program){.kernel = "links", .variant = "bench", .world = world, .ops = ops, .state = x};
    return x;
}

static void free_state(struct program *p)
{
    free(p->state);
}

static uint32_t no_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    (void)p, (void)rank, (void)out;
    return 0;
}

static uint64_t no_signals(const struct program *p, uint32_t rank, uint32_t flag)
{
    (void)p, (void)rank, (void)flag;
    return 0;
}

static uint64_t all_tasks(const struct program *p, uint32_t rank, uint32_t queue)
{
    (void)rank, (void)queue;
    return ((const struct state *)p->state)->tasks;
}

static void add_worker(struct program *p)
{
    program_crew_drains(p, program_add_crew(p, "one", 1), program_add_queue(p, "tasks"));
}

/* ---- hops: flag i is raised by hop i, at the rank of hop i + 1 ---- */

enum { TILE_M = 128, TILE_N = 256, TILE_K = 64 };
enum { TILE_A, TILE_B, TILE_C };

/* The last task of each rank only waits for what comes last to it, so that an epoch ends when it is over. */
static uint64_t hops_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    (void)queue;
    return (((const struct state *)p->state)->tasks + 1 - rank) / 2 + 1;
}

static void tile(const struct state *s, uint32_t rank, struct task *t)
{
    t->op = OP_GEMM;
    t->m = TILE_M;
    t->n = TILE_N;
    t->k = TILE_K;
    t->segment_table = NO_TABLE;
    t->a = (struct operand){rank, TILE_A, 0, TILE_K};
    t->b = (struct operand){rank, TILE_B, 0, TILE_K};
    task_store_to(t, (struct operand){s->far ? 1 - rank : rank, TILE_C, 0, TILE_N});
}

static void hop_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t i, struct task *t)
{
    const struct state *s = p->state;
    uint64_t hop = 2 * i + rank;

    if (i + 1 == hops_length(p, rank, queue)) {
        uint64_t last = s->tasks - 1, to_me = last % 2 != rank ? last : last - 1;

        task_wait(t, (uint32_t)to_me, 1, FLAG_TOTAL);
        return;
    }
    tile(s, rank, t);
    if (hop > 0)
        task_wait(t, (uint32_t)hop - 1, 1, FLAG_TOTAL);
    task_signal(t, 1 - rank, (uint32_t)hop, 1);
}

static uint64_t hops_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    (void)p;
    return flag % 2 != rank;
}

void bench_tile_hops(struct program *p, uint64_t hops, bool far)
{
    static const struct program_ops ops = {
        .queue_length = hops_length, .task = hop_task, .flag_total = hops_total, .io = no_io, .fini = free_state};

    assert(hops >= 2);
    new_state(p, &ops, (struct world){1, 2}, (struct state){.tasks = hops, .far = far});
    program_add_buffer(p, (struct buffer){"A", DTYPE_BF16, TILE_M, TILE_K, 1});
    program_add_buffer(p, (struct buffer){"B", DTYPE_BF16, TILE_N, TILE_K, 1});
    program_add_buffer(p, (struct buffer){"C", DTYPE_BF16, TILE_M, TILE_N, 1});
    program_add_flags(p, "hop", hops);
    add_worker(p);
}

/* ---- nothing ---- */

static void nothing_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t i, struct task *t)
{
    (void)p, (void)rank, (void)queue, (void)i;
    t->op = OP_NOP;
}

void bench_nothing(struct program *p, uint64_t tasks)
{
    static const struct program_ops ops = {
        .queue_length = all_tasks, .task = nothing_task, .flag_total = no_signals, .io = no_io, .fini = free_state};

    new_state(p, &ops, (struct world){1, 1}, (struct state){.tasks = tasks});
    program_add_buffer(p, (struct buffer){"none", DTYPE_BF16, 1, 1, 1});
    add_worker(p);
}

/* ---- sums ---- */

static void sum_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t i, struct task *t)
{
    const struct state *s = p->state;

    (void)queue;
    t->op = OP_REDUCE;
    t->m = 1;
    t->n = BENCH_SUM_COLS;
    t->addend = (struct operand){rank, 0, i * BENCH_SUM_COLS, BENCH_SUM_COLS};
    t->addend_stride = s->tasks * BENCH_SUM_COLS;
    t->addend_count = BENCH_SUM_SOURCES;
    task_store_to(t, (struct operand){rank, 1, i * BENCH_SUM_COLS, BENCH_SUM_COLS});
}

void bench_sums(struct program *p, uint64_t rows)
{
    static const struct program_ops ops = {
        .queue_length = all_tasks, .task = sum_task, .flag_total = no_signals, .io = no_io, .fini = free_state};

    new_state(p, &ops, (struct world){1, 1}, (struct state){.tasks = rows});
    program_add_buffer(p, (struct buffer){"from", DTYPE_BF16, BENCH_SUM_SOURCES * rows, BENCH_SUM_COLS, 1});
    program_add_buffer(p, (struct buffer){"to", DTYPE_BF16, rows, BENCH_SUM_COLS, 1});
    add_worker(p);
}
