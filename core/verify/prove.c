#include "core/verify/prove.h"

#include <stdio.h>
#include <string.h>

#include "core/verify/verify.h"

/* Bytes per task in indexes, accesses, hashes and symbols: measured at most 620 over the shipped kernels. */
#define BYTES_PER_TASK 800

#define BYTES_PER_GUARD 128

/* Reads of rows by index that tell the verifier the same, which it judges once. */
static bool reads_alike(const struct task *x, const struct task *y)
{
    return x->a.buffer == y->a.buffer && x->wait_count == y->wait_count && x->signal_count == y->signal_count &&
           memcmp(&x->indexed, &y->indexed, sizeof x->indexed) == 0 &&
           memcmp(x->waits, y->waits, x->wait_count * sizeof *x->waits) == 0 &&
           memcmp(x->signals, y->signals, x->signal_count * sizeof *x->signals) == 0;
}

static uint64_t queue_guards(const struct program *p, uint32_t rank, uint32_t queue)
{
    uint64_t length = program_queue_length(p, rank, queue), guards = 0;
    struct task t, last = {.op = OP_NOP};

    for (uint64_t i = 0; i < length; i++) {
        program_task(p, rank, queue, i, &t);
        if (t.indexed.count == 0 || reads_alike(&t, &last))
            continue;
        guards += t.indexed.count;
        last = t;
    }
    return guards;
}

uint64_t prove_guards(const struct program *p)
{
    uint64_t guards = 0;

    for (uint32_t rank = 0; rank < world_ranks(p->world); rank++)
        for (uint32_t q = 0; q < p->queue_count; q++)
            guards += queue_guards(p, rank, q);
    return guards;
}

static uint64_t prove_memory_bytes(const struct job *job)
{
    const struct program *p = job->program;
    uint64_t ranks = world_ranks(p->world), flags = ranks * p->flag_count;
    uint64_t epochs = 2; /* lags are at most depth - 1 */

    for (uint32_t b = 0; b < p->buffer_count; b++)
        epochs = max_u64(epochs, p->buffers[b].depth + 1u);
    return program_task_count(p) * BYTES_PER_TASK + prove_guards(p) * BYTES_PER_GUARD +
           flags * (64 + epochs * ranks * sizeof(uint16_t));
}

static enum status prove_run(const struct job *job, struct run_result *r)
{
    struct problem global = job->kernel->global(job->problem, job->world);
    struct verify_report report;

    r->status = verify_program(job->program, &global, job->machine->gpu.sms, &report);
    r->tasks = report.tasks;
    r->epochs = report.epochs;
    r->orderings = report.orderings;
    if (report.violations)
        snprintf(r->report, sizeof r->report, "%lu violation%s\n%.6000s", (unsigned long)report.violations,
                 report.violations > 1 ? "s" : "", report.text);
    return r->status;
}

const struct backend prove_backend = {
    .name = "verifier",
    .title = "proves programs: no deadlock, no race, every output right",
    .memory_bytes = prove_memory_bytes,
    .run = prove_run,
};
