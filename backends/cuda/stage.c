#include "backends/cuda/stage.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/world.h"

#define PART_MIN_BYTES 256 /* there is something to register where all puts are bare signals */

/* ---- the part ---- */

static void add_buffer(struct stage_part *part, const struct program *p, uint32_t buffer)
{
    uint64_t first = program_buffer_offset(p, buffer, 0), end = first + buffer_bytes(&p->buffers[buffer]);

    part->first = part->end > 0 ? min_u64(part->first, first) : first;
    part->end = max_u64(part->end, end);
}

void stage_part_add(struct stage_part *part, const struct program *p, const struct task *t)
{
    if (t->m * t->n == 0)
        return;
    add_buffer(part, p, t->a.buffer);
    add_buffer(part, p, t->out[0].buffer);
}

static uint64_t part_bytes(const struct stage *s)
{
    return max_u64(s->config.part.end - s->config.part.first, PART_MIN_BYTES);
}

/* ---- open and close ---- */

static uint64_t flag_count(const struct stage *s)
{
    return (uint64_t)s->config.program->flag_count + s->config.put_count;
}

static uint32_t ack_flag(const struct program *p, uint32_t number)
{
    return p->flag_count + number;
}

cudaError_t stage_open(struct stage *s, const struct stage_config *c)
{
    cudaError_t error;

    s->config = *c;
    s->flags = calloc(flag_count(s) + 1, sizeof *s->flags);
    s->outs = calloc(c->depth, sizeof *s->outs);
    s->sents = calloc((uint64_t)c->put_count + 1, sizeof *s->sents);
    if (!s->flags || !s->outs || !s->sents)
        return cudaErrorMemoryAllocation;
    error = cudaHostAlloc((void **)&s->host, part_bytes(s), cudaHostAllocPortable);
    if (error == cudaSuccess)
        error = copier_open(&s->out_copier);
    return error == cudaSuccess ? copier_open(&s->in_copier) : error;
}

void stage_close(struct stage *s)
{
    copier_close(&s->out_copier);
    copier_close(&s->in_copier);
    cudaFreeHost(s->host);
    free(s->flags);
    free(s->arrivals);
    free(s->outs);
    free(s->ins);
    free(s->acks);
    free(s->sents);
    memset(s, 0, sizeof *s);
}

/* An arrival is in either ring once at most. */
static bool grow(struct stage *s)
{
    uint32_t room = s->arrivals_max ? 2 * s->arrivals_max : 16;
    struct stage_arrival *arrivals = realloc(s->arrivals, room * sizeof *arrivals);
    uint32_t *ins = realloc(s->ins, room * sizeof *ins), *acks = realloc(s->acks, room * sizeof *acks);

    s->arrivals = arrivals ? arrivals : s->arrivals;
    s->ins = ins ? ins : s->ins;
    s->acks = acks ? acks : s->acks;
    s->arrivals_max = room;
    return arrivals && ins && acks;
}

static bool asks_for_ack(const struct task *t, uint32_t rank)
{
    bool asks = false;

    for (uint32_t i = 0; i < t->signal_count; i++)
        asks = asks || t->signals[i].rank == rank;
    return asks;
}

bool stage_expect(struct stage *s, uint32_t from, uint32_t number, const struct task *t, const struct signal *signal)
{
    const struct program *p = s->config.program;

    if (s->arrival_count == s->arrivals_max && !grow(s))
        return false;
    s->arrivals[s->arrival_count++] = (struct stage_arrival){
        .to = t->out[0],
        .rows = t->m,
        .row_bytes = t->n > 0 ? t->n * dtype_bytes(p->buffers[t->a.buffer].dtype) : 0,
        .add = signal->add,
        .flag = signal->flag,
        .from = from,
        .ack = asks_for_ack(t, from) ? ack_flag(p, number) : NO_FLAG,
    };
    return true;
}

struct net_memory stage_window(const struct stage *s)
{
    return (struct net_memory){.base = s->host, .bytes = part_bytes(s), .dmabuf = -1};
}

struct net_memory stage_flags(const struct stage *s)
{
    return (struct net_memory){.base = s->flags, .bytes = flag_count(s) * sizeof *s->flags, .dmabuf = -1};
}

cudaError_t stage_error(const struct stage *s)
{
    return (cudaError_t)__atomic_load_n(&s->error, __ATOMIC_RELAXED);
}

/* True: well. */
static bool note(struct stage *s, cudaError_t error)
{
    if (error != cudaSuccess)
        __atomic_store_n(&s->error, (int)error, __ATOMIC_RELAXED);
    return error == cudaSuccess;
}

/* ---- out ---- */

uint64_t stage_value(const struct task *t, uint64_t epoch, uint64_t rows)
{
    assert(rows <= t->m);
    return epoch * (t->m + 1) + rows;
}

bool stage_has_room(const struct stage *s)
{
    return s->outs_end - s->outs_first < s->config.depth && stage_error(s) == cudaSuccess;
}

bool stage_send(struct stage *s, struct put *p, const struct task *t, uint64_t epoch)
{
    struct stage_out out;

    assert(s->sent_count < s->config.put_count); /* the next epoch's waits for this one */
    if (asks_for_ack(t, s->config.rank))
        s->sents[s->sent_count++] = (struct stage_sent){(uint32_t)p->id, epoch};
    if (p->bytes == 0)
        return true;
    out.put = *p;
    out.put.from -= s->config.part.first;
    out.put.to -= s->config.part.first;
    assert(out.put.from + p->bytes <= part_bytes(s));
    if (note(s, copier_copy(&s->out_copier, s->host + out.put.from, s->config.window + p->from, p->bytes,
                            cudaMemcpyDeviceToHost)) &&
        note(s, copier_issue(&s->out_copier, &out.ticket)))
        s->outs[s->outs_end++ % s->config.depth] = out;
    return false;
}

static bool next_ack(struct stage *s, struct put *out)
{
    const struct stage_arrival *a;

    if (s->acks_first == s->acks_end)
        return false;
    a = &s->arrivals[s->acks[s->acks_first++ % s->arrivals_max]];
    *out = (struct put){.peer = a->from, .flag = a->ack, .value = a->epoch, .id = STAGE_ACK_ID};
    return true;
}

bool stage_next(struct stage *s, struct put *out)
{
    const struct stage_out *next = &s->outs[s->outs_first % s->config.depth];

    if (next_ack(s, out))
        return true;
    if (s->outs_first == s->outs_end || next->ticket > copier_completed(&s->out_copier))
        return false;
    *out = next->put;
    s->outs_first++;
    return true;
}

/* ---- in ---- */

static void raise(struct stage *s, uint32_t arrival)
{
    const struct stage_arrival *a = &s->arrivals[arrival];
    uint64_t total = program_flag_total(s->config.program, s->config.rank, a->flag);

    __atomic_store_n(&s->config.put_flags[a->flag], (a->epoch - 1) * total + a->add, __ATOMIC_RELEASE);
    if (a->ack != NO_FLAG)
        s->acks[s->acks_end++ % s->arrivals_max] = arrival;
}

static bool start_copy(struct stage *s, struct stage_arrival *a, uint64_t bytes)
{
    const struct program *p = s->config.program;
    uint64_t at =
        program_buffer_offset(p, a->to.buffer, a->epoch) + a->to.offset * dtype_bytes(p->buffers[a->to.buffer].dtype);

    return note(s, copier_copy(&s->in_copier, s->config.window + at, s->host + at - s->config.part.first, bytes,
                               cudaMemcpyHostToDevice)) &&
           note(s, copier_issue(&s->in_copier, &a->ticket));
}

/* The next put to a flag is not begun before the GPU has been told of the one before. */
static bool receive(struct stage *s, uint32_t arrival)
{
    struct stage_arrival *a = &s->arrivals[arrival];
    uint64_t value = __atomic_load_n(&s->flags[a->flag], __ATOMIC_ACQUIRE), epoch = value / (a->rows + 1);
    uint64_t bytes = value % (a->rows + 1) * a->row_bytes;

    if (epoch == a->epoch)
        return false;
    a->epoch = epoch;
    if (bytes == 0)
        raise(s, arrival);
    else if (start_copy(s, a, bytes))
        s->ins[s->ins_end++ % s->arrivals_max] = arrival;
    return true;
}

/* Copies tell of their end in order. */
static void raise_arrived(struct stage *s)
{
    while (s->ins_first < s->ins_end) {
        uint32_t arrival = s->ins[s->ins_first % s->arrivals_max];

        if (s->arrivals[arrival].ticket > copier_completed(&s->in_copier))
            return;
        raise(s, arrival);
        s->ins_first++;
    }
}

bool stage_look(struct stage *s)
{
    bool moved = false;

    for (uint32_t i = 0; i < s->arrival_count && stage_error(s) == cudaSuccess; i++)
        moved |= receive(s, i);
    raise_arrived(s);
    return stage_error(s) == cudaSuccess &&
           (moved || s->ins_first < s->ins_end || s->outs_first < s->outs_end || s->acks_first < s->acks_end);
}

/* ---- back ---- */

bool stage_is_complete(const struct stage *s, const struct task *t)
{
    return !asks_for_ack(t, s->config.rank);
}

bool stage_acknowledged(struct stage *s, uint32_t *number_out)
{
    for (uint32_t i = 0; i < s->sent_count; i++) {
        struct stage_sent sent = s->sents[i];
        const uint64_t *flag = &s->flags[ack_flag(s->config.program, sent.number)];

        if (__atomic_load_n(flag, __ATOMIC_ACQUIRE) < sent.epoch)
            continue;
        s->sents[i] = s->sents[--s->sent_count];
        *number_out = sent.number;
        return true;
    }
    return false;
}
