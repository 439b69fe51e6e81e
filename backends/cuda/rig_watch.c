/* Waits for the devices, and decides that a run hangs: no flag and no queue has moved for the
 * time-out.  Then the abort word ends every CTA, and what each was waiting for is read back. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/rig.h"
#include "backends/ops/hang_report.h"
#include "core/clock.h"

#define SPIN_NS 20000000 /* a run that is over sooner is noticed at once */
#define SLEEP_US 200
#define LOOK_NS 200000000 /* between two looks at the flags */

static enum status all_done(struct rig *r, bool *done_out)
{
    *done_out = true;
    for (uint32_t i = 0; i < r->device_count; i++) {
        cudaError_t error = cudaStreamQuery(r->devices[i].stream);

        if (error == cudaErrorNotReady)
            *done_out = false;
        else
            TRY_CUDA(r, error);
    }
    return ST_OK;
}

/* ---- progress: a sum over all counters, which only grow ---- */

static enum status add_flags(struct rig *r, struct rig_rank *rank, struct gpu_flag *room, uint64_t *sum)
{
    uint64_t counters[PROGRAM_QUEUES_MAX], count = r->program->flag_count;
    cudaStream_t side = rank->device->side;

    TRY_CUDA(r, cudaMemcpyAsync(room, rank->flags, count * sizeof *room, cudaMemcpyDeviceToHost, side));
    TRY_CUDA(r, cudaMemcpyAsync(counters, rank->counters, r->program->queue_count * sizeof *counters,
                                cudaMemcpyDeviceToHost, side));
    TRY_CUDA(r, cudaStreamSynchronize(side));
    for (uint64_t i = 0; i < count; i++)
        *sum += room[i].counter;
    for (uint32_t q = 0; q < r->program->queue_count; q++)
        *sum += counters[q];
    *sum += rank->proxy ? proxy_completed(rank->proxy) : 0;
    return ST_OK;
}

static enum status progress(struct rig *r, uint64_t *sum_out)
{
    struct gpu_flag *room = malloc((r->program->flag_count + 1) * sizeof *room);
    enum status st = room ? ST_OK : rig_fail(r, ST_MEMORY, "cuda: no memory to look at the flags");

    *sum_out = 0;
    for (uint32_t i = 0; i < r->rank_count && st == ST_OK; i++)
        st = add_flags(r, &r->ranks[i], room, sum_out);
    free(room);
    return st;
}

/* One that no longer answers does not keep the others, which may be waiting for it. */
cudaError_t rig_stop(struct rig *r)
{
    static const uint32_t one = 1;
    cudaError_t error = cudaSuccess, here;

    r->stopped_ns = clock_now_ns();
    for (uint32_t i = 0; i < r->device_count; i++) {
        here = cudaMemcpyAsync(r->devices[i].abort, &one, sizeof one, cudaMemcpyHostToDevice, r->devices[i].side);
        error = error == cudaSuccess ? here : error;
    }
    if (r->abort)
        r->abort(r);
    for (uint32_t i = 0; i < r->device_count; i++) {
        here = cudaStreamSynchronize(r->devices[i].stream);
        error = error == cudaSuccess ? here : error;
    }
    return error;
}

static enum status watch(struct rig *r)
{
    uint64_t start_ns = clock_now_ns(), look_ns = start_ns, moved_ns = start_ns, sum, last = UINT64_MAX;
    bool done;

    for (;;) {
        TRY(all_done(r, &done));
        if (done)
            return ST_OK;
        if (r->job->interrupted && *r->job->interrupted)
            return rig_fail(r, ST_INTERRUPTED, "cuda: interrupted in epoch %" PRIu64, r->epoch);
        if (clock_now_ns() - start_ns < SPIN_NS)
            continue;
        usleep(SLEEP_US);
        if (clock_now_ns() - look_ns < LOOK_NS)
            continue;
        look_ns = clock_now_ns();
        TRY(progress(r, &sum));
        if (sum != last)
            moved_ns = look_ns;
        last = sum;
        TRY(rig_check_net(r));
        if (look_ns - moved_ns > r->options->timeout_ps / 1000)
            return ST_HANG;
    }
}

enum status rig_wait(struct rig *r)
{
    enum status st = watch(r);
    cudaError_t error = st < 0 ? rig_stop(r) : cudaSuccess;

    if (st == ST_HANG && !r->broken)
        TRY_CUDA(r, error); /* what they waited for cannot be read back */
    return st;
}

/* ---- the report ---- */

static struct stuck describe(const struct rig *r, const struct gpu_worker *w, enum gpu_role role,
                             const struct gpu_stuck *g)
{
    return (struct stuck){
        .rank = w->rank,
        .crew = w->crew,
        .queue = g->queue,
        .index = g->index,
        .epoch = r->epoch,
        .phase = g->late ? WAIT_LATE : WAIT_ENTRY,
        .step = role == GPU_LOAD ? g->step : STUCK_NO_STEP,
        .flag = g->flag,
        .value = g->value,
        .wanted = g->wanted,
        .since_ps = g->since_ns * 1000,
    };
}

/* Blocked, but not by a flag. */
static struct hang_open describe_push(const struct rig *r, const struct gpu_worker *w, const struct gpu_stuck *g)
{
    return (struct hang_open){.rank = w->rank,
                              .queue = g->queue,
                              .index = g->index,
                              .epoch = r->epoch,
                              .state = "waits for room in the FIFO to its rank's proxy",
                              .held = true};
}

/* What roles of a device's workers noted: into h's two lists, which have room. */
static void collect_device(const struct rig *r, const struct device *d, struct hang *h, struct stuck *flags,
                           struct hang_open *pushes)
{
    uint64_t total = (uint64_t)d->worker_count * GPU_ROLE_COUNT;
    struct gpu_stuck *stuck = calloc(total, sizeof *stuck);

    if (stuck && cudaMemcpy(stuck, d->stuck, total * sizeof *stuck, cudaMemcpyDeviceToHost) == cudaSuccess)
        for (uint64_t i = 0; i < total; i++) {
            const struct gpu_worker *w = &d->workers[i / GPU_ROLE_COUNT];

            if (stuck[i].waits && stuck[i].flag == GPU_NO_FLAG)
                pushes[h->open_count++] = describe_push(r, w, &stuck[i]);
            else if (stuck[i].waits)
                flags[h->stuck_count++] = describe(r, w, (enum gpu_role)(i % GPU_ROLE_COUNT), &stuck[i]);
        }
    free(stuck);
}

/* Puts that were handed over and are not complete. */
static void collect_puts(const struct rig *r, const struct rig_rank *rank, struct hang *h, struct hang_open *out)
{
    const struct program *p = r->program;

    for (uint32_t q = 0; q < p->queue_count; q++) {
        uint64_t first = r->lowered.queue_first[rank->index * p->queue_count + q];
        const struct gpu_task *tasks = (const struct gpu_task *)r->lowered.tasks.items + first;

        for (uint64_t i = 0; i < program_queue_length(p, rank->index, q); i++) {
            uint64_t epoch;
            const char *state = tasks[i].kind == GPU_PUT ? put_fifo_state(&rank->fifo, tasks[i].k, &epoch) : NULL;

            if (state)
                out[h->open_count++] =
                    (struct hang_open){.rank = rank->index, .queue = q, .index = i, .epoch = epoch, .state = state};
        }
    }
}

static void collect_rank(const struct rig *r, const struct rig_rank *rank, struct hang_rank *out)
{
    uint64_t counters[PROGRAM_QUEUES_MAX];

    out->epoch = r->epoch;
    if (cudaMemcpy(counters, rank->counters, r->program->queue_count * sizeof *counters, cudaMemcpyDeviceToHost) !=
        cudaSuccess)
        return;
    for (uint32_t q = 0; q < r->program->queue_count; q++)
        out->popped[q] = min_u64(counters[q] - (r->epoch - 1) * rank->pops_per_epoch[q],
                                 program_queue_length(r->program, rank->index, q));
}

void rig_report_hang(struct rig *r, char *out, size_t out_bytes)
{
    uint64_t notes = 1 + r->lowered.put_count;
    struct world world = r->program->world;
    struct hang_rank *ranks = calloc(world_ranks(world), sizeof *ranks);
    char(*fates)[HANG_FATE_BYTES] = calloc(world.nodes, sizeof *fates);
    struct hang_open *open;
    struct stuck *flags;

    for (uint32_t i = 0; i < r->device_count; i++)
        notes += (uint64_t)r->devices[i].worker_count * GPU_ROLE_COUNT;
    flags = calloc(notes, sizeof *flags);
    open = calloc(notes, sizeof *open);
    if (flags && open && ranks && fates) {
        struct hang h = {.program = r->program, .ranks = ranks, .stuck = flags, .open = open, .stopped = r->broken};

        for (uint32_t i = 0; i < r->device_count; i++)
            collect_device(r, &r->devices[i], &h, flags, open);
        for (uint32_t i = 0; i < r->rank_count; i++) {
            collect_puts(r, &r->ranks[i], &h, open);
            collect_rank(r, &r->ranks[i], &ranks[r->first_rank + i]);
        }
        hang_mark_elsewhere(r->job->nodes, world, ranks, fates);
        hang_report_write(&h, r->broken ? r->why : "no progress: no flag and no queue has moved for the time-out", out,
                          out_bytes);
    }
    free(open);
    free(flags);
    free(ranks);
    free(fates);
}
