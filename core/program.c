#include "core/program.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_ALIGN_BYTES 256 /* what bulk copies and tensor maps want, with room to spare */

/* ---- building ---- */

uint32_t program_add_buffer(struct program *p, struct buffer b)
{
    assert(p->buffer_count < PROGRAM_BUFFERS_MAX && b.depth >= 1);
    p->buffers[p->buffer_count] = b;
    return p->buffer_count++;
}

uint32_t program_add_flags(struct program *p, const char *name, uint64_t count)
{
    struct flag_group g = {.name = name, .first = p->flag_count, .count = (uint32_t)count};

    if (count == 0)
        return NO_FLAG;
    assert(p->flag_group_count < PROGRAM_FLAG_GROUPS_MAX);
    assert(count <= PROGRAM_FLAGS_MAX && p->flag_count + count <= PROGRAM_FLAGS_MAX);
    p->flag_groups[p->flag_group_count++] = g;
    p->flag_count += g.count;
    return g.first;
}

uint32_t program_add_queue(struct program *p, const char *name)
{
    assert(p->queue_count < PROGRAM_QUEUES_MAX);
    p->queues[p->queue_count].name = name;
    return p->queue_count++;
}

uint32_t program_add_crew(struct program *p, const char *name, uint32_t workers)
{
    assert(p->crew_count < PROGRAM_CREWS_MAX && workers >= 1);
    p->crews[p->crew_count] = (struct crew){.name = name, .workers = workers};
    return p->crew_count++;
}

void program_crew_drains(struct program *p, uint32_t crew, uint32_t queue)
{
    struct crew *c = &p->crews[crew];

    assert(crew < p->crew_count && queue < p->queue_count && c->queue_count < CREW_QUEUES_MAX);
    c->queues[c->queue_count++] = queue;
}

void program_fini(struct program *p)
{
    if (p->ops && p->ops->fini)
        p->ops->fini(p);
    memset(p, 0, sizeof *p);
}

void task_wait_as(struct task *t, struct wait w)
{
    if (w.count == 0)
        return;
    assert(t->wait_count < TASK_WAITS_MAX);
    t->waits[t->wait_count++] = w;
}

void task_wait(struct task *t, uint32_t flag, uint32_t count, uint64_t value)
{
    task_wait_as(t, (struct wait){.flag = flag, .count = count, .value = value});
}

void task_wait_late(struct task *t, uint32_t flag, uint32_t count, uint64_t value)
{
    task_wait_as(t, (struct wait){.flag = flag, .count = count, .value = value, .phase = WAIT_LATE});
}

void task_signal(struct task *t, uint32_t rank, uint32_t flag, uint64_t add)
{
    assert(t->signal_count < TASK_SIGNALS_MAX);
    t->signals[t->signal_count++] = (struct signal){.rank = rank, .flag = flag, .add = add};
}

void task_store_to(struct task *t, struct operand target)
{
    assert(t->out_count < TASK_TARGETS_MAX);
    t->out[t->out_count++] = target;
}

/* ---- reading ---- */

uint64_t program_queue_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    return p->ops->queue_length(p, rank, queue);
}

void program_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *out)
{
    memset(out, 0, sizeof *out);
    out->segment_table = NO_TABLE;
    p->ops->task(p, rank, queue, index, out);
}

uint64_t program_flag_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    return p->ops->flag_total(p, rank, flag);
}

uint32_t program_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    return p->ops->io(p, rank, out);
}

struct operand program_addend(const struct program *p, uint32_t rank, const struct task *t, uint32_t i)
{
    struct operand o = t->addend;

    if (o.rank == RANK_NODE)
        o.rank = world_rank(p->world, world_node(p->world, rank), i);
    else
        o.offset += i * t->addend_stride;
    return o;
}

uint32_t program_step_count(const struct task *t)
{
    return t->segment_table == NO_TABLE ? 1 : t->segment_count;
}

void program_step(const struct program *p, uint32_t rank, const struct task *t, uint32_t step, struct segment *out,
                  struct operand *a_out, struct operand *b_out)
{
    struct segment s = {.k = t->k};

    if (t->segment_table != NO_TABLE) {
        uint32_t size = p->ops->segment_table_size(p, rank, t->segment_table);

        memset(&s, 0, sizeof s);
        p->ops->segment(p, rank, t->segment_table, (t->segment_first + step) % size, &s);
    }
    if (t->op == OP_ATTENTION && t->attention.causal) {
        uint64_t end = t->attention.position + t->m; /* behind the last query */

        s.k = s.position >= end ? 0 : min_u64(s.k, end - s.position);
    }
    *a_out = t->a;
    *b_out = t->b;
    a_out->offset += s.a_offset;
    b_out->offset += s.b_offset;
    *out = s;
}

struct extent step_extent_a(const struct task *t, const struct segment *s)
{
    return t->op == OP_ATTENTION ? (struct extent){s->k, t->n} : (struct extent){t->m, s->k};
}

struct extent step_extent_b(const struct task *t, const struct segment *s)
{
    if (t->op == OP_ATTENTION)
        return (struct extent){s->k, t->n};
    return (struct extent){t->epilogue == EPILOGUE_SWIGLU ? 2 * t->n : t->n, s->k};
}

uint64_t program_index_terms(const struct task *t)
{
    if (t->op == OP_COMBINE_ROWS)
        return t->combine.terms;
    return task_indexes(t);
}

uint64_t program_index_cols(const struct task *t)
{
    return t->op == OP_GEMM ? t->k : t->n;
}

struct wait program_indexed_wait(const struct task *t, uint64_t value)
{
    uint64_t i;

    if (t->indexed.count == 0)
        return (struct wait){.count = 0};
    i = value / t->indexed.rows_per_flag;
    assert(i < t->indexed.count);
    return (struct wait){.flag = t->indexed.first + (uint32_t)i, .count = 1, .value = FLAG_TOTAL};
}

void program_select(struct task *t, uint64_t group, uint64_t first, uint64_t rows)
{
    uint64_t down = first + t->select.skip;

    t->m = rows > t->select.skip ? min_u64(t->m, rows - t->select.skip) : 0;
    if (t->m == 0 && t->op != OP_PUT) { /* a put of nothing still carries its signal */
        t->op = OP_NOP;
        t->out_count = t->addend_count = 0;
        t->indexed.count = 0;
        return;
    }
    if (t->op == OP_GEMM)
        t->b.offset += group * t->select.b_step;
    if (t->select.mode != SELECT_ENTRY)
        return;
    t->index.offset += down * t->index.ld;
    if (t->op == OP_GEMM && !t->by_index)
        t->a.offset += down * t->a.ld;
    for (uint32_t i = 0; i < t->out_count; i++)
        t->out[i].offset += down * t->out[i].ld;
}

uint64_t program_wait_target(const struct program *p, uint32_t rank, const struct wait *w, uint32_t i, uint64_t epoch)
{
    uint64_t total;

    if (epoch <= w->lag)
        return 0;
    total = program_flag_total(p, rank, w->flag + i);
    return (epoch - w->lag - 1) * total + (w->value == FLAG_TOTAL ? total : w->value);
}

const struct flag_group *program_flag_group(const struct program *p, uint32_t flag)
{
    for (uint32_t i = 0; i < p->flag_group_count; i++) {
        const struct flag_group *g = &p->flag_groups[i];

        if (flag >= g->first && flag - g->first < g->count)
            return g;
    }
    return NULL;
}

size_t dtype_bytes(enum dtype d)
{
    return d == DTYPE_BF16 ? 2 : 4;
}

const char *dtype_name(enum dtype d)
{
    static const char *const names[] = {
        [DTYPE_BF16] = "bf16",
        [DTYPE_F32] = "f32",
        [DTYPE_I32] = "i32",
    };

    return names[d];
}

bool buffer_is_control(const struct buffer *b)
{
    return b->dtype == DTYPE_I32;
}

uint64_t buffer_elements(const struct buffer *b)
{
    return b->rows * b->cols;
}

static uint64_t copy_bytes(const struct buffer *b)
{
    return ceil_div(buffer_elements(b) * dtype_bytes(b->dtype), BUFFER_ALIGN_BYTES) * BUFFER_ALIGN_BYTES;
}

uint64_t buffer_bytes(const struct buffer *b)
{
    return copy_bytes(b) * b->depth;
}

uint64_t program_window_bytes(const struct program *p)
{
    unsigned __int128 bytes = 0;

    for (uint32_t i = 0; i < p->buffer_count; i++)
        bytes += (unsigned __int128)copy_bytes(&p->buffers[i]) * p->buffers[i].depth;
    return bytes < UINT64_MAX ? (uint64_t)bytes : UINT64_MAX;
}

/* Of the buffers before `end` that are, or are not, control buffers. */
static uint64_t bytes_before(const struct program *p, uint32_t end, bool control)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < end; i++)
        if (buffer_is_control(&p->buffers[i]) == control)
            bytes += buffer_bytes(&p->buffers[i]);
    return bytes;
}

uint64_t program_control_bytes(const struct program *p)
{
    return bytes_before(p, p->buffer_count, true);
}

uint64_t program_buffer_offset(const struct program *p, uint32_t buffer, uint64_t epoch)
{
    const struct buffer *b = &p->buffers[buffer];
    bool control = buffer_is_control(b);
    uint64_t offset = epoch % b->depth * copy_bytes(b);

    assert(buffer < p->buffer_count);
    return offset + bytes_before(p, buffer, control) + (control ? 0 : program_control_bytes(p));
}

uint64_t program_task_count(const struct program *p)
{
    uint64_t count = 0;

    for (uint32_t rank = 0; rank < world_ranks(p->world); rank++)
        for (uint32_t q = 0; q < p->queue_count; q++)
            count += program_queue_length(p, rank, q);
    return count;
}

uint32_t program_target_ranks(const struct program *p, uint32_t rank, uint32_t target, uint32_t *first_out)
{
    if (target != RANK_NODE && target != RANK_EACH) {
        *first_out = target;
        return 1;
    }
    *first_out = world_rank(p->world, world_node(p->world, rank), 0);
    return p->world.gpus_per_node;
}

const char *op_name(enum op op)
{
    static const char *const names[] = {
        [OP_NOP] = "nop",
        [OP_GEMM] = "gemm",
        [OP_COPY] = "copy",
        [OP_REDUCE] = "reduce",
        [OP_PUT] = "put",
        [OP_ATTENTION] = "attention",
        [OP_GATHER_ROWS] = "gather_rows",
        [OP_ROUTE] = "route",
        [OP_COMBINE_ROWS] = "combine_rows",
    };

    return names[op];
}
