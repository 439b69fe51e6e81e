#include "sim/baseline_moe.h"

#include <stdio.h>

#include "sim/gemm_cost.h"
#include "sim/nccl.h"

#define BF16_BYTES 2

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Grouped send / receive: both kinds of links at once, and the slower one counts. */
static double exchange_ps(const struct job *job, uint64_t inter_bytes, uint64_t intra_bytes, uint64_t messages)
{
    const struct machine *m = job->machine;
    double nics = (double)m->nic.per_gpu;
    double share = m->library.exchange;
    double inter = (double)inter_bytes * 1e12 / (m->nic.rate * nics * share) +
                   (double)messages * (double)m->nic.message_ps / nics;
    double fixed = (double)(nccl_send_recv_fixed_ps(m) - (inter_bytes ? 0 : m->nic.latency_ps));

    return fixed + larger(inter_bytes ? inter : 0, (double)intra_bytes * 1e12 / (m->nvlink.rate * share));
}

/* Reads and writes as many bytes, on all SMs. */
static double reorder_ps(const struct job *job, uint64_t bytes)
{
    double rate = job->machine->gpu.memory_rate;

    return rate > 0 ? 2 * (double)bytes * 1e12 / rate : 0;
}

static double gemm_part_ps(const struct job *job, const struct traffic *t)
{
    struct problem work = job->kernel->family->rank_gemm(job->problem, job->world);
    uint64_t sms = job->machine->gpu.sms, step_ps = gemm_step_ps(job->machine, work, sms);

    work.m = t->tile_rows_max;
    return (double)gemm_piece_ps(job->machine, work, sms, step_ps);
}

struct moe_baseline moe_baseline_time(const struct job *job, uint64_t epoch)
{
    const struct moe_problem *p = &job->problem->moe;
    uint64_t far = world_ranks(job->world) - job->world.gpus_per_node;
    double host = job->timing.launch ? (double)job->machine->host.launch_ps : 0, shared;
    struct traffic t;

    job->kernel->traffic(job->problem, job->world, job->seed, epoch, job->machine->gemm.tile_m, &t);
    shared = host + reorder_ps(job, t.rows_max * p->hidden * BF16_BYTES) + gemm_part_ps(job, &t);
    if (world_ranks(job->world) == 1)
        return (struct moe_baseline){shared, shared};
    shared += exchange_ps(job, far > 0, 0, far) + host; /* sizes; the host hears of them */
    return (struct moe_baseline){
        .each_ps = shared + reorder_ps(job, t.inter_each_max + t.intra_each_max) +
                   exchange_ps(job, t.inter_each_max, t.intra_each_max, far),
        .once_ps = shared + reorder_ps(job, t.inter_once_max) + reorder_ps(job, t.intra_once_max) +
                   (far > 0 ? exchange_ps(job, t.inter_once_max, 0, job->world.nodes - 1) : 0) +
                   exchange_ps(job, 0, t.intra_once_max, 0),
    };
}

static bool expands(const struct job *job, double each_ps, double once_ps)
{
    return !job->machine->library.dedup || each_ps < once_ps;
}

enum status moe_baseline_run(const struct job *job, enum baseline which, struct run_result *r)
{
    uint64_t count = min_u64(max_u64(job->timing.iterations, 1), RESULT_SAMPLES_MAX);
    double each = 0, once = 0;
    bool   expand;

    *r = (struct run_result){.status = ST_OK, .epochs = count, .sample_count = (uint32_t)count};
    if (which == BASELINE_STREAMS) {
        snprintf(r->report, sizeof r->report, "no streams baseline sends tokens to experts: list nccl");
        return r->status = ST_UNSUPPORTED;
    }
    for (uint64_t i = 0; i < count; i++) {
        struct moe_baseline b = moe_baseline_time(job, job->timing.warmup + 1 + i);

        each += b.each_ps / (double)count;
        once += b.once_ps / (double)count;
        r->sample_ps[i] = (uint64_t)((expands(job, b.each_ps, b.once_ps) ? b.each_ps : b.once_ps) + 0.5);
    }
    expand = expands(job, each, once);
    if (job->timing.mode == TIMING_PIPELINED) {
        r->sample_count = 1;
        r->sample_ps[0] = (uint64_t)((expand ? each : once) + 0.5);
    }
    snprintf(r->model, sizeof r->model, "NCCL send/recv model; GEMM table");
    snprintf(r->choice, sizeof r->choice, "%s; %s takes %.2fx",
             expand ? "expanded rows" : "de-duplicated", expand ? "de-duplicated" : "expanded rows",
             expand ? once / each : each / once);
    return ST_OK;
}
