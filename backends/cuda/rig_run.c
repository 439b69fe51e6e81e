/* The epochs of a run, and their times. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/rig.h"
#include "core/clock.h"

static enum status launch(struct rig *r, struct device *d)
{
    const struct gpu_interpreter *by = r->traced ? &gpu_interpreter_traced : &gpu_interpreter;

    d->program.epoch = r->epoch;
    TRY_CUDA(r, cudaSetDevice(d->index));
    TRY_CUDA(r, by->launch(&d->program, lowered_needs(&r->lowered), d->worker_count, d->stream));
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

enum status rig_launch(struct rig *r)
{
    for (uint32_t i = 0; i < r->device_count; i++)
        TRY(launch(r, &r->devices[i]));
    return ST_OK;
}

enum status rig_enqueue(struct rig *r)
{
    r->epoch++;
    return r->enqueue ? r->enqueue(r) : rig_launch(r);
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

/* Gates are open afterwards, whatever happened: nobody could free the memory of a device that stands
 * at one. */
static enum status start_epochs(struct rig *r, uint64_t epochs, uint64_t *begin_ns_out)
{
    enum status st = enqueue_gates(r);

    *begin_ns_out = clock_now_ns();
    if (st == ST_OK)
        st = enqueue_epochs(r, epochs);
    open_gates(r);
    if (st < 0)
        rig_stop(r);
    return st;
}

enum status rig_run_epochs(struct rig *r, uint64_t epochs, uint64_t *ps_out)
{
    uint64_t begin_ns;

    TRY(synchronize(r));
    if (r->traced)
        TRY(rig_prepare_trace(r));
    TRY(rig_meet(r));
    TRY(start_epochs(r, epochs, &begin_ns));
    TRY(rig_wait(r));
    *ps_out = (clock_now_ns() - begin_ns) * 1000;
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
    TRY(rig_run_epochs(r, 1, ps_out));
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
        TRY(r->job->data ? run_checked(r, &ps) : rig_run_epochs(r, 1, &ps));
        add_sample(result, ps);
    }
    return ST_OK;
}

/* Back to back; the time of one is an average. */
static enum status run_pipelined(struct rig *r, struct run_result *result)
{
    uint64_t ps, iterations = max_u64(r->job->timing.iterations, 1);

    if (r->epochs_at_once)
        iterations = min_u64(iterations, r->epochs_at_once);
    TRY(rig_run_epochs(r, iterations, &ps));
    add_sample(result, ps / iterations);
    return ST_OK;
}

/* Traced is what is not timed: the first epoch, which would show a hang, if others warm up behind
 * it; */
static enum status warm_up(struct rig *r)
{
    uint64_t ps, count = max_u64(r->job->timing.warmup, !r->job->data);

    for (uint64_t i = 0; i < count; i++) {
        r->traced = r->job->trace && i == 0 && count > 1;
        TRY(run_checked(r, &ps));
    }
    r->traced = false;
    return ST_OK;
}

/* and one more, whose trace is told. */
static enum status run_traced(struct rig *r)
{
    uint64_t ps;

    r->traced = true;
    return r->job->data ? run_checked(r, &ps) : rig_run_epochs(r, 1, &ps);
}

/* The warm-up is checked.  If the job wants data, so is every other epoch, and none overlaps
 * another. */
static enum status run_all(struct rig *r, struct run_result *result)
{
    const struct job *job = r->job;

    TRY(warm_up(r));
    if (!job->data)
        TRY(write_noise(r));
    if (job->data || job->timing.mode == TIMING_ISOLATED)
        TRY(run_isolated(r, result));
    else
        TRY(run_pipelined(r, result));
    return job->trace ? run_traced(r) : ST_OK;
}

/* "2 x NVIDIA H200, verbs direct"; "4 x 1/2 NVIDIA H200" where GPUs are shared */
static void fill_model(const struct rig *r, struct run_result *result)
{
    static const char *const reaches[] = {[REACH_COPIES] = "", [REACH_STAGED] = " staged", [REACH_DIRECT] = " direct"};
    char share[16] = "";
    int used;

    if (r->options->shares > 1)
        snprintf(share, sizeof share, "1/%u ", (uint32_t)r->options->shares);
    used = snprintf(result->model, sizeof result->model, "%u x %s%.40s", r->device_count, share, r->devices[0].name);
    if (r->reach != REACH_COPIES)
        snprintf(result->model + used, sizeof result->model - (size_t)used, ", %s%s", r->way.transport->name,
                 reaches[r->reach]);
}

static void fill(const struct rig *r, struct run_result *result)
{
    result->epochs = r->epoch;
    result->tasks = r->lowered.tasks.count * r->epoch;
    result->puts = r->lowered.put_count * r->epoch;
    for (uint32_t i = 0; i < r->rank_count; i++) {
        result->put_bytes += __atomic_load_n(&r->ranks[i].fifo.bytes, __ATOMIC_RELAXED);
        result->put_control_bytes += __atomic_load_n(&r->ranks[i].fifo.control_bytes, __ATOMIC_RELAXED);
        result->rows_dropped += r->ranks[i].dropped;
    }
    result->proxy = r->puts;
    result->elements_checked = r->check.checked;
    result->elements_wrong = r->check.wrong;
    fill_model(r, result);
}

enum status rig_run(struct rig *r, struct run_result *result)
{
    enum status st = run_all(r, result), stopped;
    cudaError_t traced;

    if (st == ST_OK)
        st = rig_await_puts(r);
    if (st == ST_OK)
        st = rig_meet(r); /* the proxies serve the other nodes until all have come to the end */
    stopped = rig_stop_proxies(r);
    st = st < 0 ? st : stopped;
    fill(r, result);
    traced = rig_tell_trace(r); /* of a run that failed, too, if the devices still answer */
    if (st < 0)
        return st;
    TRY_CUDA(r, traced);
    if (r->check.wrong == 0)
        return st;
    return rig_fail(r, ST_WRONG, "%s\n%" PRIu64 " of %" PRIu64 " elements are wrong", r->check.first, r->check.wrong,
                    r->check.checked);
}
