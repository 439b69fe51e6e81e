/* Copies one behind the other, by the CTAs of a persistent kernel, between two GPUs and both ways at once: a program,
 * simulated as any other, and run by tests/device/bench_links.c. */
#include <stdlib.h>

#include "core/log.h"
#include "core/measured/measured.h"

#define ROW_BYTES 1024
#define COLUMNS (ROW_BYTES / 2) /* of bf16 */

static uint64_t queue_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    const struct copy_run *copy = p->state;

    (void)rank, (void)queue;
    return COPY_RUN_BYTES / (copy->kib * 1024);
}

static void task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *t)
{
    const struct copy_run *copy = p->state;
    uint32_t from = copy->pull ? 1 - rank : rank;

    (void)queue;
    t->op = OP_COPY;
    t->m = copy->kib * 1024 / ROW_BYTES;
    t->n = COLUMNS;
    t->a = (struct operand){from, 0, index * t->m * t->n, t->n};
    task_store_to(t, (struct operand){1 - from, 1, index * t->m * t->n, t->n});
}

static uint64_t flag_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    (void)p, (void)rank, (void)flag;
    return 0;
}

static uint32_t no_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    (void)p, (void)rank, (void)out;
    return 0;
}

static const struct program_ops ops = {
    .queue_length = queue_length, .task = task, .flag_total = flag_total, .io = no_io};

void copy_run_emit(const struct copy_run *copy, struct program *p)
{
    *p = (struct program){.kernel = "copies", .variant = "copies", .world = {1, 2}, .ops = &ops, .state = (void *)copy};
    program_add_buffer(p, (struct buffer){"source", DTYPE_BF16, COPY_RUN_BYTES / ROW_BYTES, COLUMNS, 1});
    program_add_buffer(p, (struct buffer){"target", DTYPE_BF16, COPY_RUN_BYTES / ROW_BYTES, COLUMNS, 1});
    program_crew_drains(p, program_add_crew(p, "copy", copy->ctas), program_add_queue(p, "copy"));
}

/* Drained copies: none begins under the stores of the one before. */
double copy_run_us(const struct measured_model *model, const struct copy_run *copy, const struct machine *m)
{
    static const struct problem none = {.m = 1, .n = 1, .k = 1};
    struct machine machine = *m;
    struct program p;
    struct run_result result = {.status = ST_OK};
    struct job job = {.program = &p,
                      .world = {1, 2},
                      .kernel = model->gemm,
                      .problem = &none,
                      .machine = &machine,
                      .timing = {.mode = TIMING_ISOLATED, .iterations = 1},
                      .options = model->options};

    if (copy->drained)
        machine.copy.pipelined_ps = machine.copy.drained_ps;
    copy_run_emit(copy, &p);
    if (model->backend->run(&job, &result) < 0) {
        log_error("copies on machine %s: %s", m->name, result.report);
        return 0;
    }
    return (double)result.sample_ps[0] / 1e6;
}
