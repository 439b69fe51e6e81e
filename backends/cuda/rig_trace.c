/* Traces: epochs that are not timed are run by the interpreter that leaves records, and those of
 * the last one are told to the job's sink. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/device_log.h"
#include "backends/cuda/rig.h"
#include "core/clock.h"

#define RECORDS_BYTES (32u << 20) /* of a device */

/* ---- create, destroy ---- */

static enum status create_device(struct rig *r, struct device *d)
{
    struct gpu_program *p = &d->program;

    p->records_max = (uint32_t)(RECORDS_BYTES / sizeof *p->records / max_u64(d->worker_count, 1));
    TRY_CUDA(r, cudaSetDevice(d->index));
    TRY_CUDA(r, gpu_interpreter_traced.prepare());
    TRY_CUDA(r, cudaMalloc((void **)&p->logs, d->worker_count * sizeof *p->logs));
    TRY_CUDA(r, cudaMalloc((void **)&p->records, RECORDS_BYTES));
    return ST_OK;
}

static enum status create_rank(struct rig *r, struct rig_rank *rank)
{
    uint64_t puts = r->lowered.puts[rank->index].count;

    rank->fifo.arrived_ns = calloc(puts + 1, sizeof *rank->fifo.arrived_ns);
    return rank->fifo.arrived_ns ? ST_OK : rig_fail(r, ST_MEMORY, "cuda: no memory for the times of puts");
}

enum status rig_create_trace(struct rig *r)
{
    if (!r->job->trace)
        return ST_OK;
    TRY_CUDA(r, cudaHostAlloc((void **)&r->ping, sizeof *r->ping, cudaHostAllocPortable));
    for (uint32_t i = 0; i < r->rank_count; i++)
        TRY(create_rank(r, &r->ranks[i]));
    for (uint32_t i = 0; i < r->device_count; i++)
        TRY(create_device(r, &r->devices[i]));
    return ST_OK;
}

void rig_destroy_trace(struct rig *r)
{
    for (uint32_t i = 0; i < r->device_count; i++) {
        cudaFree(r->devices[i].program.logs);
        cudaFree(r->devices[i].program.records);
    }
    cudaFreeHost(r->ping);
}

/* ---- before a traced launch ---- */

#define PINGS 16
#define ANSWER_NS 1000000000

/* The device reads its timer about half-way between question and answer; the fastest round says it
 * best. */
static enum status ping(struct rig *r, struct device *d, uint32_t number, uint64_t *fastest_ns)
{
    uint64_t begin_ns = clock_now_ns(), took_ns;

    __atomic_store_n(&r->ping->asked, number, __ATOMIC_RELEASE);
    while (__atomic_load_n(&r->ping->answered, __ATOMIC_ACQUIRE) != number)
        if (clock_now_ns() - begin_ns > ANSWER_NS)
            return rig_fail(r, ST_ENVIRONMENT, "cuda: device %d does not tell its time", d->index);
    took_ns = clock_now_ns() - begin_ns;
    if (took_ns < *fastest_ns) {
        *fastest_ns = took_ns;
        d->host_ahead_ns = begin_ns + took_ns / 2 - r->ping->ns;
    }
    return ST_OK;
}

static enum status compare_clocks(struct rig *r, struct device *d)
{
    uint64_t fastest_ns = UINT64_MAX;

    *r->ping = (struct gpu_ping){0};
    TRY_CUDA(r, gpu_ping_launch(r->ping, PINGS, d->stream));
    for (uint32_t i = 1; i <= PINGS; i++)
        TRY(ping(r, d, i, &fastest_ns));
    TRY_CUDA(r, cudaStreamSynchronize(d->stream));
    return ST_OK;
}

enum status rig_prepare_trace(struct rig *r)
{
    for (uint32_t i = 0; i < r->rank_count; i++)
        memset(r->ranks[i].fifo.arrived_ns, 0,
               r->lowered.puts[r->ranks[i].index].count * sizeof *r->ranks[i].fifo.arrived_ns);
    for (uint32_t i = 0; i < r->device_count; i++) {
        struct device *d = &r->devices[i];

        TRY_CUDA(r, cudaSetDevice(d->index));
        TRY(compare_clocks(r, d));
        TRY_CUDA(r, cudaMemsetAsync(d->program.logs, 0, d->worker_count * sizeof *d->program.logs, d->stream));
        TRY_CUDA(r, cudaMemsetAsync(d->program.records, 0, RECORDS_BYTES, d->stream));
        TRY_CUDA(r, cudaStreamSynchronize(d->stream));
    }
    return ST_OK;
}

/* ---- afterwards ---- */

/* A device's, on the host. */
struct device_records {
    const struct device *device;
    struct gpu_log *logs;
    struct gpu_record *records;
    uint64_t tick_ns;
};

static uint64_t put_arrival(const void *arg, uint32_t rank, uint32_t queue, uint64_t index)
{
    const struct rig *r = arg;
    uint64_t first = r->lowered.queue_first[rank * r->program->queue_count + queue];
    const struct gpu_task *t = (const struct gpu_task *)r->lowered.tasks.items + first + index;

    assert(t->kind == GPU_PUT);
    return rig_rank(r, rank)->fifo.arrived_ns[t->k];
}

static uint64_t shortest_tick(const struct device_records *x)
{
    uint64_t tick_ns = 0;

    for (uint32_t i = 0; i < x->device->worker_count; i++)
        if (x->logs[i].tick_ns > 0 && (tick_ns == 0 || x->logs[i].tick_ns < tick_ns))
            tick_ns = x->logs[i].tick_ns;
    return tick_ns;
}

/* The workers of a crew follow each other. */
static uint32_t place_in_crew(const struct device *d, uint32_t worker)
{
    uint32_t first = worker;

    while (first > 0 && d->workers[first - 1].rank == d->workers[worker].rank &&
           d->workers[first - 1].crew == d->workers[worker].crew)
        first--;
    return worker - first;
}

static void read_worker(const struct rig *r, const struct device_records *x, uint32_t i, struct trace_log *out)
{
    const struct device *d = x->device;
    uint32_t records_max = d->program.records_max;

    device_log_read(&(struct device_log){.program = r->program,
                                         .epoch = r->epoch,
                                         .lane = {d->workers[i].rank, d->workers[i].crew, place_in_crew(d, i)},
                                         .clock = device_clock_of(&x->logs[i], x->tick_ns, d->host_ahead_ns),
                                         .head = &x->logs[i],
                                         .records = x->records + (uint64_t)i * records_max,
                                         .records_max = records_max,
                                         .aborted_ns = r->stopped_ns,
                                         .put_arrival = put_arrival,
                                         .put_arg = r},
                    out);
}

static cudaError_t copy_device(struct device_records *x)
{
    const struct device *d = x->device;
    size_t logs_bytes = d->worker_count * sizeof *x->logs;
    cudaError_t error;

    x->logs = malloc(logs_bytes);
    x->records = malloc(RECORDS_BYTES);
    if (!x->logs || !x->records)
        return cudaErrorMemoryAllocation;
    error = cudaMemcpy(x->logs, d->program.logs, logs_bytes, cudaMemcpyDeviceToHost);
    if (error != cudaSuccess)
        return error;
    return cudaMemcpy(x->records, d->program.records, RECORDS_BYTES, cudaMemcpyDeviceToHost);
}

/* *begin_ns: when the first worker began, by the host's clock. */
static cudaError_t read_device(const struct rig *r, const struct device *d, struct trace_log *out, uint64_t *begin_ns)
{
    struct device_records x = {.device = d};
    cudaError_t error = copy_device(&x);

    if (error == cudaSuccess) {
        x.tick_ns = shortest_tick(&x);
        for (uint32_t i = 0; i < d->worker_count; i++) {
            read_worker(r, &x, i, out);
            *begin_ns = min_u64(*begin_ns, x.logs[i].begun_ns + d->host_ahead_ns);
        }
    }
    free(x.logs);
    free(x.records);
    return error;
}

cudaError_t rig_tell_trace(const struct rig *r)
{
    struct trace_log log = {.limit = UINT64_MAX};
    uint64_t begin_ns = UINT64_MAX;
    cudaError_t error = cudaSuccess;

    if (!r->traced)
        return cudaSuccess;
    for (uint32_t i = 0; i < r->device_count && error == cudaSuccess; i++)
        error = read_device(r, &r->devices[i], &log, &begin_ns);
    if (error == cudaSuccess) {
        trace_begin(r->job->trace, r->epoch, r->epoch, r->crew_workers);
        device_log_settle(r->program, r->epoch, &log);
        trace_log_tell(r->job->trace, r->program, (const struct trace_log *const[]){&log}, 1, begin_ns);
    }
    trace_log_fini(&log);
    return error;
}
