/* Programs written out task by task, on a machine of round numbers, to test the sim backend. */
#ifndef TESTS_UNIT_SIM_SCRIPT_H
#define TESTS_UNIT_SIM_SCRIPT_H

#include "backends/sim/sim.h"

#define SCRIPT_RANKS 4
#define SCRIPT_TASKS 8
#define US 1000000 /* ps */

/* Tasks by rank and queue; tables of segments by rank.  Flag totals follow from the signals. */
struct script {
    struct program program;
    struct task tasks[SCRIPT_RANKS][PROGRAM_QUEUES_MAX][SCRIPT_TASKS];
    uint64_t lengths[SCRIPT_RANKS][PROGRAM_QUEUES_MAX];
    struct segment segments[SCRIPT_TASKS]; /* one table for all ranks */
    uint32_t segment_count;
    struct io_slice input; /* of every rank, if it has rows; who sets it sets job.kernel, too */

    struct machine machine;
    struct problem problem;
    struct sim_options options;
    struct job job;
};

/* A world without tasks: buffers "X" and "Y" of 1024 x 1024 bf16, flags "ready" (4) and "done" (4),
 * queues "compute" and "comm" with a crew of one worker each. */
void script_init(struct script *s, uint32_t nodes, uint32_t gpus_per_node);

/* The next task of a queue, to be filled. */
struct task *script_add(struct script *s, uint32_t rank, uint32_t queue);

/* m x n x k with result in Y of the given rank; X everywhere is read. */
struct task *script_gemm(struct script *s, uint32_t rank, uint32_t queue, uint64_t k, uint32_t target);
/* 32 x 1024 elements = 64 KiB: rows [row, row + 32) of X to the same of the target's Y. */
struct task *script_copy(struct script *s, uint32_t rank, uint32_t queue, uint64_t row, uint32_t target);
struct task *script_put(struct script *s, uint32_t rank, uint32_t queue, uint64_t row, uint32_t target, uint32_t flag);
struct task *script_nop(struct script *s, uint32_t rank, uint32_t queue, uint32_t flag, uint64_t value);

/* Runs it in a child process: SimGrid serves one engine a process. */
struct run_result script_run(struct script *s);

/* The only sample of a run that must succeed. */
uint64_t script_time_ps(struct script *s);

#endif
