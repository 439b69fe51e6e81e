#include "script.h"

#include <assert.h>
#include <stdlib.h>

#include "core/check.h"

struct script_rank {
    struct task tasks[PROGRAM_QUEUES_MAX][SCRIPT_TASKS_MAX];
    uint64_t lengths[PROGRAM_QUEUES_MAX];
    struct io_slice io[PROGRAM_IO_MAX];
    uint32_t io_count;
};

struct script {
    struct script_rank *ranks;
    struct segment segments[SCRIPT_SEGMENTS_MAX];
    uint32_t segment_count;
};

static struct script_rank *rank_of(const struct program *p, uint32_t rank)
{
    const struct script *s = p->state;

    assert(rank < world_ranks(p->world));
    return &s->ranks[rank];
}

static uint64_t script_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    return rank_of(p, rank)->lengths[queue];
}

static void script_get(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *out)
{
    *out = rank_of(p, rank)->tasks[queue][index];
}

static uint64_t signals_to(const struct program *p, uint32_t from, const struct task *t, uint32_t rank, uint32_t flag)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < t->signal_count; i++) {
        uint32_t first, count = program_target_ranks(p, from, t->signals[i].rank, &first);

        if (t->signals[i].flag == flag && rank >= first && rank < first + count)
            sum += t->signals[i].add;
    }
    return sum;
}

static uint64_t script_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    uint64_t sum = 0;

    for (uint32_t from = 0; from < world_ranks(p->world); from++)
        for (uint32_t q = 0; q < p->queue_count; q++)
            for (uint64_t i = 0; i < script_length(p, from, q); i++)
                sum += signals_to(p, from, &rank_of(p, from)->tasks[q][i], rank, flag);
    return sum;
}

static uint32_t script_io_of(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    const struct script_rank *r = rank_of(p, rank);

    for (uint32_t i = 0; i < r->io_count; i++)
        out[i] = r->io[i];
    return r->io_count;
}

static uint32_t script_table_size(const struct program *p, uint32_t rank, uint32_t table)
{
    (void)rank;
    (void)table;
    return ((const struct script *)p->state)->segment_count;
}

static void script_get_segment(const struct program *p, uint32_t rank, uint32_t table, uint32_t index,
                               struct segment *out)
{
    (void)rank;
    (void)table;
    *out = ((const struct script *)p->state)->segments[index];
}

static void script_fini(struct program *p)
{
    struct script *s = p->state;

    free(s->ranks);
    free(s);
}

static const struct program_ops script_ops = {
    .queue_length = script_length,
    .task = script_get,
    .flag_total = script_total,
    .io = script_io_of,
    .segment_table_size = script_table_size,
    .segment = script_get_segment,
    .fini = script_fini,
};

void script_init(struct program *p, struct world world)
{
    struct script *s = calloc(1, sizeof *s);

    assert(s);
    s->ranks = calloc(world_ranks(world), sizeof *s->ranks);
    assert(s->ranks);
    p->kernel = "script";
    p->variant = "script";
    p->world = world;
    p->ops = &script_ops;
    p->state = s;
}

uint32_t script_buffer(struct program *p, const char *name, uint64_t rows, uint64_t cols, uint32_t depth)
{
    return program_add_buffer(
        p, (struct buffer){.name = name, .dtype = DTYPE_BF16, .rows = rows, .cols = cols, .depth = depth});
}

uint32_t script_queue_and_crew(struct program *p, const char *name)
{
    uint32_t queue = program_add_queue(p, name);

    program_crew_drains(p, program_add_crew(p, name, 2), queue);
    return queue;
}

struct task *script_task(struct program *p, uint32_t rank, uint32_t queue, enum op op, uint64_t m, uint64_t n)
{
    struct script_rank *r = rank_of(p, rank);
    struct task *t;

    assert(r->lengths[queue] < SCRIPT_TASKS_MAX);
    t = &r->tasks[queue][r->lengths[queue]++];
    t->op = op;
    t->m = m;
    t->n = n;
    t->segment_table = NO_TABLE;
    return t;
}

void script_segment(struct program *p, struct segment segment)
{
    struct script *s = p->state;

    assert(s->segment_count < SCRIPT_SEGMENTS_MAX);
    s->segments[s->segment_count++] = segment;
}

void script_io(struct program *p, uint32_t rank, struct io_slice slice)
{
    struct script_rank *r = rank_of(p, rank);

    assert(r->io_count < PROGRAM_IO_MAX);
    r->io[r->io_count++] = slice;
}

static struct io_slice whole(const struct program *p, uint32_t buffer, uint64_t row, uint64_t col)
{
    return (struct io_slice){
        .buffer = buffer,
        .rows = p->buffers[buffer].rows,
        .cols = p->buffers[buffer].cols,
        .tensor_row = row,
        .tensor_col = col,
    };
}

void script_input(struct program *p, uint32_t rank, uint32_t buffer, uint32_t tensor, uint64_t row, uint64_t col)
{
    struct io_slice slice = whole(p, buffer, row, col);

    slice.role = IO_INPUT;
    slice.tensor = tensor;
    script_io(p, rank, slice);
}

void script_output(struct program *p, uint32_t rank, uint32_t buffer, uint64_t row, uint64_t col)
{
    struct io_slice slice = whole(p, buffer, row, col);

    slice.role = IO_OUTPUT;
    slice.tensor = TENSOR_C;
    script_io(p, rank, slice);
}

struct operand script_rows(const struct program *p, uint32_t rank, uint32_t buffer, uint64_t row)
{
    uint64_t ld = p->buffers[buffer].cols;

    return (struct operand){.rank = rank, .buffer = buffer, .offset = row * ld, .ld = ld};
}
