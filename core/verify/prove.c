#include "core/verify/prove.h"

#include <stdio.h>

#include "core/verify/verify.h"

/* Bytes per task in indexes, accesses, hashes and symbols: measured at most 620 over the shipped kernels. */
#define BYTES_PER_TASK 800

#define BYTES_PER_GUARD 128

/* Tasks of one queue are of one kind. */
uint64_t prove_guards(const struct program *p)
{
    uint64_t guards = 0;

    for (uint32_t rank = 0; rank < world_ranks(p->world); rank++)
        for (uint32_t q = 0; q < p->queue_count; q++) {
            uint64_t length = program_queue_length(p, rank, q);
            struct task t;

            if (length == 0)
                continue;
            program_task(p, rank, q, length - 1, &t);
            guards += length * t.indexed.count;
        }
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
