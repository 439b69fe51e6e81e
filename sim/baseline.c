#include "sim/baseline.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/run/metrics.h"
#include "sim/baseline_moe.h"
#include "sim/gemm_cost.h"
#include "sim/library_cost.h"
#include "sim/nccl.h"
#include "sim/nccl_flow.h"
#include "sim/streams.h"

#define ELEMENTS_MAX (UINT64_C(1) << 44) /* of one matrix; keeps every product below 2^64 */

static enum status refuse(struct run_result *r, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum status refuse(struct run_result *r, enum status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(r->report, sizeof(r->report), format, args);
    va_end(args);
    r->status = status;
    return status;
}

static bool too_large(uint64_t rows, uint64_t cols)
{
    uint64_t elements;

    return __builtin_mul_overflow(rows, cols, &elements) || elements > ELEMENTS_MAX;
}

static enum status finish(const struct job *job, double time_ps, struct run_result *r)
{
    if (time_ps >= (double)GEMM_TIME_MAX_PS)
        return refuse(r, ST_UNSUPPORTED,
                      "machine %s: an iteration of this problem would take longer "
                      "than a thousand seconds",
                      job->machine->name);
    r->sample_ps[0] = (uint64_t)(time_ps + 0.5);
    r->sample_count = 1;
    r->epochs = 1;
    r->status = ST_OK;
    return ST_OK;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* One or two kernels on one stream (second_ps 0: one).  Isolated, the first one's launch counts,
 * and the second one's issue where the first is shorter; back to back, the slower of device and
 * host. */
static double sequence_ps(const struct job *job, double first_ps, double second_ps)
{
    double launch = (double)job->machine->host.launch_ps;
    double issue = (double)job->machine->host.issue_ps;
    double calls = second_ps > 0 ? 2 : 1;

    if (!job->timing.launch)
        return first_ps + second_ps;
    if (job->timing.mode == TIMING_PIPELINED)
        return larger(first_ps + second_ps, calls * issue);
    return launch + larger(first_ps, (calls - 1) * issue) + second_ps;
}

/* The second opinion: what the chosen algorithm takes when it is simulated. */
static void note_collective(const struct job *job, const struct nccl_comm *comm, const struct nccl_choice *choice,
                            uint64_t bytes, struct run_result *r)
{
    enum collective what = job->kernel->collective;

    if (!choice->found || bytes == 0)
        return;
    r->collective_ps = choice->time_ps;
    r->bare_ps = nccl_time_of(comm, what, choice->algorithm, choice->protocol, bytes);
    if (nccl_flow_fits(comm, choice))
        r->flow_ps = nccl_flow_time_ps(comm, job->machine, what, choice, bytes, NCCL_FLOW_FOLDED);
}

static enum status nccl_run(const struct job *job, struct run_result *r)
{
    enum collective what = job->kernel->collective;
    const struct library_cost *library = library_cost_of(job->kernel);
    double computes = (double)library->ps(job->machine, job->problem, job->world);
    uint64_t bytes = (uint64_t)metrics_collective_bytes(job->kernel, job->problem);
    struct nccl_comm comm;

    nccl_comm_init(&comm, job->machine, job->world);
    struct nccl_choice choice = nccl_corrected(&comm, what, bytes);
    snprintf(r->model, sizeof(r->model), "NCCL model %s, corrected; %s", comm.constants->version, library->table);
    nccl_choice_print(&choice, r->choice, sizeof(r->choice));
    note_collective(job, &comm, &choice, bytes, r);
    if (comm.ranks == 1)
        return finish(job, sequence_ps(job, computes, 0), r);
    if (!choice.found)
        return refuse(r, ST_INPUT,
                      "machine %s: its nccl section leaves no algorithm for this "
                      "collective",
                      job->machine->name);
    double moves = (double)choice.time_ps;
    bool first = what == COLLECTIVE_ALL_GATHER;
    return finish(job, sequence_ps(job, first ? moves : computes, first ? computes : moves), r);
}

static enum status streams_run(const struct job *job, struct streams_pieces most, struct run_result *r)
{
    bool host = job->timing.launch, isolated = job->timing.mode == TIMING_ISOLATED;
    const struct machine *m = job->machine;
    struct streams_setup setup = {
        .machine = m,
        .world = job->world,
        .problem = *job->problem,
        .collective = job->kernel->collective,
        .launch_ps = host && isolated ? m->host.launch_ps : 0,
        .issue_ps = host && isolated ? m->host.issue_ps : 0,
        .period_ps = host && !isolated ? m->host.issue_ps : 0,
        .most = most,
    };
    struct streams_time best = streams_best(&setup);

    snprintf(r->model, sizeof(r->model), "streams model; %s%s", library_cost_of(job->kernel)->table,
             job->world.nodes > 1 ? "; NCCL send/recv" : "");
    streams_cut_print(&best.cut, r->choice, sizeof(r->choice));
    return finish(job, best.time_ps, r);
}

enum status baseline_run(const struct job *job, enum baseline which, struct streams_pieces most, struct run_result *r)
{
    const struct library_cost *library = library_cost_of(job->kernel);
    const struct problem *p = job->problem;

    if (job->kernel->collective == COLLECTIVE_ALL_TO_ALL)
        return moe_baseline_run(job, which, r);
    *r = (struct run_result){.status = ST_OK};
    if (too_large(p->m, p->n) || too_large(p->m, p->k) || too_large(p->n, p->k))
        return refuse(r, ST_UNSUPPORTED,
                      "baselines: a matrix of this problem has more than 2^44 "
                      "elements");
    if (library->ps(job->machine, p, job->world) >= GEMM_TIME_MAX_PS)
        return finish(job, (double)GEMM_TIME_MAX_PS, r);
    return which == BASELINE_NCCL ? nccl_run(job, r) : streams_run(job, most, r);
}
