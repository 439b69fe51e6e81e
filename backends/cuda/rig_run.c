/* The epochs of a run, and their times. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/rig.h"

static enum status launch(struct rig *r, struct device *d)
{
    d->program.epoch = r->epoch;
    TRY_CUDA(r, cudaSetDevice(d->index));
    TRY_CUDA(r, gpu_interpreter_launch(&d->program, lowered_attends(&r->lowered), d->worker_count,
                                       d->stream));
    return ST_OK;
}

/* Several devices stand at a gate until all have everything enqueued, so that they start together.
 */
static enum status enqueue_gates(struct rig *r)
{
    if (r->device_count == 1)
        return ST_OK;
    r->gates++;
    for (uint32_t i = 0; i < r->device_count; i++) {
        TRY_CUDA(r, cudaSetDevice(r->devices[i].index));
        TRY_CUDA(r, gpu_gate_launch(r->gate, r->gates, r->devices[i].stream));
    }
    return ST_OK;
}

static void open_gates(struct rig *r)
{
    __atomic_store_n(r->gate, r->gates, __ATOMIC_RELEASE);
}

static enum status synchronize(struct rig *r)
{
    for (uint32_t i = 0; i < r->device_count; i++) {
        TRY_CUDA(r, cudaSetDevice(r->devices[i].index));
        TRY_CUDA(r, cudaStreamSynchronize(r->devices[i].stream));
    }
    return ST_OK;
}

enum status rig_enqueue(struct rig *r)
{
    r->epoch++;
    for (uint32_t i = 0; i < r->device_count; i++)
        TRY(launch(r, &r->devices[i]));
    return ST_OK;
}

/* `epochs` launches on every device between its two events. */
static enum status enqueue_epochs(struct rig *r, uint64_t epochs)
{
    for (uint32_t i = 0; i < r->device_count; i++)
        TRY_CUDA(r, cudaEventRecord(r->devices[i].begin, r->devices[i].stream));
    for (uint64_t e = 0; e < epochs; e++)
        TRY(rig_enqueue(r));
    for (uint32_t i = 0; i < r->device_count; i++)
        TRY_CUDA(r, cudaEventRecord(r->devices[i].end, r->devices[i].stream));
    return ST_OK;
}

static enum status slowest_device(struct rig *r, uint64_t *ps_out)
{
    float ms, most = 0;

    for (uint32_t i = 0; i < r->device_count; i++) {
        TRY_CUDA(r, cudaEventElapsedTime(&ms, r->devices[i].begin, r->devices[i].end));
        if (ms > most)
            most = ms;
    }
    *ps_out = (uint64_t)(most * 1e9);
    return ST_OK;
}

/* Epochs back to back; the time of all of them, of the host with its launches or of the devices
 * alone. */
static enum status run_epochs(struct rig *r, uint64_t epochs, uint64_t *ps_out)
{
    uint64_t begin_ns;

    TRY(synchronize(r));
    TRY(enqueue_gates(r));
    begin_ns = rig_now_ns();
    TRY(enqueue_epochs(r, epochs));
    open_gates(r);
    TRY(rig_wait(r));
    *ps_out = (rig_now_ns() - begin_ns) * 1000;
    TRY(rig_check_routes(r));
    return r->job->timing.launch ? ST_OK : slowest_device(r, ps_out);
}

static void add_sample(struct run_result *result, uint64_t ps)
{
    if (result->sample_count < RESULT_SAMPLES_MAX)
        result->sample_ps[result->sample_count++] = ps;
}

/* One at a time, with new inputs and a check. */
static enum status run_checked(struct rig *r, uint64_t *ps_out)
{
    TRY(rig_begin(r, r->epoch + 1, false));
    TRY(run_epochs(r, 1, ps_out));
    return rig_end(r, r->epoch);
}

static uint64_t deepest_buffer(const struct rig *r)
{
    uint64_t depth = 1;

    for (uint32_t i = 0; i < r->program->buffer_count; i++)
        depth = max_u64(depth, r->program->buffers[i].depth);
    return depth;
}

/* Noise in every copy of the inputs. */
static enum status write_noise(struct rig *r)
{
    for (uint64_t e = 1; e <= deepest_buffer(r); e++)
        TRY(rig_begin(r, r->epoch + e, true));
    return ST_OK;
}

static enum status run_isolated(struct rig *r, struct run_result *result)
{
    uint64_t ps;

    for (uint32_t i = 0; i < r->job->timing.iterations; i++) {
        TRY(r->job->data ? run_checked(r, &ps) : run_epochs(r, 1, &ps));
        add_sample(result, ps);
    }
    return ST_OK;
}

/* Back to back; the time of one is an average. */
static enum status run_pipelined(struct rig *r, struct run_result *result)
{
    uint64_t ps, iterations = max_u64(r->job->timing.iterations, 1);

    TRY(run_epochs(r, iterations, &ps));
    add_sample(result, ps / iterations);
    return ST_OK;
}

/* The warm-up is checked.  If the job wants data, so is every other epoch, and none overlaps
 * another. */
static enum status run_all(struct rig *r, struct run_result *result)
{
    const struct job *job = r->job;
    uint64_t ps, warmup = max_u64(job->timing.warmup, !job->data);

    for (uint64_t i = 0; i < warmup; i++)
        TRY(run_checked(r, &ps));
    if (job->data)
        return run_isolated(r, result);
    TRY(write_noise(r));
    return job->timing.mode == TIMING_ISOLATED ? run_isolated(r, result) : run_pipelined(r, result);
}

static void fill(const struct rig *r, struct run_result *result)
{
    result->epochs = r->epoch;
    result->tasks = r->lowered.tasks.count * r->epoch;
    result->puts = r->lowered.put_count * r->epoch;
    for (uint32_t i = 0; i < r->rank_count; i++) {
        result->put_bytes += __atomic_load_n(&r->ranks[i].proxy.bytes, __ATOMIC_RELAXED);
        result->put_control_bytes +=
            __atomic_load_n(&r->ranks[i].proxy.control_bytes, __ATOMIC_RELAXED);
        result->rows_dropped += r->ranks[i].dropped;
    }
    result->elements_checked = r->check.checked;
    result->elements_wrong = r->check.wrong;
    snprintf(result->model, sizeof result->model, "%u x %.48s", r->device_count,
             r->devices[0].name);
}

enum status rig_run(struct rig *r, struct run_result *result)
{
    enum status st = run_all(r, result);

    fill(r, result);
    if (st < 0 || r->check.wrong == 0)
        return st;
    return rig_fail(r, ST_WRONG, "%s\n%" PRIu64 " of %" PRIu64 " elements are wrong",
                    r->check.first, r->check.wrong, r->check.checked);
}
