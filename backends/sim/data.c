#include "backends/sim/data.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/ops/route.h"
#include "backends/sim/conflict.h"
#include "backends/sim/control.h"
#include "backends/sim/transfer.h"
#include "core/check.h"
#include "core/route.h"

struct data {
    uint8_t **windows; /* by rank */
    struct memory memory;
    struct scratch *scratch;
    struct conflicts *conflicts;
    struct check_report *reports; /* by rank */
};

#define WINDOW_ALIGN_BYTES 256
#define ACCESSES_PER_WORKER 24 /* of the task in hand and of one behind it */

static uint64_t scratch_bytes(const struct program *p)
{
    uint64_t most = 0;

    for (uint32_t q = 0; q < p->queue_count; q++) {
        uint64_t length = program_queue_length(p, 0, q);
        struct task t;

        if (length == 0)
            continue;
        program_task(p, 0, q, length / 2, &t); /* tiles of one queue are of one size */
        most = max_u64(most, tile_scratch_bytes(&t));
    }
    return most;
}

uint64_t data_memory_bytes(const struct job *job, uint32_t workers_per_rank)
{
    const struct program *p = job->program;
    uint64_t rank_bytes, bytes;

    rank_bytes = p->buffer_count * sizeof(struct access *) + sizeof(struct check_report) +
                 (uint64_t)workers_per_rank * ACCESSES_PER_WORKER * sizeof(struct access);
    if (__builtin_add_overflow(program_window_bytes(p), rank_bytes + WINDOW_ALIGN_BYTES, &rank_bytes) ||
        __builtin_mul_overflow(rank_bytes, world_ranks(p->world), &bytes) ||
        __builtin_add_overflow(bytes, check_memory_bytes(job), &bytes) ||
        __builtin_add_overflow(bytes, scratch_bytes(p), &bytes))
        return UINT64_MAX;
    return bytes;
}

static bool open_windows(struct sim *s, struct data *d)
{
    uint64_t bytes = ceil_div(program_window_bytes(s->program) + 1, WINDOW_ALIGN_BYTES);

    for (uint32_t rank = 0; rank < s->rank_count; rank++) {
        d->windows[rank] = aligned_alloc(WINDOW_ALIGN_BYTES, bytes * WINDOW_ALIGN_BYTES);
        if (!d->windows[rank])
            return false;
        check_poison(s->job, d->windows[rank]);
    }
    return true;
}

bool data_open(struct sim *s)
{
    struct data *d = calloc(1, sizeof *d);

    assert(d);
    s->data = d;
    d->windows = calloc(s->rank_count, sizeof *d->windows);
    d->reports = calloc(s->rank_count, sizeof *d->reports);
    assert(d->windows && d->reports);
    d->memory = (struct memory){.program = s->program, .windows = d->windows};
    d->scratch = scratch_create();
    d->conflicts = conflicts_create(s->program);
    return open_windows(s, d);
}

void data_close(struct sim *s)
{
    struct data *d = s->data;

    if (!d)
        return;
    for (uint32_t rank = 0; rank < s->rank_count; rank++)
        free(d->windows[rank]);
    scratch_destroy(d->scratch);
    conflicts_destroy(d->conflicts);
    free(d->windows);
    free(d->reports);
    free(d);
    s->data = NULL;
}

const struct memory *data_memory(const struct sim *s)
{
    return &s->data->memory;
}

/* ---- accesses ---- */

static void fail(struct sim *s, const struct access *mine, const struct access *other)
{
    struct run_result *r = s->result;
    char a[256], b[256];

    conflicts_describe(s->program, &mine->id, mine->kind, &mine->region, a, sizeof a);
    conflicts_describe(s->program, &other->id, other->kind, &other->region, b, sizeof b);
    s->failed = true;
    r->status = ST_WRONG;
    snprintf(r->report, sizeof r->report,
             "two tasks access the same bytes at the same time (at %" PRIu64 " ps):\n  %s\n  %s\n", sim_now(s), a, b);
}

static void add(struct sim *s, const struct region *region, enum access_kind kind, const struct task_id *id,
                struct access **owned)
{
    const struct access *other = conflicts_add(s->data->conflicts, region, kind, id, owned);

    if (other && !s->failed)
        fail(s, *owned, other);
}

static void add_operand(struct sim *s, struct worker *w, const struct operand *o, uint32_t rank, uint64_t rows,
                        uint64_t cols, enum access_kind kind)
{
    struct region region = {
        .rank = rank,
        .buffer = o->buffer,
        .copy = w->id.epoch % s->program->buffers[o->buffer].depth,
        .offset = o->offset,
        .ld = o->ld,
        .rows = rows,
        .cols = cols,
    };

    add(s, &region, kind, &w->id, &w->accesses);
}

/* All of a control buffer of the own rank. */
static void add_control(struct sim *s, struct worker *w, uint32_t buffer, enum access_kind kind)
{
    const struct buffer *b = &s->program->buffers[buffer];
    struct operand o = {.rank = w->id.rank, .buffer = buffer, .ld = b->cols};

    add_operand(s, w, &o, o.rank, b->rows, b->cols, kind);
}

static void reads_rows(struct sim *s, struct worker *w)
{
    const struct task *t = &w->task;

    uint64_t terms = program_index_terms(t);

    add_operand(s, w, &t->index, t->index.rank, t->m, terms, ACCESS_READ);
    if (t->op == OP_COMBINE_ROWS && t->combine.weighted)
        add_operand(s, w, &t->combine.weight, w->id.rank, t->m, terms, ACCESS_READ);
    for (uint64_t i = 0; i < t->m * terms; i++) {
        struct operand row;
        uint64_t value;

        if (!control_index(s, &w->id, t, i, &value))
            continue;
        tile_gather_source(s->program, w->id.rank, t, value, &row);
        add_operand(s, w, &row, row.rank, 1, program_index_cols(t), ACCESS_READ);
    }
}

static void routes(struct sim *s, struct worker *w)
{
    const struct route *r = w->task.route;
    uint64_t rows;
    struct operand table = route_reads(r, w->id.rank, &rows);

    add_operand(s, w, &table, table.rank, rows, r->top_k, ACCESS_READ);
    add_control(s, w, r->index, ACCESS_WRITE);
    add_control(s, w, r->kind == ROUTE_SEND ? r->counts : r->list, ACCESS_WRITE);
    if (r->back != NO_BUFFER)
        add_control(s, w, r->back, ACCESS_WRITE);
    if (r->back != NO_BUFFER && r->kind == ROUTE_RECEIVE)
        add_control(s, w, r->counts, ACCESS_WRITE);
    if (r->kind == ROUTE_RECEIVE && r->pulls != NO_BUFFER) {
        add_control(s, w, r->pulls, ACCESS_WRITE);
        add_control(s, w, r->pull_count, ACCESS_WRITE);
    }
}

void data_reads_source(struct sim *s, struct worker *w)
{
    const struct task *t = &w->task;

    if (!s->data)
        return;
    if (t->select.mode != SELECT_ALL)
        add_control(s, w, t->select.buffer, ACCESS_READ);
    if (task_indexes(t))
        reads_rows(s, w);
    else if (t->op == OP_ROUTE)
        routes(s, w);
    if (t->op == OP_COPY)
        add_operand(s, w, &t->a, t->a.rank, t->m, t->n, ACCESS_READ);
    else if (t->op == OP_PUT) /* contiguous, whatever ld says */
        add_operand(s, w, &t->a, t->a.rank, 1, t->m * t->n, ACCESS_READ);
    else if (t->op == OP_ATTENTION)
        add_operand(s, w, &t->attention.q, t->attention.q.rank, t->m, t->n, ACCESS_READ);
}

void data_reads_step(struct sim *s, struct worker *w, const struct operand *o, const struct extent *e)
{
    if (s->data)
        add_operand(s, w, o, o->rank, e->rows, e->cols, ACCESS_READ);
}

void data_reads_addends(struct sim *s, struct worker *w)
{
    if (!s->data)
        return;
    for (uint32_t i = 0; i < w->task.addend_count; i++) {
        struct operand o = program_addend(s->program, w->id.rank, &w->task, i);

        add_operand(s, w, &o, o.rank, w->task.m, w->task.n, ACCESS_READ);
    }
    if (w->task.op == OP_ATTENTION && w->task.addend_count)
        add_operand(s, w, &w->task.attention.lse, w->task.attention.lse.rank, w->task.m, 1, ACCESS_READ);
}

void data_writes(struct sim *s, struct worker *w)
{
    const struct task *t = &w->task;
    bool put = t->op == OP_PUT;

    if (!s->data)
        return;
    for (uint32_t i = 0; i < t->out_count; i++) {
        uint32_t first, count = program_target_ranks(s->program, w->id.rank, t->out[i].rank, &first);

        for (uint32_t rank = first; rank < first + count; rank++)
            if (!transfer_is_void(t, &t->out[i], rank))
                add_operand(s, w, &t->out[i], rank, put ? 1 : t->m, put ? t->m * t->n : t->n, ACCESS_WRITE);
    }
    if (t->op == OP_ATTENTION && t->attention.leaves)
        add_operand(s, w, &t->attention.lse, t->attention.lse.rank, t->m, 1, ACCESS_WRITE);
}

/* The rank's begin or end touches all slices of a role at one instant. */
static void touch_slices(struct sim *s, uint32_t rank, uint32_t virtual_task, int role, enum access_kind kind)
{
    struct task_id id = {.rank = rank, .queue = virtual_task, .epoch = s->ranks[rank].epoch};
    struct io_slice slices[PROGRAM_IO_MAX];
    struct access *owned = NULL;
    uint32_t count = program_io(s->program, rank, slices);

    for (uint32_t i = 0; i < count; i++) {
        const struct io_slice *x = &slices[i];
        const struct buffer *b = &s->program->buffers[x->buffer];
        struct region region = {
            .rank = rank,
            .buffer = x->buffer,
            .copy = id.epoch % b->depth,
            .offset = x->row * b->cols,
            .ld = b->cols,
            .rows = x->rows,
            .cols = x->cols,
        };

        if ((int)x->role == role)
            add(s, &region, kind, &id, &owned);
    }
    conflicts_end(s->data->conflicts, &owned);
}

/* ---- epochs and tasks ---- */

void data_begin_epoch(struct sim *s, uint32_t rank)
{
    if (!s->data)
        return;
    touch_slices(s, rank, TASK_BEGIN, IO_INPUT, ACCESS_WRITE);
    check_write_inputs(s->job, rank, s->ranks[rank].epoch, s->data->windows[rank]);
}

void data_end_epoch(struct sim *s, uint32_t rank)
{
    if (!s->data)
        return;
    touch_slices(s, rank, TASK_END, IO_OUTPUT, ACCESS_WRITE); /* read, then poisoned */
    touch_slices(s, rank, TASK_END, IO_INPUT, ACCESS_WRITE);
    if (!s->failed)
        check_outputs(s->job, rank, s->ranks[rank].epoch, s->data->windows[rank], &s->data->reports[rank]);
}

static void do_work(struct sim *s, const struct task_id *id, const struct task *t)
{
    struct data *d = s->data;

    if (t->op == OP_NOP || t->op == OP_ROUTE)
        return;
    if (!op_walks(t->op)) {
        tile_move(d->scratch, &d->memory, id->rank, id->epoch, t);
        return;
    }
    tile_begin(d->scratch, t);
    for (uint32_t step = 0; step < program_step_count(t); step++)
        tile_step(d->scratch, &d->memory, id->rank, id->epoch, t, step);
    tile_finish(d->scratch, &d->memory, id->rank, id->epoch, t);
}

void data_finish(struct sim *s, const struct task_id *id, const struct task *t, struct access **accesses)
{
    if (!s->data)
        return;
    if (!s->failed)
        do_work(s, id, t);
    conflicts_end(s->data->conflicts, accesses);
}

void data_verdict(struct sim *s)
{
    struct run_result *r = s->result;

    if (!s->data)
        return;
    for (uint32_t rank = 0; rank < s->rank_count; rank++) {
        const struct check_report *c = &s->data->reports[rank];

        r->elements_checked += c->checked;
        r->elements_wrong += c->wrong;
        if (c->wrong > 0 && r->status == ST_OK) {
            r->status = ST_WRONG;
            snprintf(r->report, sizeof r->report, "%s\n", c->first);
        }
    }
}
