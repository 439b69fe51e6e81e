#include "stories.h"

#include "script.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* Every rank shows its own shard, after a wait that `spoil` adds. */
static void show_own(struct program *p, void (*spoil)(struct program *p, uint32_t queue, uint32_t rank))
{
    uint32_t in = script_buffer(p, "in", SHARD_ROWS, SHARD_COLS, 1);
    uint32_t out = script_buffer(p, "out", SHARD_ROWS, SHARD_COLS, 1);
    uint32_t queue = script_queue_and_crew(p, "main");

    program_add_flags(p, "unused", 5); /* names and indices must both be right in reports */
    program_add_flags(p, "never", 3);
    for (uint32_t r = 0; r < world_ranks(p->world); r++) {
        struct task *t = script_task(p, r, queue, OP_COPY, SHARD_ROWS, SHARD_COLS);

        story_in_out(p, r, in, out, r);
        t->a = script_rows(p, r, in, 0);
        task_store_to(t, script_rows(p, r, out, 0));
        spoil(p, queue, r);
    }
}

enum { FLAG_NEVER = 5 };

static void wait_for_nobody(struct program *p, uint32_t queue, uint32_t rank)
{
    if (rank == 1)
        task_wait(script_task(p, rank, queue, OP_NOP, 0, 0), FLAG_NEVER + 2, 1, 1);
}

static void nobody_signals(struct program *p)
{
    show_own(p, wait_for_nobody);
}

static void wait_for_neighbour(struct program *p, uint32_t queue, uint32_t rank)
{
    struct task *t = script_task(p, rank, queue, OP_NOP, 0, 0);

    task_wait(t, FLAG_NEVER + 1, 1, FLAG_TOTAL);
    task_signal(t, (rank + 1) % world_ranks(p->world), FLAG_NEVER + 1, 1);
}

static void cycle(struct program *p)
{
    show_own(p, wait_for_neighbour);
}

static void wait_for_two(struct program *p, uint32_t queue, uint32_t rank)
{
    struct task *t = script_task(p, rank, queue, OP_NOP, 0, 0);

    task_signal(t, rank, FLAG_NEVER, 1);
    t = script_task(p, rank, queue, OP_NOP, 0, 0);
    task_wait(t, FLAG_NEVER, 1, 2);
}

static void too_few_signals(struct program *p)
{
    show_own(p, wait_for_two);
}

/* A put that arrives, and a wait for another one that nobody sends. */
static void wait_for_other_node(struct program *p, uint32_t queue, uint32_t rank)
{
    struct task *t = script_task(p, rank, queue, OP_PUT, 0, 0);
    uint32_t other = (rank + 1) % world_ranks(p->world);

    t->out_count = 1;
    t->out[0] = script_rows(p, other, 0, 0);
    task_signal(t, other, FLAG_NEVER, 1);
    t = script_task(p, rank, queue, OP_NOP, 0, 0);
    task_wait(t, FLAG_NEVER, 2, 1);
}

static void missing_put(struct program *p)
{
    show_own(p, wait_for_other_node);
}

/* ---- wrong results ---- */

static void show_left(struct program *p, bool write)
{
    uint32_t in = script_buffer(p, "in", SHARD_ROWS, SHARD_COLS, 1);
    uint32_t out = script_buffer(p, "result", SHARD_ROWS, SHARD_COLS, 1);
    uint32_t queue = script_queue_and_crew(p, "main"), ranks = world_ranks(p->world);

    for (uint32_t r = 0; r < ranks; r++) {
        struct task *t = script_task(p, r, queue, write ? OP_COPY : OP_NOP, SHARD_ROWS, SHARD_COLS);

        story_in_out(p, r, in, out, (r + ranks - 1) % ranks);
        t->a = script_rows(p, r, in, 0); /* its own one instead */
        task_store_to(t, script_rows(p, r, out, 0));
    }
}

static void wrong_shard(struct program *p)
{
    show_left(p, true);
}

static void unwritten(struct program *p)
{
    show_left(p, false);
}

#define SHARDS(ranks) {.m = (ranks)*SHARD_ROWS, .n = SHARD_COLS, .k = SHARD_COLS}, reference_copy

const struct story failing_stories[] = {
    {"nobody signals", {1, 2}, nobody_signals, SHARDS(2), "never[2]", ST_HANG},
    {"each waits for the other", {1, 2}, cycle, SHARDS(2), "never[1]", ST_HANG},
    {"a wait for more than is signalled", {1, 1}, too_few_signals, SHARDS(1), "never[0]", ST_HANG},
    {"a put that nobody sends", {2, 1}, missing_put, SHARDS(2), "never[1]", ST_HANG},
    {"the wrong shard", {1, 2}, wrong_shard, SHARDS(2), "result[", ST_WRONG},
    {"nothing written", {1, 2}, unwritten, SHARDS(2), "result[0, 0] was never written", ST_WRONG},
};
const int failing_story_count = COUNT(failing_stories);
