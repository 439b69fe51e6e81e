#include "backends/cuda/put_fifo.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

cudaError_t put_fifo_open(struct put_fifo *f, uint64_t capacity)
{
    cudaError_t error = cudaHostAlloc((void **)&f->slots, capacity * sizeof *f->slots, cudaHostAllocPortable);

    f->capacity = capacity;
    if (error == cudaSuccess)
        error = cudaHostAlloc((void **)&f->tail, sizeof *f->tail, cudaHostAllocPortable);
    if (error != cudaSuccess)
        return error;
    memset(f->slots, 0, capacity * sizeof *f->slots);
    *f->tail = 0;
    return cudaSuccess;
}

void put_fifo_close(struct put_fifo *f)
{
    cudaFreeHost(f->slots);
    cudaFreeHost(f->tail);
    free(f->arrived_ns);
    free(f->under_way);
    memset(f, 0, sizeof *f);
}

bool put_fifo_configure(struct put_fifo *f, const struct put_fifo_config *c)
{
    f->config = *c;
    f->under_way = calloc((uint64_t)c->put_count + 1, sizeof *f->under_way);
    return f->under_way != NULL;
}

/* ---- the proxy's end ---- */

static uint64_t offset_of(const struct program *p, const struct operand *o, uint64_t epoch)
{
    return program_buffer_offset(p, o->buffer, epoch) + o->offset * dtype_bytes(p->buffers[o->buffer].dtype);
}

static const struct signal *remote_signal(const struct put_fifo *f, const struct task *t)
{
    for (uint32_t i = 0; i < t->signal_count; i++)
        if (t->signals[i].rank != f->config.rank)
            return &t->signals[i];
    return NULL;
}

/* This put raises the flag, once an epoch, and nobody else does: it knows the value. */
static void fill_put(struct put_fifo *f, uint32_t number, uint64_t epoch, uint64_t rows, struct put *out)
{
    const struct program *p = f->config.program;
    const struct task *t = &f->config.puts[number];
    const struct buffer *b = &p->buffers[t->a.buffer];
    const struct signal *s = remote_signal(f, t);

    assert(s);
    *out = (struct put){
        .peer = s->rank,
        .flag = s->flag,
        .value = f->config.stage ? stage_value(t, epoch, rows)
                                 : (epoch - 1) * program_flag_total(p, s->rank, s->flag) + s->add,
        .bytes = rows * t->n * dtype_bytes(b->dtype),
        .id = number,
    };
    if (out->bytes == 0)
        return;
    out->from = offset_of(p, &t->a, epoch);
    out->to = offset_of(p, &t->out[0], epoch);
    __atomic_fetch_add(buffer_is_control(b) ? &f->control_bytes : &f->bytes, out->bytes, __ATOMIC_RELAXED);
}

static bool take_command(struct put_fifo *f, struct put *out, uint64_t *epoch_out)
{
    struct gpu_command *slot = &f->slots[f->taken % f->capacity];
    uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE), rows;

    if (word == 0)
        return false;
    rows = slot->rows;
    __atomic_store_n(&slot->word, 0, __ATOMIC_RELAXED);
    __atomic_store_n(f->tail, ++f->taken, __ATOMIC_RELEASE);
    *epoch_out = word >> 32;
    f->under_way[(uint32_t)word - 1] = (uint32_t)*epoch_out;
    fill_put(f, (uint32_t)word - 1, *epoch_out, rows, out);
    return true;
}

static bool take(void *owner, struct put *out)
{
    struct put_fifo *f = owner;
    struct stage *stage = f->config.stage;
    uint64_t epoch;

    if (!stage)
        return take_command(f, out, &epoch);
    while (stage_has_room(stage) && take_command(f, out, &epoch))
        if (stage_send(stage, out, &f->config.puts[out->id], epoch))
            return true;
    return stage_next(stage, out);
}

static void finish(struct put_fifo *f, uint64_t number)
{
    const struct task *t = &f->config.puts[number];

    f->under_way[number] = 0;
    if (f->arrived_ns)
        f->arrived_ns[number] = clock_now_ns();
    for (uint32_t i = 0; i < t->signal_count; i++)
        if (t->signals[i].rank == f->config.rank)
            __atomic_fetch_add(&f->config.put_flags[t->signals[i].flag], t->signals[i].add, __ATOMIC_RELEASE);
    __atomic_fetch_add(&f->finished, 1, __ATOMIC_RELEASE);
}

static void complete(void *owner, uint64_t id)
{
    struct put_fifo *f = owner;
    struct stage *stage = f->config.stage;

    if (id != STAGE_ACK_ID && (!stage || stage_is_complete(stage, &f->config.puts[id])))
        finish(f, id);
}

static bool look(void *owner)
{
    struct put_fifo *f = owner;
    struct stage *stage = f->config.stage;
    uint32_t number;
    bool moved;

    if (!stage)
        return false;
    moved = stage_look(stage);
    while (stage_acknowledged(stage, &number)) {
        finish(f, number);
        moved = true;
    }
    return moved;
}

const struct proxy_source put_fifo_source = {.take = take, .complete = complete, .look = look};

/* ---- reports ---- */

const char *put_fifo_state(const struct put_fifo *f, uint32_t number, uint64_t *epoch_out)
{
    *epoch_out = f->under_way ? f->under_way[number] : 0;
    if (*epoch_out > 0)
        return "is on its way to another node";
    for (uint64_t i = 0; i < f->capacity; i++)
        if ((uint32_t)f->slots[i].word == number + 1) {
            *epoch_out = f->slots[i].word >> 32;
            return "waits for the proxy";
        }
    return NULL;
}
