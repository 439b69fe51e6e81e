#include "core/prove.h"

#include <stdio.h>

#include "core/verify.h"

/* Bytes per task in indexes, accesses, hashes and symbols: measured at most 620 over the shipped kernels. */
#define BYTES_PER_TASK 800

static uint64_t prove_memory_bytes(const struct job *job)
{
    const struct program *p = job->program;
    uint64_t ranks = world_ranks(p->world), flags = ranks * p->flag_count;
    uint64_t epochs = 2; /* lags are at most depth - 1 */

    for (uint32_t b = 0; b < p->buffer_count; b++)
        epochs = max_u64(epochs, p->buffers[b].depth + 1u);
    return program_task_count(p) * BYTES_PER_TASK + flags * (64 + epochs * ranks * sizeof(uint16_t));
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
        snprintf(r->report, sizeof r->report, "%lu violation%s\n%.6000s",
                 (unsigned long)report.violations, report.violations > 1 ? "s" : "", report.text);
    return r->status;
}

const struct backend prove_backend = {
    .name = "verifier",
    .title = "proves programs: no deadlock, no race, every output right",
    .memory_bytes = prove_memory_bytes,
    .run = prove_run,
};
