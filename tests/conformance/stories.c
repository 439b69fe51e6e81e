#include "stories.h"

#include "core/check.h"
#include "kernels/reference.h"
#include "script.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* ---- what is expected ---- */

void reference_copy(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                    uint64_t col, uint64_t cols, int16_t *out)
{
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < cols; j++)
            out[i * cols + j] = (int16_t)tensor_value(seed, epoch, TENSOR_A, global->k, row + i, col + j);
}

/* C = the sum of the m / SHARD_ROWS shards of A. */
static void reference_sum(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                          uint64_t col, uint64_t cols, int16_t *out)
{
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < cols; j++) {
            int sum = 0;

            for (uint64_t r = 0; r < global->m; r += SHARD_ROWS)
                sum += tensor_value(seed, epoch, TENSOR_A, global->k, r + row + i, col + j);
            out[i * cols + j] = (int16_t)sum;
        }
}

void story_in_out(struct program *p, uint32_t rank, uint32_t in, uint32_t out, uint32_t shown_rank)
{
    script_input(p, rank, in, TENSOR_A, rank * SHARD_ROWS, 0);
    script_output(p, rank, out, shown_rank * SHARD_ROWS, 0);
}

static void wait_lag(struct task *t, uint32_t flag, uint32_t lag)
{
    task_wait_as(t, (struct wait){.flag = flag, .count = 1, .lag = lag, .value = FLAG_TOTAL});
}

/* ---- stories ---- */

/* Each rank pulls its left neighbour's input: an entry wait guards the reading, and another wait
 * the overwriting of the input by the next epoch's begin. */
static void pull_ring(struct program *p)
{
    uint32_t in = script_buffer(p, "in", SHARD_ROWS, SHARD_COLS, 1);
    uint32_t out = script_buffer(p, "out", SHARD_ROWS, SHARD_COLS, 1);
    uint32_t ready = program_add_flags(p, "ready", 1), read = program_add_flags(p, "read", 1);
    uint32_t queue = script_queue_and_crew(p, "main");
    uint32_t ranks = world_ranks(p->world);

    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t left = (r + ranks - 1) % ranks, right = (r + 1) % ranks;
        struct task *t = script_task(p, r, queue, OP_NOP, 0, 0);

        story_in_out(p, r, in, out, left);
        task_signal(t, right, ready, 1);
        t = script_task(p, r, queue, OP_COPY, SHARD_ROWS, SHARD_COLS);
        t->a = script_rows(p, left, in, 0);
        task_store_to(t, script_rows(p, r, out, 0));
        task_wait(t, ready, 1, 1);
        task_signal(t, left, read, 1);
        t = script_task(p, r, queue, OP_NOP, 0, 0);
        task_wait(t, read, 1, FLAG_TOTAL);
    }
}

enum { LATE_K = 32, LATE_A = 0, LATE_B, LATE_INBOX, LATE_OUT, LATE_ARRIVED = 0, LATE_CREDIT };

static struct task *late_tile(struct program *p, uint32_t rank, uint32_t owner)
{
    struct task *t = script_task(p, rank, 0, OP_GEMM, SHARD_ROWS, SHARD_COLS);

    t->k = LATE_K;
    t->a = script_rows(p, rank, LATE_A, owner * SHARD_ROWS);
    t->b = script_rows(p, rank, LATE_B, 0);
    return t;
}

static void late_peer_tile(struct program *p, uint32_t rank, uint32_t owner)
{
    struct task *t = late_tile(p, rank, owner);
    uint32_t slot = rank < owner ? rank : rank - 1;

    task_store_to(t, script_rows(p, owner, LATE_INBOX, slot * SHARD_ROWS));
    wait_lag(t, LATE_CREDIT, 1);
    task_signal(t, owner, LATE_ARRIVED, 1);
}

static void late_own_tile(struct program *p, uint32_t rank)
{
    struct task *t = late_tile(p, rank, rank);

    t->addend = script_rows(p, rank, LATE_INBOX, 0);
    t->addend_stride = SHARD_ROWS * SHARD_COLS;
    t->addend_count = world_ranks(p->world) - 1;
    task_store_to(t, script_rows(p, rank, LATE_OUT, 0));
    task_wait_late(t, LATE_ARRIVED, 1, FLAG_TOTAL);
    task_signal(t, RANK_NODE, LATE_CREDIT, 1);
}

/* Each rank's partial sums go to their owners, who add what has arrived: a late wait.  All ranks
 * exchange at once through one crew of one queue, peers' rows first.  Credits (lag 1) guard the
 * inboxes. */
static void late_exchange(struct program *p)
{
    uint32_t ranks = world_ranks(p->world);

    script_buffer(p, "a", ranks * SHARD_ROWS, LATE_K, 1);
    script_buffer(p, "b", SHARD_COLS, LATE_K, 1);
    script_buffer(p, "inbox", (ranks - 1) * SHARD_ROWS, SHARD_COLS, 1);
    script_buffer(p, "out", SHARD_ROWS, SHARD_COLS, 1);
    program_add_flags(p, "arrived", 1);
    program_add_flags(p, "credit", 1);
    script_queue_and_crew(p, "main");
    for (uint32_t r = 0; r < ranks; r++) {
        script_input(p, r, LATE_A, TENSOR_A, 0, r * LATE_K);
        script_input(p, r, LATE_B, TENSOR_B, 0, r * LATE_K);
        script_output(p, r, LATE_OUT, r * SHARD_ROWS, 0);
        for (uint32_t i = 1; i < ranks; i++)
            late_peer_tile(p, r, (r + i) % ranks);
        late_own_tile(p, r);
    }
}

enum { STEPS = 4, STEP_K = 16, STEPPED_K = STEPS * STEP_K };
enum { STEPPED_A, STEPPED_B, STEPPED_GATHERED, STEPPED_OUT };
enum { STEPPED_READY, STEPPED_READ, STEPPED_ARRIVED };
enum { STEPPED_GEMM, STEPPED_FETCH }; /* queues */

static void stepped_fetch(struct program *p, uint32_t rank, uint32_t left, uint32_t step)
{
    struct task *t = script_task(p, rank, STEPPED_FETCH, OP_COPY, SHARD_ROWS, STEP_K);
    struct operand to = script_rows(p, rank, STEPPED_GATHERED, 0);

    t->a = script_rows(p, left, STEPPED_A, 0);
    t->a.offset += step * STEP_K;
    to.offset += step * STEP_K;
    task_store_to(t, to);
    task_wait(t, STEPPED_READY, 1, FLAG_TOTAL);
    task_signal(t, rank, STEPPED_ARRIVED + step, 1);
    task_signal(t, left, STEPPED_READ, 1);
}

static void stepped_gemm(struct program *p, uint32_t rank)
{
    struct task *t = script_task(p, rank, STEPPED_GEMM, OP_GEMM, SHARD_ROWS, SHARD_COLS);

    t->a = script_rows(p, rank, STEPPED_GATHERED, 0);
    t->b = script_rows(p, rank, STEPPED_B, 0);
    t->k = STEPPED_K;
    t->segment_table = 0;
    t->segment_first = (rank + 2) % STEPS;
    t->segment_count = STEPS;
    task_store_to(t, script_rows(p, rank, STEPPED_OUT, 0));
}

static void stepped_rank(struct program *p, uint32_t rank)
{
    uint32_t ranks = world_ranks(p->world);
    uint32_t left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;

    script_input(p, rank, STEPPED_A, TENSOR_A, rank * SHARD_ROWS, 0);
    script_input(p, rank, STEPPED_B, TENSOR_B, rank * SHARD_COLS, 0);
    script_output(p, rank, STEPPED_OUT, left * SHARD_ROWS, rank * SHARD_COLS);

    task_signal(script_task(p, rank, STEPPED_FETCH, OP_NOP, 0, 0), right, STEPPED_READY, 1);
    for (uint32_t i = 0; i < STEPS; i++)
        stepped_fetch(p, rank, left, (rank + 2 + i) % STEPS);
    task_wait(script_task(p, rank, STEPPED_FETCH, OP_NOP, 0, 0), STEPPED_READ, 1, FLAG_TOTAL);
    stepped_gemm(p, rank);
}

/* One GEMM task over four segments that other workers fetch meanwhile, starting in the middle of
 * the table and wrapping. */
static void stepped_wrap(struct program *p)
{
    script_buffer(p, "a", SHARD_ROWS, STEPPED_K, 1);
    script_buffer(p, "b", SHARD_COLS, STEPPED_K, 1);
    script_buffer(p, "gathered", SHARD_ROWS, STEPPED_K, 1);
    script_buffer(p, "out", SHARD_ROWS, SHARD_COLS, 1);
    program_add_flags(p, "ready", 1);
    program_add_flags(p, "read", 1);
    program_add_flags(p, "arrived", STEPS);
    script_queue_and_crew(p, "gemm");
    script_queue_and_crew(p, "fetch");
    for (uint32_t i = 0; i < STEPS; i++) {
        struct wait wait = {.flag = STEPPED_ARRIVED + i, .count = 1, .value = FLAG_TOTAL};

        script_segment(p, (struct segment){STEP_K, i * STEP_K, i * STEP_K, 0, wait});
    }
    for (uint32_t r = 0; r < world_ranks(p->world); r++)
        stepped_rank(p, r);
}

/* Eight puts a rank to the next node, in one queue before everything else: with a FIFO of one
 * command the worker blocks on it, and arrivals must go on.  `sent` guards the input, a bare put
 * returns the credit, one wait covers a range of eight flags. */
static void put_rows(struct program *p)
{
    uint32_t in = script_buffer(p, "in", SHARD_ROWS, SHARD_COLS, 1);
    uint32_t inbox = script_buffer(p, "inbox", SHARD_ROWS, SHARD_COLS, 1);
    uint32_t out = script_buffer(p, "out", SHARD_ROWS, SHARD_COLS, 1);
    uint32_t landed = program_add_flags(p, "landed", SHARD_ROWS), sent = program_add_flags(p, "sent", 1);
    uint32_t used = program_add_flags(p, "used", 1), credit = program_add_flags(p, "credit", 1);
    uint32_t queue = script_queue_and_crew(p, "main");
    uint32_t ranks = world_ranks(p->world), rail = p->world.gpus_per_node;

    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t from = (r + ranks - rail) % ranks, to = (r + rail) % ranks;
        struct task *t;

        story_in_out(p, r, in, out, from);
        for (uint32_t i = 0; i < SHARD_ROWS; i++) {
            t = script_task(p, r, queue, OP_PUT, 1, SHARD_COLS);
            t->a = script_rows(p, r, in, i);
            task_store_to(t, script_rows(p, to, inbox, i));
            wait_lag(t, credit, 1);
            task_signal(t, to, landed + i, 1);
            task_signal(t, r, sent, 1);
        }
        t = script_task(p, r, queue, OP_COPY, SHARD_ROWS, SHARD_COLS);
        t->a = script_rows(p, r, inbox, 0);
        task_store_to(t, script_rows(p, r, out, 0));
        task_wait(t, landed, SHARD_ROWS, FLAG_TOTAL);
        task_signal(t, r, used, 1);
        t = script_task(p, r, queue, OP_PUT, 0, 0);
        t->out_count = 1;
        t->out[0] = script_rows(p, from, inbox, 0);
        task_wait(t, used, 1, FLAG_TOTAL);
        task_signal(t, from, credit, 1);
        t = script_task(p, r, queue, OP_NOP, 0, 0);
        task_wait(t, sent, 1, FLAG_TOTAL);
    }
}

/* A sender that may be two epochs ahead of its receiver: a box of depth 2 under credits of lag
 * 2. */
static void depth_and_lag(struct program *p)
{
    uint32_t in = script_buffer(p, "in", SHARD_ROWS, SHARD_COLS, 1);
    uint32_t box = script_buffer(p, "box", SHARD_ROWS, SHARD_COLS, 2);
    uint32_t out = script_buffer(p, "out", SHARD_ROWS, SHARD_COLS, 1);
    uint32_t full = program_add_flags(p, "full", 1), credit = program_add_flags(p, "credit", 1);
    uint32_t push = script_queue_and_crew(p, "push"), take = script_queue_and_crew(p, "take");
    uint32_t ranks = world_ranks(p->world);

    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t left = (r + ranks - 1) % ranks, right = (r + 1) % ranks;
        struct task *t = script_task(p, r, push, OP_COPY, SHARD_ROWS, SHARD_COLS);

        story_in_out(p, r, in, out, left);
        t->a = script_rows(p, r, in, 0);
        task_store_to(t, script_rows(p, right, box, 0));
        wait_lag(t, credit, 2);
        task_signal(t, right, full, 1);
        t = script_task(p, r, take, OP_COPY, SHARD_ROWS, SHARD_COLS);
        t->a = script_rows(p, r, box, 0);
        task_store_to(t, script_rows(p, r, out, 0));
        task_wait(t, full, 1, FLAG_TOTAL);
        task_signal(t, left, credit, 1);
    }
}

/* Every rank stores its shard to all ranks of its node, in place, and signals all of them. */
static void node_targets(struct program *p)
{
    uint32_t gpus = p->world.gpus_per_node, rows = gpus * SHARD_ROWS;
    uint32_t gathered = script_buffer(p, "gathered", rows, SHARD_COLS, 1);
    uint32_t out = script_buffer(p, "out", rows, SHARD_COLS, 1);
    uint32_t arrived = program_add_flags(p, "arrived", gpus), credit = program_add_flags(p, "credit", 1);
    uint32_t queue = script_queue_and_crew(p, "main");

    for (uint32_t r = 0; r < world_ranks(p->world); r++) {
        uint32_t gpu = world_gpu(p->world, r), own_row = gpu * SHARD_ROWS;
        struct task *t = script_task(p, r, queue, OP_COPY, SHARD_ROWS, SHARD_COLS);

        script_io(p, r,
                  (struct io_slice){.role = IO_INPUT,
                                    .buffer = gathered,
                                    .row = own_row,
                                    .rows = SHARD_ROWS,
                                    .cols = SHARD_COLS,
                                    .tensor = TENSOR_A,
                                    .tensor_row = r * SHARD_ROWS});
        script_output(p, r, out, (r - gpu) * SHARD_ROWS, 0);
        t->a = script_rows(p, r, gathered, own_row);
        task_store_to(t, script_rows(p, RANK_NODE, gathered, own_row));
        wait_lag(t, credit, 1);
        task_signal(t, RANK_NODE, arrived + gpu, 1);
        t = script_task(p, r, queue, OP_COPY, rows, SHARD_COLS);
        t->a = script_rows(p, r, gathered, 0);
        task_store_to(t, script_rows(p, r, out, 0));
        task_wait(t, arrived, gpus, FLAG_TOTAL);
        task_signal(t, RANK_NODE, credit, 1);
    }
}

/* A crew that joins the other one's queue when its own is empty; that queue mixes kinds of tasks.
 */
static void joined_mixed(struct program *p)
{
    uint32_t ranks = world_ranks(p->world);
    uint32_t in = script_buffer(p, "in", SHARD_ROWS, SHARD_COLS, 1);
    uint32_t inbox = script_buffer(p, "inbox", ranks * SHARD_ROWS, SHARD_COLS, 1);
    uint32_t sum = script_buffer(p, "sum", SHARD_ROWS, SHARD_COLS, 1);
    uint32_t out = script_buffer(p, "out", SHARD_ROWS, SHARD_COLS, 1);
    uint32_t arrived = program_add_flags(p, "arrived", SHARD_ROWS);
    uint32_t summed = program_add_flags(p, "summed", SHARD_ROWS), credit = program_add_flags(p, "credit", 1);
    uint32_t comm = script_queue_and_crew(p, "comm"), work = script_queue_and_crew(p, "work");

    program_crew_drains(p, 0, work);
    for (uint32_t r = 0; r < ranks; r++) {
        story_in_out(p, r, in, out, 0);
        for (uint32_t i = 0; i < SHARD_ROWS; i++) {
            struct task *t = script_task(p, r, comm, OP_COPY, 1, SHARD_COLS);

            t->a = script_rows(p, r, in, i);
            task_store_to(t, script_rows(p, RANK_NODE, inbox, r * SHARD_ROWS + i));
            wait_lag(t, credit, 1);
            task_signal(t, RANK_NODE, arrived + i, 1);
            t = script_task(p, r, work, OP_REDUCE, 1, SHARD_COLS);
            t->addend = script_rows(p, r, inbox, i);
            t->addend_stride = SHARD_ROWS * SHARD_COLS;
            t->addend_count = ranks;
            task_store_to(t, script_rows(p, r, sum, i));
            task_wait(t, arrived + i, 1, FLAG_TOTAL);
            task_signal(t, r, summed + i, 1);
            task_signal(t, RANK_NODE, credit, 1);
            t = script_task(p, r, work, OP_COPY, 1, SHARD_COLS);
            t->a = script_rows(p, r, sum, i);
            task_store_to(t, script_rows(p, r, out, i));
            task_wait(t, summed + i, 1, 1);
        }
    }
}

#define COPY_OF(ranks) {.m = (ranks)*SHARD_ROWS, .n = SHARD_COLS, .k = SHARD_COLS}, reference_copy
#define GEMM_OF(rows, cols, depth) {.m = rows, .n = cols, .k = depth}, reference_gemm

const struct story stories[] = {
    {"entry wait, 1x1", {1, 1}, pull_ring, COPY_OF(1), NULL, ST_OK},
    {"entry wait, 1x2", {1, 2}, pull_ring, COPY_OF(2), NULL, ST_OK},
    {"entry wait, 1x5", {1, 5}, pull_ring, COPY_OF(5), NULL, ST_OK},
    {"late wait, two ranks exchange", {1, 2}, late_exchange, GEMM_OF(16, 16, 64), NULL, ST_OK},
    {"late wait, four ranks exchange", {1, 4}, late_exchange, GEMM_OF(32, 16, 128), NULL, ST_OK},
    {"stepped waits that wrap, 1x2", {1, 2}, stepped_wrap, GEMM_OF(16, 32, 64), NULL, ST_OK},
    {"stepped waits that wrap, 1x3", {1, 3}, stepped_wrap, GEMM_OF(24, 48, 64), NULL, ST_OK},
    {"puts, 2x1", {2, 1}, put_rows, COPY_OF(2), NULL, ST_OK},
    {"puts, 3x2", {3, 2}, put_rows, COPY_OF(6), NULL, ST_OK},
    {"depth and lag, 1x2", {1, 2}, depth_and_lag, COPY_OF(2), NULL, ST_OK},
    {"depth and lag, 1x3", {1, 3}, depth_and_lag, COPY_OF(3), NULL, ST_OK},
    {"node targets, 1x4", {1, 4}, node_targets, COPY_OF(4), NULL, ST_OK},
    {"node targets, 2x3", {2, 3}, node_targets, COPY_OF(6), NULL, ST_OK},
    {"join and a mixed queue",
     {1, 4},
     joined_mixed,
     {.m = 4 * SHARD_ROWS, .n = SHARD_COLS, .k = SHARD_COLS},
     reference_sum,
     NULL,
     ST_OK},
};
const int story_count = COUNT(stories);
