#include "bench_program.h"

#include <assert.h>
#include <stdlib.h>

#include "core/check.h"

enum { TILE_M = 128, TILE_N = 256, TILE_K = 64 /* of a hop: one step */ };

/* ---- GEMM ---- */

struct gemm {
    struct problem problem;
    uint64_t group, rows, cols; /* tiles */
    bool flags;
};

/* The flag of a row of tiles counts them; the epoch before has raised it. */
static void wait_for_row(struct task *t, uint64_t row)
{
    task_wait_as(t,
                 (struct wait){.flag = (uint32_t)row, .count = 1, .lag = 1, .phase = WAIT_ENTRY, .value = FLAG_TOTAL});
}

static void gemm_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t i, struct task *t)
{
    const struct gemm *g = p->state;
    uint64_t first = i / (g->group * g->cols) * g->group;
    uint64_t height = min_u64(g->group, g->rows - first), rest = i - first * g->cols;
    uint64_t row = first + rest % height, col = rest / height;

    (void)queue;
    t->op = OP_GEMM;
    t->m = min_u64(TILE_M, g->problem.m - row * TILE_M);
    t->n = min_u64(TILE_N, g->problem.n - col * TILE_N);
    t->k = g->problem.k;
    t->segment_table = NO_TABLE;
    t->a = (struct operand){rank, BENCH_A, row * TILE_M * t->k, t->k};
    t->b = (struct operand){rank, BENCH_B, col * TILE_N * t->k, t->k};
    task_store_to(t, (struct operand){rank, BENCH_C, row * TILE_M * g->problem.n + col * TILE_N, g->problem.n});
    if (!g->flags)
        return;
    wait_for_row(t, row);
    wait_for_row(t, (row + 1) % g->rows);
    task_signal(t, rank, (uint32_t)row, 1);
}

static uint64_t gemm_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    const struct gemm *g = p->state;

    (void)rank;
    (void)queue;
    return g->rows * g->cols;
}

static uint64_t gemm_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    (void)rank;
    (void)flag;
    return ((const struct gemm *)p->state)->cols;
}

static uint32_t gemm_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    const struct problem *s = &((const struct gemm *)p->state)->problem;

    (void)rank;
    out[0] = (struct io_slice){IO_INPUT, BENCH_A, 0, s->m, s->k, TENSOR_A, 0, 0};
    out[1] = (struct io_slice){IO_INPUT, BENCH_B, 0, s->n, s->k, TENSOR_B, 0, 0};
    out[2] = (struct io_slice){IO_OUTPUT, BENCH_C, 0, s->m, s->n, TENSOR_C, 0, 0};
    return 3;
}

static void free_state(struct program *p)
{
    free(p->state);
}

static void *new_state(size_t bytes)
{
    void *state = calloc(1, bytes);

    assert(state);
    return state;
}

void bench_gemm(struct program *p, uint32_t ranks, const struct problem *problem, uint64_t group, bool flags)
{
    static const struct program_ops ops = {
        .queue_length = gemm_length, .task = gemm_task, .flag_total = gemm_total, .io = gemm_io, .fini = free_state};
    struct gemm *g = new_state(sizeof *g);

    *p = (struct program){.kernel = "gemm", .variant = "bench", .world = {1, ranks}, .ops = &ops, .state = g};
    *g = (struct gemm){.problem = *problem,
                       .group = group,
                       .flags = flags,
                       .rows = ceil_div(problem->m, TILE_M),
                       .cols = ceil_div(problem->n, TILE_N)};
    program_add_buffer(p, (struct buffer){"A", DTYPE_BF16, problem->m, problem->k, 1});
    program_add_buffer(p, (struct buffer){"B", DTYPE_BF16, problem->n, problem->k, 1});
    program_add_buffer(p, (struct buffer){"C", DTYPE_BF16, problem->m, problem->n, 1});
    program_add_flags(p, "row", flags ? g->rows : 0);
    program_add_queue(p, "tiles");
    program_crew_drains(p, program_add_crew(p, "all", 1024), 0);
}

/* ---- hops: flag h is raised on the other rank by hop h ---- */

struct hops {
    uint64_t hops, bytes;
    enum bench_hop kind;
    uint32_t sent;
};

static uint64_t hops_of(const struct hops *h, uint32_t rank)
{
    return (h->hops + 1 - rank) / 2;
}

static uint64_t hops_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    const struct hops *h = p->state;

    (void)queue;
    return hops_of(h, rank) + 1;
}

static void put_task(const struct hops *h, uint32_t rank, struct task *t)
{
    t->op = OP_PUT;
    t->m = h->bytes > 0;
    t->n = h->bytes / 2;
    t->a = (struct operand){rank, 0, 0, h->bytes / 2};
    task_store_to(t, (struct operand){1 - rank, 1, 0, h->bytes / 2});
    task_signal(t, rank, h->sent, 1);
}

static void tile_task(const struct hops *h, uint32_t rank, struct task *t)
{
    t->op = OP_GEMM;
    t->m = TILE_M;
    t->n = TILE_N;
    t->k = TILE_K;
    t->segment_table = NO_TABLE;
    t->a = (struct operand){rank, BENCH_A, 0, TILE_K};
    t->b = (struct operand){rank, BENCH_B, 0, TILE_K};
    task_store_to(t, (struct operand){h->kind == HOP_FAR_TILE ? 1 - rank : rank, BENCH_C, 0, TILE_N});
}

static void hops_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t i, struct task *t)
{
    const struct hops *h = p->state;
    uint64_t hop = 2 * i + rank;

    (void)queue;
    if (i == hops_of(h, rank)) { /* everything that was sent to me, and by me */
        if (h->kind == HOP_PUT)
            task_wait(t, h->sent, 1, FLAG_TOTAL);
        task_wait(t, (uint32_t)h->hops - 1 - (h->hops % 2 != rank), 1, FLAG_TOTAL);
        return;
    }
    if (hop > 0)
        task_wait(t, (uint32_t)hop - 1, 1, FLAG_TOTAL);
    task_signal(t, 1 - rank, (uint32_t)hop, 1);
    if (h->kind == HOP_PUT)
        put_task(h, rank, t);
    else if (h->kind != HOP_TASK)
        tile_task(h, rank, t);
}

static uint64_t hops_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    const struct hops *h = p->state;

    if (flag == h->hops)
        return hops_of(h, rank);
    return flag % 2 != rank;
}

static uint32_t no_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    (void)p;
    (void)rank;
    (void)out;
    return 0;
}

static void add_hop_buffers(struct program *p, const struct hops *h)
{
    uint64_t cols = max_u64(h->bytes / 2, 1);

    if (h->kind == HOP_TILE || h->kind == HOP_FAR_TILE) {
        program_add_buffer(p, (struct buffer){"A", DTYPE_BF16, TILE_M, TILE_K, 1});
        program_add_buffer(p, (struct buffer){"B", DTYPE_BF16, TILE_N, TILE_K, 1});
        program_add_buffer(p, (struct buffer){"C", DTYPE_BF16, TILE_M, TILE_N, 1});
        return;
    }
    program_add_buffer(p, (struct buffer){"from", DTYPE_BF16, 1, cols, 1});
    program_add_buffer(p, (struct buffer){"to", DTYPE_BF16, 1, cols, 1});
}

void bench_hops(struct program *p, uint64_t hops, enum bench_hop kind, uint64_t bytes)
{
    static const struct program_ops ops = {
        .queue_length = hops_length, .task = hops_task, .flag_total = hops_total, .io = no_io, .fini = free_state};
    struct hops *h = new_state(sizeof *h);
    uint32_t nodes = kind == HOP_PUT ? 2 : 1;

    *p = (struct program){.kernel = "hops", .variant = "bench", .ops = &ops, .state = h, .world = {nodes, 2 / nodes}};
    *h = (struct hops){.hops = hops, .bytes = bytes, .kind = kind};
    add_hop_buffers(p, h);
    program_add_flags(p, "hop", hops);
    h->sent = program_add_flags(p, "sent", 1);
    program_add_queue(p, "hops");
    program_crew_drains(p, program_add_crew(p, "all", 1), 0);
}

/* ---- puts ---- */

static uint64_t puts_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    const struct hops *h = p->state;

    (void)queue;
    return rank == 0 ? h->hops + 1 : 1;
}

static void puts_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t i, struct task *t)
{
    const struct hops *h = p->state;

    (void)queue;
    if (rank == 1) {
        task_wait(t, 0, (uint32_t)h->hops, FLAG_TOTAL);
    } else if (i == h->hops) {
        task_wait(t, h->sent, 1, FLAG_TOTAL);
    } else {
        t->op = OP_PUT;
        task_store_to(t, (struct operand){.rank = 1});
        task_signal(t, 1, (uint32_t)i, 1);
        task_signal(t, 0, h->sent, 1);
    }
}

static uint64_t puts_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    const struct hops *h = p->state;

    if (flag == h->sent)
        return rank == 0 ? h->hops : 0;
    return rank;
}

void bench_puts(struct program *p, uint64_t puts, uint32_t workers)
{
    static const struct program_ops ops = {
        .queue_length = puts_length, .task = puts_task, .flag_total = puts_total, .io = no_io, .fini = free_state};
    struct hops *h = new_state(sizeof *h);

    *p = (struct program){.kernel = "puts", .variant = "bench", .ops = &ops, .state = h, .world = {2, 1}};
    *h = (struct hops){.hops = puts, .kind = HOP_PUT};
    program_add_buffer(p, (struct buffer){"none", DTYPE_BF16, 1, 1, 1});
    program_add_flags(p, "arrived", puts);
    h->sent = program_add_flags(p, "sent", 1);
    program_add_queue(p, "puts");
    program_crew_drains(p, program_add_crew(p, "all", workers), 0);
}

/* ---- one worker's tasks ---- */

static uint64_t one_queue_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    (void)rank;
    (void)queue;
    return *(const uint64_t *)p->state;
}

static uint64_t no_signals(const struct program *p, uint32_t rank, uint32_t flag)
{
    (void)p;
    (void)rank;
    (void)flag;
    return 0;
}

static void nothing_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t i, struct task *t)
{
    (void)p;
    (void)rank;
    (void)queue;
    (void)i;
    t->op = OP_NOP;
}

static void sum_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t i, struct task *t)
{
    (void)queue;
    t->op = OP_REDUCE;
    t->m = 1;
    t->n = BENCH_SUM_COLS;
    t->addend = (struct operand){rank, 0, i * BENCH_SUM_COLS, BENCH_SUM_COLS};
    t->addend_stride = *(const uint64_t *)p->state * BENCH_SUM_COLS;
    t->addend_count = BENCH_SUM_SOURCES;
    task_store_to(t, (struct operand){rank, 1, i * BENCH_SUM_COLS, BENCH_SUM_COLS});
}

static void start_one_worker(struct program *p, const struct program_ops *ops, uint64_t tasks)
{
    uint64_t *length = new_state(sizeof *length);

    *length = tasks;
    *p = (struct program){.kernel = "one", .variant = "bench", .world = {1, 1}, .ops = ops, .state = length};
    program_crew_drains(p, program_add_crew(p, "one", 1), program_add_queue(p, "tasks"));
}

void bench_nothing(struct program *p, uint64_t tasks)
{
    static const struct program_ops ops = {.queue_length = one_queue_length,
                                           .task = nothing_task,
                                           .flag_total = no_signals,
                                           .io = no_io,
                                           .fini = free_state};

    start_one_worker(p, &ops, tasks);
    program_add_buffer(p, (struct buffer){"none", DTYPE_BF16, 1, 1, 1});
}

void bench_sums(struct program *p, uint64_t rows)
{
    static const struct program_ops ops = {
        .queue_length = one_queue_length, .task = sum_task, .flag_total = no_signals, .io = no_io, .fini = free_state};

    start_one_worker(p, &ops, rows);
    program_add_buffer(p, (struct buffer){"from", DTYPE_BF16, BENCH_SUM_SOURCES * rows, BENCH_SUM_COLS, 1});
    program_add_buffer(p, (struct buffer){"to", DTYPE_BF16, rows, BENCH_SUM_COLS, 1});
}
