#include "fake_kernel.h"

#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/bf16.h"

/* All workers of a launch take turns in one thread: one that would wait lets the next one go on. */
struct worker {
    const struct gpu_worker *w;
    uint32_t queue;
    struct gpu_task task; /* kind GPU_END: none; it pops the next one */
    bool ended;
    uint32_t stuck_flag; /* of its last turn; GPU_NO_FLAG: it did not wait for one */
    uint64_t stuck_value, stuck_wanted;
};

struct kernel {
    const struct gpu_program *p;
    struct worker *workers;
    uint32_t count;
};

static uint64_t load(uint64_t address)
{
    return __atomic_load_n((const uint64_t *)(uintptr_t)address, __ATOMIC_ACQUIRE);
}

/* ---- waits ---- */

static const union gpu_link *link_of(const struct kernel *k, const struct gpu_task *t, uint32_t i)
{
    return &k->p->links[t->links + i];
}

static bool is_met(const struct kernel *k, struct worker *w, const struct gpu_wait *wait)
{
    const struct gpu_flag *flags = (const struct gpu_flag *)(uintptr_t)w->w->flags;
    uint64_t epoch = k->p->epoch;

    for (uint32_t i = 0; i < wait->count && epoch > wait->lag; i++) {
        const struct gpu_flag *f = &flags[wait->flag + i];
        uint64_t wanted = (epoch - wait->lag - 1) * f->total + (wait->value ? wait->value : f->total);
        uint64_t value = load(f->address);

        if (value >= wanted)
            continue;
        w->stuck_flag = wait->flag + i;
        w->stuck_value = value;
        w->stuck_wanted = wanted;
        return false;
    }
    return true;
}

static bool all_met(const struct kernel *k, struct worker *w)
{
    const struct gpu_task *t = &w->task;

    for (uint32_t i = 0; i < t->entry_waits + (uint32_t)t->late_waits; i++)
        if (!is_met(k, w, &link_of(k, t, i)->wait))
            return false;
    for (uint32_t i = 0; i < t->segment_count; i++)
        if (!is_met(k, w, &k->p->segments[t->segments + i].wait))
            return false;
    return true;
}

/* ---- matrices ---- */

struct matrix {
    uint8_t *at;
    uint64_t ld, col;
    bool is_wide;
};

static struct matrix matrix_of(const struct kernel *k, uint32_t view, uint64_t row, uint64_t col)
{
    const struct gpu_view *v = &k->p->views[view];
    uint64_t element = v->is_wide ? 4 : 2;

    return (struct matrix){(uint8_t *)(uintptr_t)v->base + k->p->epoch % v->depth * v->copy_bytes +
                               (row * v->ld + col) * element,
                           v->ld, col, v->is_wide};
}

static struct matrix matrix_at(const struct kernel *k, const union gpu_link *l)
{
    return matrix_of(k, l->matrix.view, l->matrix.row, l->matrix.col);
}

static float element(const struct matrix *x, uint64_t row, uint64_t col)
{
    uint64_t i = row * x->ld + col;

    return x->is_wide ? ((const float *)x->at)[i] : f32_from_bf16(((const uint16_t *)x->at)[i]);
}

static void set_element(const struct matrix *x, uint64_t row, uint64_t col, float value)
{
    uint64_t i = row * x->ld + col;

    if (x->is_wide)
        ((float *)x->at)[i] = value;
    else
        ((uint16_t *)x->at)[i] = bf16_from_f32(value);
}

/* ---- ops ---- */

static float dot(const struct matrix *a, const struct matrix *b, uint64_t row, uint64_t col, uint64_t depth)
{
    float sum = 0;

    for (uint64_t i = 0; i < depth; i++)
        sum += element(a, row, i) * element(b, col, i);
    return sum;
}

/* Tensor maps count k in blocks, and read zeros behind a row's end. */
static uint64_t whole_depth(const struct gpu_task *t, const struct matrix *a)
{
    uint64_t k = t->kind == GPU_GEMM_PLAIN ? t->k : (uint64_t)t->k * GPU_TILE_K;

    return k < a->ld - a->col ? k : a->ld - a->col;
}

static float product(const struct kernel *k, const struct gpu_task *t, uint64_t row, uint64_t col)
{
    struct matrix a = matrix_of(k, t->a_view, t->a_row, t->a_col), b = matrix_of(k, t->b_view, t->b_row, t->b_col);
    float sum = 0;

    if (t->segment_count == 0)
        return dot(&a, &b, row, col, whole_depth(t, &a));
    for (uint32_t i = 0; i < t->segment_count; i++) {
        const struct gpu_segment *g = &k->p->segments[t->segments + i];

        a = matrix_of(k, t->a_view, t->a_row, t->a_col + g->a_add);
        b = matrix_of(k, t->b_view, t->b_row, t->b_col + g->b_add);
        sum += dot(&a, &b, row, col, g->k);
    }
    return sum;
}

static float value_of(const struct kernel *k, const struct gpu_task *t, uint64_t row, uint64_t col)
{
    uint32_t first = t->entry_waits + (uint32_t)t->late_waits + t->targets;
    struct matrix a = {0};
    float value = 0;

    if (t->kind >= GPU_GEMM && t->kind <= GPU_GEMM_PLAIN) {
        value = product(k, t, row, col);
    } else if (t->kind == GPU_COPY || t->kind == GPU_COPY_PLAIN) {
        a = matrix_of(k, t->a_view, t->a_row, t->a_col);
        value = element(&a, row, col);
    }
    for (uint32_t i = 0; i < t->addends; i++) {
        struct matrix x = matrix_at(k, link_of(k, t, first + i));

        value += element(&x, row, col);
    }
    return value;
}

static void compute(const struct kernel *k, const struct gpu_task *t)
{
    for (uint64_t row = 0; row < t->m; row++)
        for (uint64_t col = 0; col < t->n; col++) {
            float value = value_of(k, t, row, col);

            for (uint32_t i = 0; i < t->targets; i++) {
                struct matrix x = matrix_at(k, link_of(k, t, t->entry_waits + (uint32_t)t->late_waits + i));

                set_element(&x, row, col, value);
            }
        }
}

/* Keys and values of segments, as they are walked. */
struct walk {
    const struct kernel *k;
    const struct gpu_task *t;
    uint32_t segment;
    uint64_t key; /* of the segment */
};

/* False: no more.  Else the key's position in the sequence. */
static bool next_key(struct walk *w, struct matrix *key_out, struct matrix *value_out, uint64_t *position_out)
{
    const struct gpu_task *t = w->t;
    const struct gpu_segment *g = &w->k->p->segments[t->segments + w->segment];

    for (; w->segment < t->segment_count && w->key >= g->k; w->segment++, g++)
        w->key = 0;
    if (w->segment == t->segment_count)
        return false;
    *key_out = matrix_of(w->k, t->a_view, t->a_row + g->a_add + w->key, t->a_col);
    *value_out = matrix_of(w->k, t->b_view, t->b_row + g->b_add + w->key, t->b_col);
    *position_out = g->position + w->key++;
    return true;
}

/* What has been added up before a higher score came is scaled down. */
static void attend_query(const struct kernel *k, const struct gpu_task *t, const struct matrix *q, uint64_t row,
                         uint64_t last_key, float *result)
{
    struct walk w = {k, t, 0, 0};
    struct matrix key, value;
    uint64_t position;
    float highest = -INFINITY, sum = 0;

    while (next_key(&w, &key, &value, &position)) {
        struct matrix query = *q;
        float score = 0, scale, weight;

        if (position > last_key)
            continue;
        for (uint64_t i = 0; i < t->n; i++)
            score += element(&query, row, i) * element(&key, 0, i);
        score /= sqrtf((float)t->n);
        scale = score > highest ? expf(highest - score) : 1;
        highest = fmaxf(highest, score);
        weight = expf(score - highest);
        sum = sum * scale + weight;
        for (uint64_t i = 0; i < t->n; i++)
            result[i] = result[i] * scale + weight * element(&value, 0, i);
    }
    for (uint64_t i = 0; i < t->n && sum > 0; i++)
        result[i] /= sum;
}

static void attend(const struct kernel *k, const struct gpu_task *t)
{
    uint32_t targets = t->entry_waits + (uint32_t)t->late_waits;
    const union gpu_link *queries = link_of(k, t, targets + t->targets);
    struct matrix q = matrix_at(k, queries), out = matrix_at(k, link_of(k, t, targets));
    float *result = calloc(t->n, sizeof *result);

    for (uint64_t row = 0; row < t->m; row++) {
        uint64_t last_key = queries->matrix.more == GPU_UNMASKED ? UINT64_MAX : queries->matrix.more + row;

        for (uint64_t i = 0; i < t->n; i++)
            result[i] = 0;
        attend_query(k, t, &q, row, last_key, result);
        for (uint64_t i = 0; i < t->n; i++)
            set_element(&out, row, i, result[i]);
    }
    free(result);
}

static void signal_all(const struct kernel *k, const struct gpu_task *t)
{
    uint32_t first = t->entry_waits + (uint32_t)t->late_waits + t->targets + t->addends;

    for (uint32_t i = 0; i < t->signals; i++) {
        const struct gpu_signal *s = &link_of(k, t, first + i)->signal;

        __atomic_fetch_add((uint64_t *)(uintptr_t)s->address, s->add, __ATOMIC_RELEASE);
    }
}

/* False: the FIFO is full. */
static bool push_put(const struct kernel *k, const struct worker *w)
{
    const struct gpu_fifo *f = &w->w->fifo;
    uint64_t ticket = load(f->head);
    struct gpu_command *slot = (struct gpu_command *)(uintptr_t)f->slots + ticket % f->capacity;

    if (ticket - load(f->tail) >= f->capacity)
        return false;
    __atomic_store_n((uint64_t *)(uintptr_t)f->head, ticket + 1, __ATOMIC_RELAXED);
    slot->rows = w->task.m;
    __atomic_store_n(&slot->word, k->p->epoch << 32 | (w->task.k + 1), __ATOMIC_RELEASE);
    return true;
}

/* ---- workers ---- */

static bool is_attention(const struct gpu_task *t)
{
    return t->kind == GPU_ATTENTION || t->kind == GPU_ATTENTION_DIRECT;
}

static bool is_known(const struct gpu_task *t)
{
    if (is_attention(t) && (t->addends != 1 || t->targets != 1)) /* queries are one */
        return false;
    return t->kind <= GPU_PUT && t->select == 0 && !t->by_index && t->epilogue == EPILOGUE_NONE;
}

static bool run_task(const struct kernel *k, struct worker *w)
{
    const struct gpu_task *t = &w->task;

    if (!all_met(k, w) || (t->kind == GPU_PUT && !push_put(k, w)))
        return false;
    if (!is_known(t)) {
        fprintf(stderr, "fake kernel: kind %d is not known to it\n", t->kind);
        abort();
    }
    if (is_attention(t))
        attend(k, t);
    else if (t->kind != GPU_PUT && t->kind != GPU_SIGNAL)
        compute(k, t);
    if (t->kind != GPU_PUT)
        signal_all(k, t);
    return true;
}

static void pop(const struct kernel *k, struct worker *w)
{
    while (w->task.kind == GPU_END && w->queue < w->w->queue_count) {
        const struct gpu_queue *q = &w->w->queues[w->queue];
        uint64_t ticket = __atomic_fetch_add((uint64_t *)(uintptr_t)q->counter, 1, __ATOMIC_RELAXED);
        uint64_t index = ticket - (k->p->epoch - 1) * q->pops_per_epoch;

        if (index < q->length)
            w->task = k->p->tasks[q->tasks + index];
        else
            w->queue++;
    }
}

/* True: it got on. */
static bool take_turn(const struct kernel *k, struct worker *w)
{
    pop(k, w);
    w->ended = w->task.kind == GPU_END;
    w->stuck_flag = GPU_NO_FLAG;
    if (w->ended || !run_task(k, w))
        return w->ended;
    w->task.kind = GPU_END;
    return true;
}

static void note_stuck(const struct kernel *k)
{
    for (uint32_t i = 0; i < k->count; i++) {
        const struct worker *w = &k->workers[i];

        if (!w->ended)
            k->p->stuck[i * GPU_ROLE_COUNT + GPU_FETCH] = (struct gpu_stuck){
                .waits = 1,
                .queue = w->task.queue,
                .index = w->task.index,
                .step = GPU_NO_STEP,
                .flag = w->stuck_flag,
                .value = w->stuck_value,
                .wanted = w->stuck_wanted,
            };
    }
}

void fake_kernel_run(const struct gpu_program *p, uint32_t worker_count)
{
    struct kernel k = {.p = p, .workers = calloc(worker_count, sizeof *k.workers), .count = worker_count};
    uint32_t left = worker_count;

    for (uint32_t i = 0; i < worker_count; i++)
        k.workers[i] = (struct worker){.w = &p->workers[i]};
    while (left > 0 && __atomic_load_n(p->abort, __ATOMIC_RELAXED) == 0) {
        bool moved = false;

        for (uint32_t i = 0; i < worker_count; i++)
            if (!k.workers[i].ended) {
                moved |= take_turn(&k, &k.workers[i]);
                left -= k.workers[i].ended;
            }
        if (!moved)
            sched_yield();
    }
    note_stuck(&k);
    free(k.workers);
}
