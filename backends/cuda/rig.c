#include "backends/cuda/rig.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/maps.h"

/* Tables on the host for one task, with its links; generous. */
#define TASK_BYTES 384

uint64_t rig_memory_bytes(const struct job *job)
{
    uint64_t sum = program_window_bytes(job->program), tasks, check = check_memory_bytes(job);
    uint64_t net = job->program->world.nodes > 1 ? rig_net_bytes(job) : 0;

    if (__builtin_mul_overflow(program_task_count(job->program), TASK_BYTES, &tasks) ||
        __builtin_add_overflow(sum, tasks, &sum) || __builtin_add_overflow(sum, check, &sum) ||
        __builtin_add_overflow(sum, net, &sum))
        return UINT64_MAX;
    return sum;
}

/* ---- workers: crews scaled to what a rank gets of its device ---- */

static enum status scale_crews(struct rig *r)
{
    const struct program *p = r->program;
    uint64_t have = UINT64_MAX, wanted = 0, used = 0;
    uint32_t largest = 0;

    for (uint32_t i = 0; i < r->device_count; i++)
        have = min_u64(have, r->devices[i].sms / r->devices[i].rank_count);
    for (uint32_t c = 0; c < p->crew_count; c++) {
        wanted += p->crews[c].workers;
        if (p->crews[c].workers > p->crews[largest].workers)
            largest = c;
    }
    have = min_u64(have, wanted);
    if (have < p->crew_count)
        return rig_fail(r, ST_INPUT,
                        "cuda: %" PRIu32 " crews need an SM each, a rank has %" PRIu64 " SMs (%" PRIu32
                        " ranks on %" PRIu32 " devices)",
                        p->crew_count, have, r->rank_count, r->device_count);
    for (uint32_t c = 0; c < p->crew_count; c++) {
        r->crew_workers[c] = (uint32_t)max_u64(1, (p->crews[c].workers * have + wanted / 2) / wanted);
        used += c == largest ? 0 : r->crew_workers[c];
    }
    r->crew_workers[largest] = (uint32_t)(have > used ? have - used : 1);
    return ST_OK;
}

static uint32_t workers_per_rank(const struct rig *r)
{
    uint32_t sum = 0;

    for (uint32_t c = 0; c < r->program->crew_count; c++)
        sum += r->crew_workers[c];
    return sum;
}

/* Every worker that drains a queue pops once in vain. */
static void count_pops(const struct rig *r, struct rig_rank *rank)
{
    const struct program *p = r->program;

    for (uint32_t q = 0; q < p->queue_count; q++)
        rank->pops_per_epoch[q] = program_queue_length(p, rank->index, q);
    for (uint32_t c = 0; c < p->crew_count; c++)
        for (uint32_t i = 0; i < p->crews[c].queue_count; i++)
            rank->pops_per_epoch[p->crews[c].queues[i]] += r->crew_workers[c];
}

static struct gpu_queue queue_of(const struct rig *r, const struct rig_rank *rank, uint32_t queue)
{
    const struct program *p = r->program;
    uint64_t first = r->lowered.queue_first[rank->index * p->queue_count + queue];
    uint64_t length = program_queue_length(p, rank->index, queue);
    const struct gpu_task *tasks = (const struct gpu_task *)r->lowered.tasks.items + first;

    return (struct gpu_queue){
        .tasks = first,
        .length = length,
        .pops_per_epoch = rank->pops_per_epoch[queue],
        .counter = (uintptr_t)(rank->counters + queue),
        .links = length > 0 ? tasks->links : 0,
        .links_per_task = lowered_links_per_task(&r->lowered, first, length),
    };
}

/* The first of its crew. */
static struct gpu_worker worker_of(const struct rig *r, const struct rig_rank *rank, uint32_t crew)
{
    const struct program *p = r->program;
    struct gpu_worker w = {
        .rank = rank->index,
        .crew = crew,
        .queue_count = p->crews[crew].queue_count,
        .flag_count = p->flag_count,
        .flags = (uintptr_t)rank->flags,
        .fifo = {.head = (uintptr_t)(rank->counters + p->queue_count),
                 .tail = (uintptr_t)rank->fifo.tail,
                 .slots = (uintptr_t)rank->fifo.slots,
                 .capacity = rank->fifo.capacity},
    };

    for (uint32_t i = 0; i < w.queue_count; i++)
        w.queues[i] = queue_of(r, rank, p->crews[crew].queues[i]);
    return w;
}

static enum status create_workers(struct rig *r, struct device *d)
{
    uint32_t count = 0;

    d->worker_count = workers_per_rank(r) * d->rank_count;
    d->workers = calloc(d->worker_count + 1, sizeof *d->workers);
    if (!d->workers)
        return rig_fail(r, ST_MEMORY, "cuda: no memory for the workers");
    for (uint32_t i = 0; i < d->rank_count; i++)
        for (uint32_t c = 0; c < r->program->crew_count; c++) {
            struct gpu_worker w = worker_of(r, &r->ranks[d->first_rank + i], c);

            for (; w.turn < r->crew_workers[c]; w.turn++)
                d->workers[count++] = w;
        }
    return ST_OK;
}

/* ---- ranks ---- */

static enum status create_flags(struct rig *r, struct rig_rank *rank)
{
    uint64_t count = (uint64_t)r->program->flag_count + 1;

    TRY_CUDA(r, cudaMalloc((void **)&rank->flags, count * sizeof *rank->flags));
    if (r->program->world.nodes > 1) {
        TRY_CUDA(r, cudaHostAlloc((void **)&rank->put_flags, count * sizeof *rank->put_flags, cudaHostAllocPortable));
        memset(rank->put_flags, 0, count * sizeof *rank->put_flags);
    }
    return ST_OK;
}

static enum status create_rank(struct rig *r, uint32_t place)
{
    struct rig_rank *rank = &r->ranks[place];
    uint64_t counters = (r->program->queue_count + 2) * sizeof *rank->counters;

    rank->index = r->first_rank + place;
    for (uint32_t i = 0; i < r->device_count; i++)
        if (place - r->devices[i].first_rank < r->devices[i].rank_count)
            rank->device = &r->devices[i];
    TRY_CUDA(r, cudaSetDevice(rank->device->index));
    TRY(rig_create_window(r, rank));
    TRY_CUDA(r, cudaMalloc((void **)&rank->counters, counters));
    TRY_CUDA(r, cudaMemset(rank->counters, 0, counters));
    TRY(create_flags(r, rank));
    count_pops(r, rank);
    if (r->program->world.nodes > 1)
        TRY_CUDA(r, put_fifo_open(&rank->fifo, r->options->fifo));
    return ST_OK;
}

/* Where a flag is polled: where its owner's device counts, or proxies, or network cards. */
static uint64_t flag_address(const struct rig *r, const struct rig_rank *rank, uint64_t flag)
{
    const uint8_t *raised = r->lowered.put_raised;
    uint8_t by = raised ? raised[rank->index * r->program->flag_count + flag] : 0;

    if (by == LOWERED_BY_ARRIVAL && r->reach == REACH_DIRECT)
        return (uintptr_t)&rank->arrived[flag];
    return by ? (uintptr_t)&rank->put_flags[flag] : (uintptr_t)&rank->flags[flag].counter;
}

static enum status upload_flags(struct rig *r, struct rig_rank *rank)
{
    uint64_t count = r->program->flag_count;
    struct gpu_flag *flags = calloc(count + 1, sizeof *flags);
    cudaError_t error;

    if (!flags)
        return rig_fail(r, ST_MEMORY, "cuda: no memory for %" PRIu64 " flags", count);
    for (uint64_t i = 0; i < count; i++) {
        flags[i].total = program_flag_total(r->program, rank->index, (uint32_t)i);
        flags[i].address = flag_address(r, rank, i);
        flags[i].system = flags[i].address != (uintptr_t)&rank->flags[i].counter || r->device_count > 1;
    }
    error = cudaMemcpy(rank->flags, flags, count * sizeof *flags, cudaMemcpyHostToDevice);
    free(flags);
    TRY_CUDA(r, error);
    return ST_OK;
}

/* ---- the program's tables ---- */

static enum status add_table(struct rig *r, struct device *d, uint64_t bytes, void **address_out)
{
    assert(d->table_count < DEVICE_TABLES_MAX);
    TRY_CUDA(r, cudaMalloc(address_out, bytes));
    d->tables[d->table_count++] = *address_out;
    return ST_OK;
}

static enum status upload(struct rig *r, struct device *d, const void *items, uint64_t bytes, const void **address_out)
{
    void *p;

    TRY(add_table(r, d, bytes + 128, &p));
    TRY_CUDA(r, cudaMemcpy(p, items, bytes, cudaMemcpyHostToDevice));
    *address_out = p;
    return ST_OK;
}

static enum status upload_table(struct rig *r, struct device *d, const struct gpu_table *t, const void **address_out)
{
    return upload(r, d, t->items, t->count * t->item_bytes, address_out);
}

static enum status create_scratch(struct rig *r, struct device *d)
{
    uint64_t stuck = (d->worker_count * GPU_ROLE_COUNT + 1) * sizeof *d->stuck;

    TRY(add_table(r, d, stuck, (void **)&d->stuck));
    TRY_CUDA(r, cudaMemset(d->stuck, 0, stuck));
    TRY(add_table(r, d, sizeof *d->abort, (void **)&d->abort));
    TRY_CUDA(r, cudaMemset(d->abort, 0, sizeof *d->abort));
    return ST_OK;
}

static enum status upload_routes(struct rig *r, struct device *d)
{
    const struct lowered_route *routes = r->lowered.routes.items;
    uint64_t count = r->lowered.routes.count;
    struct gpu_route *words = calloc(count + 1, sizeof *words);
    enum status st;

    if (!words)
        return rig_fail(r, ST_MEMORY, "cuda: no memory for %" PRIu64 " routes", count);
    for (uint64_t i = 0; i < count; i++)
        words[i] = routes[i].word;
    st = upload(r, d, words, count * sizeof *words, (const void **)&d->program.routes);
    free(words);
    return st;
}

static enum status upload_device(struct rig *r, struct device *d, const CUtensorMap *maps)
{
    const struct lowered *l = &r->lowered;
    struct gpu_program *p = &d->program;

    TRY_CUDA(r, cudaSetDevice(d->index));
    TRY(create_workers(r, d));
    TRY(upload_table(r, d, &l->tasks, (const void **)&p->tasks));
    TRY(upload_table(r, d, &l->links, (const void **)&p->links));
    TRY(upload_table(r, d, &l->segments, (const void **)&p->segments));
    TRY(upload_table(r, d, &l->views, (const void **)&p->views));
    TRY(upload(r, d, maps, l->maps.count * sizeof *maps, &p->maps));
    TRY(upload_routes(r, d));
    TRY(upload(r, d, d->workers, d->worker_count * sizeof *d->workers, (const void **)&p->workers));
    TRY(create_scratch(r, d));
    p->stuck = d->stuck;
    p->abort = d->abort;
    p->view_count = (uint32_t)l->views.count;
    p->map_count = (uint32_t)l->maps.count;
    p->prefetch = (uint32_t)r->options->prefetch;
    return ST_OK;
}

static enum status upload_program(struct rig *r)
{
    CUtensorMap *maps = maps_encode(&r->lowered);
    enum status st = ST_OK;

    if (!maps)
        return rig_fail(r, ST_ENVIRONMENT, "cuda: the driver refused a tensor map");
    for (uint32_t i = 0; i < r->device_count && st == ST_OK; i++)
        st = upload_device(r, &r->devices[i], maps);
    free(maps);
    return st;
}

static enum status lower_for_ranks(struct rig *r)
{
    uint32_t count = world_ranks(r->program->world);
    struct placement *ranks = calloc(count, sizeof *ranks);
    enum status st;

    if (!ranks)
        return rig_fail(r, ST_MEMORY, "cuda: no memory for %" PRIu32 " ranks", count);
    for (uint32_t i = 0; i < r->rank_count; i++)
        ranks[r->first_rank + i] = (struct placement){(uintptr_t)r->ranks[i].window, (uintptr_t)r->ranks[i].flags,
                                                      (uint32_t)(r->ranks[i].device - r->devices)};
    st = lower_program(r->program, ranks, &r->lowered);
    r->lowered.ranks = NULL;
    free(ranks);
    return st < 0 ? rig_fail(r, st, "%s", r->lowered.why) : st;
}

/* ---- create, destroy ---- */

enum status rig_create(const struct job *job, struct rig *r)
{
    memset(r, 0, sizeof *r);
    r->job = job;
    r->program = job->program;
    r->options = job->options;
    r->rank_count = way_ranks_here(job, &r->first_rank);
    TRY(rig_open_devices(r));
    TRY(scale_crews(r));
    r->ranks = calloc(r->rank_count, sizeof *r->ranks);
    r->mirror = calloc(1, program_window_bytes(r->program) + 256);
    if (!r->ranks || !r->mirror)
        return rig_fail(r, ST_MEMORY, "cuda: no memory for a rank's window on the host");
    TRY_CUDA(r, cudaHostAlloc((void **)&r->gate, sizeof *r->gate, cudaHostAllocPortable));
    *r->gate = 0;
    for (uint32_t i = 0; i < r->rank_count; i++)
        TRY(create_rank(r, i));
    TRY(lower_for_ranks(r));
    TRY(rig_create_routes(r));
    TRY(rig_open_net(r));
    for (uint32_t i = 0; i < r->rank_count; i++)
        TRY(upload_flags(r, &r->ranks[i]));
    TRY(upload_program(r));
    TRY(rig_create_trace(r));
    TRY(rig_poison(r));
    return rig_start_proxies(r);
}

void rig_destroy(struct rig *r)
{
    rig_stop_proxies(r);
    rig_close_net(r);
    if (r->way.stuck)
        return;
    for (uint32_t i = 0; r->ranks && i < r->rank_count; i++) {
        struct rig_rank *rank = &r->ranks[i];

        rig_destroy_window(rank);
        cudaFree(rank->flags);
        cudaFree(rank->counters);
        cudaFreeHost(rank->put_flags);
    }
    rig_destroy_routes(r);
    rig_destroy_trace(r);
    lowered_free(&r->lowered);
    rig_close_devices(r);
    cudaFreeHost(r->gate);
    free(r->mirror);
    free(r->ranks);
    memset(r, 0, sizeof *r);
}
