#include <stdlib.h>
#include <string.h>

#include "backends/cpu/fleet.h"

#define WINDOW_ALIGN_BYTES 256

/* ---- how much ---- */

static uint64_t crew_threads(const struct job *job, uint32_t crew)
{
    const struct cpu_options *options = job->options;

    return min_u64(job->program->crews[crew].workers, options->threads_per_crew);
}

static uint64_t workers_per_rank(const struct job *job)
{
    uint64_t count = 0;

    for (uint32_t c = 0; c < job->program->crew_count; c++)
        count += crew_threads(job, c);
    return count;
}

/* Programs can be too long to look at every task: tiles are all alike but at edges, where they are smaller,
 * so evenly spaced ones of the first and of the last rank show the largest. */
#define SAMPLED_TASKS 256

static uint64_t largest_scratch_bytes(const struct program *p)
{
    uint32_t ranks[] = {0, world_ranks(p->world) - 1};
    uint64_t largest = 0;
    struct task t;

    for (uint32_t r = 0; r < 2; r++)
        for (uint32_t q = 0; q < p->queue_count; q++) {
            uint64_t length = program_queue_length(p, ranks[r], q);
            uint64_t step = max_u64(1, length / SAMPLED_TASKS);

            for (uint64_t i = 0; i < length; i += step) {
                program_task(p, ranks[r], q, i, &t);
                largest = max_u64(largest, tile_scratch_bytes(&t));
            }
        }
    return largest;
}

static void add_bytes(uint64_t *sum, uint64_t count, uint64_t bytes)
{
    uint64_t product;

    if (__builtin_mul_overflow(count, bytes, &product) || __builtin_add_overflow(*sum, product, sum))
        *sum = UINT64_MAX;
}

/* What a thread's stack comes to hold. */
#define STACK_USED_BYTES (64 << 10)

uint64_t fleet_memory_bytes(const struct job *job)
{
    const struct program *p = job->program;
    const struct cpu_options *options = job->options;
    uint32_t first;
    uint64_t ranks = way_ranks_here(job, &first), workers = workers_per_rank(job), sum = 0;

    add_bytes(&sum, ranks, program_window_bytes(p) + WINDOW_ALIGN_BYTES);
    add_bytes(&sum, ranks, (uint64_t)p->flag_count * sizeof(struct counter));
    add_bytes(&sum, ranks, sizeof(struct rank) + OWN_FLAG_COUNT * sizeof(struct counter));
    add_bytes(&sum, world_ranks(p->world), sizeof(uint8_t *));
    add_bytes(&sum, ranks * workers, sizeof(struct worker) + STACK_USED_BYTES);
    if (p->world.nodes > 1) {
        add_bytes(&sum, ranks, fifo_bytes(options->fifo));
        add_bytes(&sum, 1, fleet_net_bytes(job));
    }
    add_bytes(&sum, 1, check_memory_bytes(job));
    if (job->memory_limit_bytes > 0 && sum > job->memory_limit_bytes)
        return sum; /* too much already: no need to look at every task */
    add_bytes(&sum, ranks * workers, largest_scratch_bytes(p));
    return sum;
}

/* ---- create, destroy ---- */

static void *allocate_aligned(uint64_t bytes, uint64_t align)
{
    uint64_t size = (ceil_div(bytes, align) + 1) * align;
    void *p = aligned_alloc(align, size);

    return p ? memset(p, 0, size) : NULL;
}

static bool rank_create(struct fleet *f, uint32_t index)
{
    struct rank *r = fleet_rank(f, index);
    uint64_t flags = f->program->flag_count + (uint64_t)OWN_FLAG_COUNT;

    r->fleet = f;
    r->index = index;
    r->fifo.log = f->log;
    r->window = allocate_aligned(program_window_bytes(f->program), WINDOW_ALIGN_BYTES);
    r->flags = allocate_aligned(flags * sizeof *r->flags, sizeof *r->flags);
    if (f->program->world.nodes > 1) {
        r->fifo.capacity = (uint32_t)f->options->fifo;
        r->fifo.slots = allocate_aligned(fifo_bytes(f->options->fifo), 64);
        r->fifo.random = f->job->seed ^ index;
        r->put_flags = allocate_aligned(f->program->flag_count * sizeof *r->put_flags, 64);
        if (!r->fifo.slots || !r->put_flags)
            return false;
    }
    if (!r->window || !r->flags)
        return false;
    f->windows[index] = r->window;
    check_poison(f->job, r->window);
    check_write_inputs(f->job, index, 1, r->window);
    r->epoch = 1;
    return true;
}

static void workers_create(struct fleet *f)
{
    struct worker *w = f->workers;

    for (uint32_t rank = 0; rank < f->rank_count; rank++)
        for (uint32_t crew = 0; crew < f->program->crew_count; crew++)
            for (uint32_t i = 0; i < f->crew_threads[crew]; i++, w++) {
                w->fleet = f;
                w->rank = &f->ranks[rank];
                w->crew = crew;
                w->place = i;
                w->log = f->log;
                w->at.step = NO_STEP;
                atomic_init(&w->blocked_flag, NO_FLAG);
            }
}

static bool create(const struct job *job, struct fleet *f)
{
    uint64_t workers;

    f->rank_count = way_ranks_here(job, &f->first_rank);
    workers = workers_per_rank(job) * f->rank_count;
    f->job = job;
    f->program = job->program;
    f->options = job->options;
    f->epochs = (uint64_t)job->timing.warmup + job->timing.iterations;
    f->worker_count = (uint32_t)workers;
    f->active = workers + (job->nodes != NULL); /* other nodes can always still signal */
    for (uint32_t c = 0; c < f->program->crew_count; c++)
        f->crew_threads[c] = (uint32_t)crew_threads(job, c);
    f->log = fleet_log_plan(f);

    f->ranks = allocate_aligned(f->rank_count * sizeof *f->ranks, alignof(struct rank));
    f->workers = calloc(workers + 1, sizeof *f->workers);
    f->windows = calloc(world_ranks(f->program->world), sizeof *f->windows);
    if (!f->ranks || !f->workers || !f->windows)
        return false;
    f->memory = (struct memory){.program = f->program, .windows = f->windows};
    for (uint32_t i = 0; i < f->rank_count; i++)
        if (!rank_create(f, f->first_rank + i))
            return false;
    workers_create(f);
    return true;
}

struct fleet *fleet_create(const struct job *job)
{
    struct fleet *f = allocate_aligned(sizeof *f, 64);

    if (f && create(job, f))
        return f;
    if (f)
        fleet_destroy(f);
    return NULL;
}

void fleet_destroy(struct fleet *f)
{
    fleet_net_close(f);
    if (f->way.stuck)
        return;
    for (uint32_t i = 0; f->ranks && i < f->rank_count; i++) {
        free(f->ranks[i].window);
        free(f->ranks[i].flags);
        free(f->ranks[i].fifo.slots);
        trace_log_fini(&f->ranks[i].fifo.log);
        free(f->ranks[i].put_flags);
        free(f->ranks[i].arrivals);
    }
    for (uint32_t i = 0; f->workers && i < f->worker_count; i++)
        trace_log_fini(&f->workers[i].log);
    free(f->ranks);
    free(f->workers);
    free(f->windows);
    free(f);
}
