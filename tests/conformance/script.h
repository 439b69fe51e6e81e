/* Programs written out task by task, for tests.  Flag totals are what the tasks signal. */
#ifndef TESTS_CONFORMANCE_SCRIPT_H
#define TESTS_CONFORMANCE_SCRIPT_H

#include "core/program.h"

#define SCRIPT_TASKS_MAX 32 /* a queue */
#define SCRIPT_SEGMENTS_MAX 8

/* Fills a zeroed *p, which program_fini() frees. */
void script_init(struct program *p, struct world world);

uint32_t script_buffer(struct program *p, const char *name, uint64_t rows, uint64_t cols, uint32_t depth);

/* A queue and a crew of two workers that drains it alone. */
uint32_t script_queue_and_crew(struct program *p, const char *name);

/* A task to be filled, at the queue's end. */
struct task *script_task(struct program *p, uint32_t rank, uint32_t queue, enum op op, uint64_t m, uint64_t n);

/* A segment of the only table, which all ranks share. */
void script_segment(struct program *p, struct segment s);

void script_io(struct program *p, uint32_t rank, struct io_slice slice);

/* The whole buffer holds a part of tensor A or B, or of C, from (row, col) on. */
void script_input(struct program *p, uint32_t rank, uint32_t buffer, uint32_t tensor, uint64_t row, uint64_t col);
void script_output(struct program *p, uint32_t rank, uint32_t buffer, uint64_t row, uint64_t col);

/* (0, 0) of a matrix that starts at `row` of the buffer. */
struct operand script_rows(const struct program *p, uint32_t rank, uint32_t buffer, uint64_t row);

#endif
