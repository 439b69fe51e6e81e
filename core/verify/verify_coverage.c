/* Coverage: every output element is written once and holds exactly what it should.
 *
 * One epoch is executed with symbols in the place of numbers.  A symbol says which element of which global
 * tensor stands where, and for sums which products are in them: the range [k0, k1) of the global reduction
 * contributes H(k1) - H(k0) for a fixed random function H, so adjacent ranges add up to their union, and a
 * range that is missing or counted twice shows.  (Two different sums agree with a chance of 2^-64.)
 *
 * Races are excluded by now, so the order in which tasks are taken does not matter as long as waits are met. */
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/verify/verify_coverage.h"

struct patch { /* a rectangle of a buffer that holds one symbol */
    uint64_t row, rows, col, cols;
    struct symbol symbol;
};

/* What a buffer of a rank holds, in bands of rows, so that a look-up sees few patches. */
#define BAND_ROWS 128

struct band {
    struct patch *patches;
    uint32_t count, room;
};

struct canvas {
    struct band *bands;
    uint64_t band_count;
};

struct tracing {
    struct verifier *v;
    const struct problem *global;
    struct canvas *canvases; /* [rank * buffers + buffer] */
    uint64_t *counters;
    uint64_t *next; /* [rank * queues + queue] */
    bool out_of_memory;
};

uint64_t verify_contribution(uint64_t k)
{
    k += 0x9e3779b97f4a7c15u;
    k = (k ^ (k >> 30)) * 0xbf58476d1ce4e5b9u;
    k = (k ^ (k >> 27)) * 0x94d049bb133111ebu;
    return k ^ (k >> 31);
}

static struct canvas *canvas_of(const struct tracing *x, uint32_t rank, uint32_t buffer)
{
    return &x->canvases[(uint64_t)rank * x->v->p->buffer_count + buffer];
}

static bool canvas_add(struct canvas *c, uint64_t band, const struct patch *p)
{
    struct band *b = &c->bands[band];

    if (b->count == b->room) {
        uint32_t room = b->room ? 2 * b->room : 4;
        struct patch *bigger = realloc(b->patches, room * sizeof *bigger);

        if (!bigger)
            return false;
        b->patches = bigger;
        b->room = room;
    }
    b->patches[b->count++] = *p;
    return true;
}

static bool same_place(const struct patch *a, const struct patch *b)
{
    return a->row == b->row && a->rows == b->rows && a->col == b->col && a->cols == b->cols;
}

/* A result takes the place of the addend that it was made from. */
static void replace(struct tracing *x, uint32_t rank, uint32_t buffer, const struct patch *p)
{
    struct canvas *c = canvas_of(x, rank, buffer);

    for (uint64_t band = p->row / BAND_ROWS; band <= (p->row + p->rows - 1) / BAND_ROWS; band++)
        for (uint32_t i = 0; i < c->bands[band].count; i++)
            if (same_place(&c->bands[band].patches[i], p))
                c->bands[band].patches[i] = c->bands[band].patches[--c->bands[band].count];
}

/* Stores a symbol; fails when something already stands there in this epoch. */
static void paint(struct tracing *x, uint32_t rank, uint32_t buffer, const struct patch *p, const struct task_place *by)
{
    struct canvas *c = canvas_of(x, rank, buffer);
    char text[VERIFY_TASK_TEXT_BYTES];

    for (uint64_t band = p->row / BAND_ROWS; band <= (p->row + p->rows - 1) / BAND_ROWS; band++) {
        for (uint32_t i = 0; i < c->bands[band].count; i++) {
            const struct patch *old = &c->bands[band].patches[i];

            if (p->row >= old->row + old->rows || old->row >= p->row + p->rows || p->col >= old->col + old->cols ||
                old->col >= p->col + p->cols)
                continue;
            if (by) {
                verify_describe(x->v, *by, text);
                verify_fail(x->v, "coverage", "%s[%lu, %lu] of rank %u is written twice in an epoch\n    %s",
                            x->v->p->buffers[buffer].name, (unsigned long)p->row, (unsigned long)p->col, rank, text);
            }
            return;
        }
        if (!canvas_add(c, band, p))
            x->out_of_memory = true;
    }
}

/* The one symbol that covers a rectangle; false: parts are missing or do not belong together. */
static bool look(const struct tracing *x, uint32_t rank, uint32_t buffer, uint64_t row, uint64_t rows, uint64_t col,
                 uint64_t cols, struct symbol *out)
{
    const struct canvas *c = canvas_of(x, rank, buffer);
    uint64_t covered = 0;

    for (uint64_t band = row / BAND_ROWS; band <= (row + rows - 1) / BAND_ROWS; band++) {
        for (uint32_t i = 0; i < c->bands[band].count; i++) {
            const struct patch *p = &c->bands[band].patches[i];
            uint64_t top = max_u64(row, p->row), left = max_u64(col, p->col);
            uint64_t bottom = min_u64(row + rows, p->row + p->rows);
            uint64_t right = min_u64(col + cols, p->col + p->cols);

            /* a patch stands in each of its bands: count only the part in this one */
            top = max_u64(top, band * BAND_ROWS);
            bottom = min_u64(bottom, (band + 1) * BAND_ROWS);
            if (top >= bottom || left >= right)
                continue;
            if (covered && memcmp(out, &p->symbol, sizeof *out) != 0)
                return false;
            *out = p->symbol;
            covered += (bottom - top) * (right - left);
        }
    }
    return covered == rows * cols;
}

static uint64_t operand_row(const struct tracing *x, const struct operand *o)
{
    return o->offset / x->v->p->buffers[o->buffer].cols;
}

static uint64_t operand_col(const struct tracing *x, const struct operand *o)
{
    return o->offset % x->v->p->buffers[o->buffer].cols;
}

bool verify_look(const struct tracing *x, const struct operand *o, uint64_t rows, uint64_t cols, struct symbol *out)
{
    if (!look(x, o->rank, o->buffer, operand_row(x, o), rows, operand_col(x, o), cols, out))
        return false;
    out->row += operand_row(x, o);
    out->col += operand_col(x, o);
    return true;
}

const struct problem *verify_global(const struct tracing *x)
{
    return x->global;
}

const struct program *verify_traced(const struct tracing *x)
{
    return x->v->p;
}

/* One step of a GEMM: A[row, k] x B[col, k] gives C[row, col] with the products of k. */
static bool multiply(const struct tracing *x, uint32_t rank, const struct task *t, uint32_t step, struct symbol *sum)
{
    struct segment segment;
    struct operand a, b;
    struct symbol sa = {0}, sb = {0};

    program_step(x->v->p, rank, t, step, &segment, &a, &b);
    if (segment.k == 0)
        return true;
    if (!verify_look(x, &a, t->m, segment.k, &sa) || !verify_look(x, &b, t->n, segment.k, &sb) ||
        sa.tensor != TENSOR_A || sb.tensor != TENSOR_B || sa.col != sb.col)
        return false;
    if (sum->tensor == TENSOR_C && (sum->row != sa.row || sum->col != sb.row))
        return false;
    sum->tensor = TENSOR_C;
    sum->row = sa.row;
    sum->col = sb.row;
    sum->sum += verify_contribution(sa.col + segment.k) - verify_contribution(sa.col);
    return true;
}

static bool add(const struct tracing *x, uint32_t rank, const struct task *t, struct symbol *sum)
{
    for (uint32_t i = 0; i < t->addend_count; i++) {
        struct operand o = program_addend(x->v->p, rank, t, i);
        struct symbol s = {0};

        if (!verify_look(x, &o, t->m, t->n, &s) || s.tensor != TENSOR_C)
            return false;
        if (sum->tensor == TENSOR_C && (sum->row != s.row || sum->col != s.col))
            return false;
        sum->tensor = TENSOR_C;
        sum->row = s.row;
        sum->col = s.col;
        sum->sum += s.sum;
    }
    return true;
}

/* What the task writes, as the tensor element at its first element. */
static bool result_of(const struct tracing *x, uint32_t rank, const struct task *t, struct symbol *out)
{
    memset(out, 0, sizeof *out);
    out->tensor = UINT32_MAX;
    if (t->epilogue != EPILOGUE_NONE)
        return false; /* no sum any more: what it makes of one has no symbol */
    if (t->op == OP_COPY)
        return verify_look(x, &t->a, t->m, t->n, out);
    if (t->op == OP_ATTENTION)
        return verify_attention_result(x, rank, t, out);
    for (uint32_t s = 0; t->op == OP_GEMM && s < program_step_count(t); s++)
        if (!multiply(x, rank, t, s, out))
            return false;
    return add(x, rank, t, out);
}

static bool replaces(const struct operand *o, const struct operand *addend, uint32_t rank)
{
    return addend->rank == rank && addend->buffer == o->buffer && addend->offset == o->offset;
}

/* `addend`: what the task took up, NULL for none. */
static void store_symbol(struct tracing *x, struct task_place at, const struct task *t, const struct operand *o,
                         uint64_t cols, const struct operand *addend, struct symbol symbol)
{
    uint32_t first, count = program_target_ranks(x->v->p, at.rank, o->rank, &first);
    struct patch p = {operand_row(x, o), t->m, operand_col(x, o), cols, symbol};

    p.symbol.row -= p.row;
    p.symbol.col -= p.col;
    for (uint32_t r = first; r < first + count; r++) {
        if (addend && replaces(o, addend, r))
            replace(x, r, o->buffer, &p);
        if (t->op != OP_COPY || t->a.rank != r || t->a.buffer != o->buffer || t->a.offset != o->offset)
            paint(x, r, o->buffer, &p, &at);
    }
}

/* A put carries whole rows of patches, gaps of edge tiles included. */
static void carry(struct tracing *x, struct task_place at, const struct task *t)
{
    const struct operand *o = &t->out[0];
    const struct canvas *from = canvas_of(x, t->a.rank, t->a.buffer);
    uint64_t row = operand_row(x, &t->a), shift = operand_row(x, o) - row;

    for (uint64_t band = row / BAND_ROWS; band <= (row + t->m - 1) / BAND_ROWS; band++) {
        for (uint32_t i = 0; i < from->bands[band].count; i++) {
            struct patch p = from->bands[band].patches[i];
            bool first_band = p.row / BAND_ROWS == band || (p.row < row && band == row / BAND_ROWS);
            uint64_t end = min_u64(p.row + p.rows, row + t->m);

            p.row = max_u64(p.row, row);
            if (p.row >= end || !first_band)
                continue;
            p.rows = end - p.row;
            p.row += shift;
            p.symbol.row -= shift;
            paint(x, o->rank, o->buffer, &p, &at);
        }
    }
}

static void trace_task(struct tracing *x, struct task_place at, const struct task *t)
{
    bool took_up = t->op == OP_ATTENTION && t->addend_count > 0;
    char text[VERIFY_TASK_TEXT_BYTES];
    struct symbol result;

    if (t->op == OP_NOP || t->m == 0 || t->n == 0)
        return;
    if (t->op == OP_PUT) {
        carry(x, at, t);
        return;
    }
    if (!result_of(x, at.rank, t, &result)) {
        verify_describe(x->v, at, text);
        verify_fail(x->v, "coverage", "operands that are not there, or do not belong together\n    %s", text);
        return;
    }
    for (uint32_t i = 0; i < t->out_count; i++)
        store_symbol(x, at, t, &t->out[i], t->n, took_up ? &t->addend : NULL, result);
    if (t->op == OP_ATTENTION && t->attention.leaves)
        store_symbol(x, at, t, &t->attention.lse, 1, took_up ? &t->attention.lse : NULL, result);
}

/* ---- one epoch in an order in which waits are met ---- */

struct met {
    const struct tracing *x;
    uint32_t rank;
};

static bool total_reached(void *arg, const struct wait *w)
{
    const struct met *m = arg;

    for (uint32_t i = 0; w->lag == 0 && i < w->count; i++) {
        uint64_t f = verify_flag_index(m->x->v, m->rank, w->flag + i);

        if (m->x->counters[f] < m->x->v->totals[f])
            return false;
    }
    return true;
}

static void count_signals(struct tracing *x, uint32_t rank, const struct task *t)
{
    for (uint32_t i = 0; i < t->signal_count; i++) {
        uint32_t first, count = program_target_ranks(x->v->p, rank, t->signals[i].rank, &first);

        for (uint32_t r = first; r < first + count; r++)
            x->counters[verify_flag_index(x->v, r, t->signals[i].flag)] += t->signals[i].add;
    }
}

static bool trace_queue(struct tracing *x, uint32_t rank, uint32_t queue)
{
    uint64_t *next = &x->next[(uint64_t)rank * x->v->p->queue_count + queue], before = *next;
    uint64_t length = program_queue_length(x->v->p, rank, queue);
    struct met m = {x, rank};

    while (*next < length && !x->v->report->violations) {
        struct task t;

        program_task(x->v->p, rank, queue, *next, &t);
        if (!verify_each_wait(x->v, rank, &t, VERIFY_RESULT, total_reached, &m))
            break;
        trace_task(x, (struct task_place){rank, queue, *next}, &t);
        count_signals(x, rank, &t);
        ++*next;
    }
    return *next != before;
}

static void trace_epoch(struct tracing *x)
{
    bool moved = true;

    while (moved) { /* the abstract execution has shown that this gets to the end */
        moved = false;
        for (uint32_t rank = 0; rank < x->v->ranks; rank++)
            for (uint32_t q = 0; q < x->v->p->queue_count; q++)
                moved |= trace_queue(x, rank, q);
    }
}

/* ---- inputs and outputs ---- */

static void paint_inputs(struct tracing *x, uint32_t rank)
{
    struct io_slice io[PROGRAM_IO_MAX];
    uint32_t count = program_io(x->v->p, rank, io);

    for (uint32_t i = 0; i < count; i++) {
        struct patch p = {io[i].row,
                          io[i].rows,
                          0,
                          io[i].cols,
                          {.tensor = io[i].tensor, .row = io[i].tensor_row - io[i].row, .col = io[i].tensor_col}};

        if (io[i].role == IO_INPUT && p.rows && p.cols)
            paint(x, rank, io[i].buffer, &p, NULL);
    }
}

/* What a patch of an output slice must hold: all contributions. */
static bool whole_sum(const struct tracing *x, const struct io_slice *io, const struct patch *p, uint64_t *sum_out)
{
    if (io->tensor == TENSOR_O)
        return verify_attention_whole(x->global, io->tensor_row + p->row - io->row, p->rows, sum_out);
    *sum_out = verify_contribution(x->global->k) - verify_contribution(0);
    return io->tensor == TENSOR_C;
}

static bool in_slice(const struct io_slice *io, const struct patch *p)
{
    return p->row >= io->row && p->row < io->row + io->rows;
}

/* ---- who wrote what is wrong ---- */

struct writer {
    const struct verifier *v;
    const struct patch *patch;
    uint32_t rank, buffer;
    bool writes, found;
    struct task_place at; /* the last of them */
};

static bool overlap(uint64_t a, uint64_t a_count, uint64_t b, uint64_t b_count)
{
    return a < b + b_count && b < a + a_count;
}

static void look_at_access(void *arg, const struct access *a)
{
    struct writer *w = arg;

    w->writes |= a->write && a->window == w->rank && a->buffer == w->buffer &&
                 overlap(a->row, a->rows, w->patch->row, w->patch->rows) &&
                 overlap(a->col, a->cols, w->patch->col, w->patch->cols);
}

static void look_for_writer(void *arg, struct task_place at, const struct task *t)
{
    struct writer *w = arg;

    w->writes = false;
    verify_each_access(w->v, at.rank, t, look_at_access, w);
    if (!w->writes)
        return;
    w->found = true;
    w->at = at;
}

static void fail_patch(struct tracing *x, uint32_t rank, uint32_t buffer, const struct patch *p, const char *holds)
{
    struct writer w = {.v = x->v, .patch = p, .rank = rank, .buffer = buffer};
    char task[VERIFY_TASK_TEXT_BYTES] = "";

    verify_each_task(x->v, look_for_writer, &w);
    if (w.found)
        verify_describe(x->v, w.at, task);
    verify_fail(x->v, "coverage", "%s[%lu..%lu, %lu..%lu] of rank %u holds %s%s%s", x->v->p->buffers[buffer].name,
                (unsigned long)p->row, (unsigned long)(p->row + p->rows - 1), (unsigned long)p->col,
                (unsigned long)(p->col + p->cols - 1), rank, holds, w.found ? "\n    written by  " : "", task);
}

static void check_output(struct tracing *x, uint32_t rank, const struct io_slice *io)
{
    const char *name = x->v->p->buffers[io->buffer].name;
    const struct canvas *c = canvas_of(x, rank, io->buffer);
    uint64_t covered = 0;

    for (uint64_t band = 0; band < c->band_count; band++) {
        for (uint32_t i = 0; i < c->bands[band].count; i++) {
            const struct patch *p = &c->bands[band].patches[i];
            uint64_t whole = 0;
            bool right;

            if (p->row / BAND_ROWS != band || !in_slice(io, p))
                continue; /* seen in its first band; or of another slice */
            right = whole_sum(x, io, p, &whole) && p->symbol.tensor == io->tensor && p->symbol.sum == whole &&
                    p->symbol.row == io->tensor_row - io->row && p->symbol.col == io->tensor_col;
            covered += p->rows * p->cols;
            if (right)
                continue;
            fail_patch(x, rank, io->buffer, p,
                       p->symbol.tensor == io->tensor && p->symbol.sum != whole
                           ? "a sum with contributions missing or counted twice"
                           : "elements of another place");
            return;
        }
    }
    if (covered != io->rows * io->cols)
        verify_fail(x->v, "coverage", "%s of rank %u: %lu of %lu output elements are written", name, rank,
                    (unsigned long)covered, (unsigned long)(io->rows * io->cols));
}

static void check_all_outputs(struct tracing *x)
{
    for (uint32_t rank = 0; rank < x->v->ranks && !x->v->report->violations; rank++) {
        struct io_slice io[PROGRAM_IO_MAX];
        uint32_t count = program_io(x->v->p, rank, io);

        for (uint32_t i = 0; i < count; i++)
            if (io[i].role == IO_OUTPUT)
                check_output(x, rank, &io[i]);
    }
}

static bool prepare(struct tracing *x)
{
    const struct program *p = x->v->p;
    uint64_t ranks = x->v->ranks;

    x->canvases = calloc(ranks * p->buffer_count + 1, sizeof *x->canvases);
    x->counters = calloc(ranks * p->flag_count + 1, sizeof *x->counters);
    x->next = calloc(ranks * p->queue_count + 1, sizeof *x->next);
    if (!x->canvases || !x->counters || !x->next)
        return false;
    for (uint64_t i = 0; i < ranks * p->buffer_count; i++) {
        struct canvas *c = &x->canvases[i];

        c->band_count = ceil_div(p->buffers[i % p->buffer_count].rows, BAND_ROWS);
        c->bands = calloc(c->band_count + 1, sizeof *c->bands);
        if (!c->bands)
            return false;
    }
    return true;
}

static void clean_up(struct tracing *x)
{
    for (uint64_t i = 0; x->canvases && i < (uint64_t)x->v->ranks * x->v->p->buffer_count; i++) {
        for (uint64_t b = 0; x->canvases[i].bands && b < x->canvases[i].band_count; b++)
            free(x->canvases[i].bands[b].patches);
        free(x->canvases[i].bands);
    }
    free(x->canvases);
    free(x->counters);
    free(x->next);
}

enum status verify_coverage(struct verifier *v, const struct problem *global)
{
    struct tracing x = {.v = v, .global = global};

    if (v->dynamic)
        return ST_OK; /* what stands where is in control buffers: checks with real data look at that */
    if (!global)
        return ST_OK; /* nothing to compare with; writing twice is a race, which is excluded */
    x.out_of_memory = !prepare(&x);
    if (!x.out_of_memory) {
        for (uint32_t rank = 0; rank < v->ranks; rank++)
            paint_inputs(&x, rank);
        trace_epoch(&x);
        if (!v->report->violations)
            check_all_outputs(&x);
    }
    clean_up(&x);
    return x.out_of_memory ? ST_MEMORY : ST_OK;
}
