#include "backends/cuda/proxy.h"

#include <sched.h>
#include <string.h>

#define SPINS 20000 /* without anything to do, before the processor is offered to others */

cudaError_t proxy_open(struct proxy *p, uint64_t capacity)
{
    cudaError_t error =
        cudaHostAlloc((void **)&p->slots, capacity * sizeof *p->slots, cudaHostAllocPortable);

    p->capacity = capacity;
    if (error == cudaSuccess)
        error = cudaHostAlloc((void **)&p->tail, sizeof *p->tail, cudaHostAllocPortable);
    if (error != cudaSuccess)
        return error;
    memset(p->slots, 0, capacity * sizeof *p->slots);
    *p->tail = 0;
    return loopback_open(&p->link);
}

/* ---- delivery ---- */

/* The signal at the receiver and the one at the own rank; data have arrived. */
static void raise_flags(struct proxy *p, const struct task *put)
{
    for (uint32_t i = 0; i < put->signal_count; i++)
        __atomic_fetch_add(&p->ranks[put->signals[i].rank].put_flags[put->signals[i].flag],
                           put->signals[i].add, __ATOMIC_RELEASE);
    __atomic_fetch_add(&p->delivered, 1, __ATOMIC_RELAXED);
}

static uint8_t *located(const struct proxy *p, uint32_t rank, const struct operand *o,
                        uint64_t epoch)
{
    uint64_t bytes = dtype_bytes(p->program->buffers[o->buffer].dtype);

    return p->ranks[rank].window + program_buffer_offset(p->program, o->buffer, epoch) +
           o->offset * bytes;
}

static void start_put(struct proxy *p, const struct task *put, uint64_t epoch, uint64_t rows)
{
    const struct buffer *b = &p->program->buffers[put->a.buffer];
    uint64_t bytes = rows * put->n * dtype_bytes(b->dtype);
    struct proxy_pending *pending = &p->pending[p->pending_end % PROXY_PENDING];

    if (bytes == 0) {
        raise_flags(p, put);
        return;
    }
    __atomic_fetch_add(buffer_is_control(b) ? &p->control_bytes : &p->bytes, bytes,
                       __ATOMIC_RELAXED);
    pending->put = put;
    if (loopback_put(&p->link, located(p, put->out[0].rank, &put->out[0], epoch),
                     located(p, p->rank, &put->a, epoch), bytes, &pending->ticket) == cudaSuccess)
        p->pending_end++;
    else
        __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
}

/* ---- the thread ---- */

static bool complete_one(struct proxy *p)
{
    const struct proxy_pending *first = &p->pending[p->pending_first % PROXY_PENDING];

    if (p->pending_first == p->pending_end || loopback_completed(&p->link) < first->ticket)
        return false;
    raise_flags(p, first->put);
    p->pending_first++;
    return true;
}

static bool take_one(struct proxy *p, uint64_t *taken)
{
    struct gpu_command *slot = &p->slots[*taken % p->capacity];
    uint64_t command = __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE), rows;

    if (command == 0 || p->pending_end - p->pending_first == PROXY_PENDING)
        return false;
    rows = slot->rows;
    __atomic_store_n(&slot->word, 0, __ATOMIC_RELAXED);
    __atomic_store_n(p->tail, ++*taken, __ATOMIC_RELEASE);
    start_put(p, &p->puts[(uint32_t)command - 1], command >> 32, rows);
    return true;
}

static void *proxy_main(void *arg)
{
    struct proxy *p = arg;
    uint64_t taken = 0;
    uint32_t idle = 0;

    while (!p->failed) {
        bool closed = __atomic_load_n(&p->closed, __ATOMIC_ACQUIRE);
        bool moved = complete_one(p);

        if (take_one(p, &taken) || moved) {
            idle = 0;
            continue;
        }
        if (closed && p->pending_first == p->pending_end)
            break;
        if (++idle > SPINS)
            sched_yield();
    }
    return NULL;
}

bool proxy_start(struct proxy *p)
{
    p->started = pthread_create(&p->thread, NULL, proxy_main, p) == 0;
    return p->started;
}

void proxy_close(struct proxy *p)
{
    __atomic_store_n(&p->closed, true, __ATOMIC_RELEASE);
    if (p->started)
        pthread_join(p->thread, NULL);
    loopback_close(&p->link);
    cudaFreeHost(p->slots);
    cudaFreeHost(p->tail);
    memset(p, 0, sizeof *p);
}
