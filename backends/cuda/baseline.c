#include "backends/cuda/baseline.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/statistics/stats.h"

/* ---- what it can be for ---- */

static enum status refuse(struct run_result *r, const char *why)
{
    snprintf(r->report, sizeof r->report, "%s", why);
    return ST_UNSUPPORTED;
}

static const struct baseline_kind *const kinds[] = {&baseline_gemm, &baseline_attention, &baseline_moe,
                                                    &baseline_layer};

static const struct baseline_kind *kind_of(const struct kernel *k)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i]->family == k->family)
            return kinds[i];
    return NULL;
}

static enum status check(const struct job *job, enum baseline which, struct run_result *r)
{
    const struct baseline_kind *kind = kind_of(job->kernel);

    if (!kind)
        return refuse(r, "on GPUs this kernel has no baseline");
    if (which == BASELINE_STREAMS && !kind->overlaps)
        return refuse(r, "on GPUs only the GEMM kernels have hand-overlapped streams");
    if (job->world.nodes > 1)
        return refuse(r, "on GPUs baselines run on one node");
    return ST_OK;
}

/* ---- create, destroy ---- */

void baseline_start_program(struct baseline_rig *b, const struct program_ops *ops)
{
    b->program = (struct program){
        .kernel = b->job.kernel->name, .variant = "baseline", .world = b->job.world, .ops = ops, .state = b};
}

uint32_t baseline_add(struct baseline_rig *b, const char *name, enum dtype dtype, uint64_t rows, uint64_t cols)
{
    return program_add_buffer(&b->program, (struct buffer){name, dtype, rows, cols, 1});
}

void *baseline_at(const struct baseline_rig *b, uint32_t rank, uint32_t buffer, uint64_t row)
{
    const struct buffer *x = &b->program.buffers[buffer];

    return b->rig.ranks[rank].window + program_buffer_offset(&b->program, buffer, b->rig.epoch) +
           row * x->cols * dtype_bytes(x->dtype);
}

/* Nothing of an epoch can be seen before it is over: the time-out is for each that is under way. */
static void copy_job(struct baseline_rig *b, const struct job *job)
{
    b->job = *job;
    b->options = *(const struct cuda_options *)job->options;
    b->options.timeout_ps *= max_u64(job->timing.iterations, 1);
    b->job.options = &b->options;
    b->job.program = &b->program;
    b->kind = kind_of(job->kernel);
    b->ranks = world_ranks(job->world);
}

static enum status open_blas(struct baseline_rig *b)
{
    char why[256];

    for (uint32_t i = 0; i < b->rig.device_count; i++) {
        TRY_CUDA(&b->rig, cudaSetDevice(b->rig.devices[i].index));
        if (!cublas_open(&b->blas[i], why, sizeof why))
            return rig_fail(&b->rig, ST_UNSUPPORTED, "%s", why);
    }
    return ST_OK;
}

static void abort_nccl(struct rig *r)
{
    nccl_abort(&((struct baseline_rig *)r)->nccl);
}

static enum status open_all(struct baseline_rig *b, enum baseline which)
{
    b->kind->add_program(b, which);
    TRY(rig_create(&b->job, &b->rig));
    b->rig.enqueue = which == BASELINE_NCCL ? b->kind->enqueue : baseline_enqueue_streams;
    b->rig.prepare = b->kind->begin;
    b->rig.abort = abort_nccl;
    b->cut = (struct baseline_cut){.whole = true, .others = 1, .own = 1};
    TRY(open_blas(b));
    return which == BASELINE_NCCL ? baseline_open_nccl(b) : baseline_open_streams(b);
}

static void close_all(struct baseline_rig *b)
{
    baseline_close_streams(b);
    baseline_routing_free(&b->experts.routing);
    nccl_close(&b->nccl);
    for (uint32_t i = 0; i < DEVICES_MAX; i++)
        cublas_close(&b->blas[i]);
    rig_destroy(&b->rig);
}

/* ---- before it is timed ---- */

/* What libraries prepare at their first call would wait for a device that stands at a gate. */
static enum status call_once(struct baseline_rig *b)
{
    TRY(rig_enqueue(&b->rig));
    return rig_wait(&b->rig);
}

#define TRIALS 5

static enum status median_of_trials(struct baseline_rig *b, uint64_t *ps_out)
{
    uint64_t ps[TRIALS];

    TRY(call_once(b));
    for (int i = 0; i < TRIALS; i++)
        TRY(rig_run_epochs(&b->rig, 1, &ps[i]));
    *ps_out = stats_of(ps, TRIALS).median;
    return ST_OK;
}

struct search {
    struct baseline_cut best;
    uint64_t best_ps;
};

static enum status try_cut(struct baseline_rig *b, struct baseline_cut cut, struct search *s)
{
    uint64_t ps;

    b->cut = cut;
    TRY(median_of_trials(b, &ps));
    if (s->best_ps == 0 || ps < s->best_ps)
        *s = (struct search){cut, ps};
    return ST_OK;
}

#define PIECES_MAX 32
#define OWN_PIECES_MAX 4

/* Into 1, 2, 4 .. pieces, and the whole; what was fastest stays. */
static enum status search_cut(struct baseline_rig *b)
{
    uint32_t own_max = b->job.kernel->collective == COLLECTIVE_ALL_REDUCE ? OWN_PIECES_MAX : 1;
    struct search s = {.best_ps = 0};

    for (uint32_t own = 1; own <= own_max; own *= 2) {
        TRY(try_cut(b, (struct baseline_cut){.whole = true, .others = 1, .own = own}, &s));
        for (uint32_t others = 1; others <= PIECES_MAX; others *= 2)
            TRY(try_cut(b, (struct baseline_cut){.others = others, .own = own}, &s));
    }
    b->cut = s.best;
    return ST_OK;
}

static void describe_cut(const struct baseline_rig *b, char *out, size_t out_bytes)
{
    char own[32] = "";

    if (b->cut.own > 1)
        snprintf(own, sizeof own, ", own rows in %u", b->cut.own);
    if (b->ranks == 1)
        snprintf(out, out_bytes, "one GPU");
    else if (b->cut.whole)
        snprintf(out, out_bytes, "no overlap%s", own);
    else
        snprintf(out, out_bytes, "%u piece%s%s", b->cut.others, b->cut.others == 1 ? "" : "s", own);
}

static enum status prepare_streams(struct baseline_rig *b, struct run_result *result)
{
    if (b->ranks > 1)
        TRY(search_cut(b));
    describe_cut(b, result->choice, sizeof result->choice);
    return call_once(b);
}

static void describe_nccl(const struct baseline_rig *b, char *out, size_t out_bytes)
{
    const char *detail = b->kind->detail;
    int version = b->nccl.version;

    if (b->ranks == 1)
        snprintf(out, out_bytes, "%s", detail);
    else
        snprintf(out, out_bytes, "NCCL %d.%d.%d%s%s", version / 10000, version % 10000 / 100, version % 100,
                 detail[0] ? ", " : "", detail);
}

static enum status prepare_nccl(struct baseline_rig *b, struct run_result *result)
{
    uint64_t epoch;

    TRY(call_once(b));
    describe_nccl(b, result->choice, sizeof result->choice);
    if (b->ranks == 1)
        return ST_OK;
    epoch = b->rig.epoch;
    b->rig.enqueue = b->kind->collect;
    TRY(median_of_trials(b, &result->collective_ps));
    b->rig.enqueue = b->kind->enqueue;
    b->rig.epoch = epoch; /* these had no launch, and launches count */
    return ST_OK;
}

/* A stream that stands at a gate takes about a thousand calls; the host would wait for ever to enqueue more. */
#define CALLS_MAX 400

static enum status prepare(struct baseline_rig *b, enum baseline which, struct run_result *result)
{
    uint64_t calls;

    TRY(rig_begin(&b->rig, 1, true));
    TRY(which == BASELINE_NCCL ? prepare_nccl(b, result) : prepare_streams(b, result));
    calls = b->calls;
    TRY(call_once(b));
    calls = b->calls - calls;
    if (b->rig.device_count > 1 && calls > (uint64_t)CALLS_MAX * b->rig.device_count)
        return rig_fail(&b->rig, ST_UNSUPPORTED,
                        "an epoch is %llu calls for each GPU, more than the %d that are sure to find room in a stream",
                        (unsigned long long)calls / b->rig.device_count, CALLS_MAX);
    b->rig.epochs_at_once = max_u64(1, CALLS_MAX / calls);
    return rig_poison(&b->rig);
}

enum status baseline_measure(const struct job *job, enum baseline which, struct run_result *result)
{
    struct baseline_rig *b;
    enum status st = check(job, which, result);

    if (st < 0)
        return st;
    b = calloc(1, sizeof *b);
    if (!b)
        return ST_MEMORY;
    copy_job(b, job);
    st = open_all(b, which);
    if (st == ST_OK)
        st = prepare(b, which, result);
    if (st == ST_OK)
        st = rig_run(&b->rig, result);
    if (st == ST_HANG)
        snprintf(result->report, sizeof result->report, "the library calls of an epoch did not come to an end");
    else if (st < 0)
        snprintf(result->report, sizeof result->report, "%s", b->rig.why);
    close_all(b);
    free(b);
    return st;
}
