#include "core/verify/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/program_print.h"
#include "core/route.h"
#include "core/verify/verify_state.h"

/* ---- what the other files lean on ---- */

struct task_place verify_place(const struct verifier *v, uint64_t number)
{
    uint64_t low = 0, high = (uint64_t)v->ranks * v->p->queue_count; /* first[low] <= number */

    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;

        if (v->first_task[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return (struct task_place){(uint32_t)(low / v->p->queue_count), (uint32_t)(low % v->p->queue_count),
                               number - v->first_task[low]};
}

void verify_task(const struct verifier *v, struct task_place at, struct task *t)
{
    program_task(v->p, at.rank, at.queue, at.index, t);
}

void verify_each_task(const struct verifier *v, verify_task_fn *fn, void *arg)
{
    for (uint32_t rank = 0; rank < v->ranks; rank++) {
        for (uint32_t queue = 0; queue < v->p->queue_count; queue++) {
            uint64_t length = program_queue_length(v->p, rank, queue);

            for (uint64_t i = 0; i < length; i++) {
                struct task_place at = {rank, queue, i};
                struct task t;

                verify_task(v, at, &t);
                fn(arg, at, &t);
            }
        }
    }
}

void verify_fail(struct verifier *v, const char *kind, const char *format, ...)
{
    struct verify_report *r = v->report;
    size_t used = strlen(r->text);
    va_list args;
    int n;

    if (r->violations++ >= VERIFY_VIOLATIONS_MAX)
        return;
    n = snprintf(r->text + used, sizeof r->text - used, "%s: ", kind);
    used += (size_t)n < sizeof r->text - used ? (size_t)n : 0;
    va_start(args, format);
    vsnprintf(r->text + used, sizeof r->text - used, format, args);
    va_end(args);
    used = strlen(r->text);
    snprintf(r->text + used, sizeof r->text - used, "\n");
}

/* The crew that reaches it first; a queue that nobody drains is refused before anything is described. */
static const char *home_crew(const struct program *p, uint32_t queue)
{
    const char *name = "?";
    uint32_t best = UINT32_MAX;

    for (uint32_t c = 0; c < p->crew_count; c++)
        for (uint32_t i = 0; i < p->crews[c].queue_count && i < best; i++)
            if (p->crews[c].queues[i] == queue) {
                best = i;
                name = p->crews[c].name;
            }
    return name;
}

void verify_describe(const struct verifier *v, struct task_place at, char out[VERIFY_TASK_TEXT_BYTES])
{
    struct task t;
    int n = snprintf(out, VERIFY_TASK_TEXT_BYTES, "rank %u, crew %s, queue %s: ", at.rank, home_crew(v->p, at.queue),
                     v->p->queues[at.queue].name);

    verify_task(v, at, &t);
    program_print_task(v->p, at.rank, at.queue, at.index, &t, out + n, VERIFY_TASK_TEXT_BYTES - (size_t)n);
}

bool verify_each_wait(const struct verifier *v, uint32_t rank, const struct task *t, uint32_t until, verify_wait_fn *fn,
                      void *arg)
{
    for (uint32_t i = 0; i < t->wait_count; i++) {
        if (t->waits[i].phase == WAIT_LATE && until != VERIFY_RESULT)
            continue;
        if (!fn(arg, &t->waits[i]))
            return false;
    }
    if (until == VERIFY_RESULT && t->indexed.count > 0) {
        struct wait all = {.flag = t->indexed.first, .count = t->indexed.count, .value = FLAG_TOTAL};

        if (!fn(arg, &all))
            return false;
    } else if (t->indexed.count > 0 && until >= VERIFY_INDEXED) {
        struct wait one = {.flag = t->indexed.first + (until - VERIFY_INDEXED), .count = 1, .value = FLAG_TOTAL};

        if (!fn(arg, &one))
            return false;
    }
    if (t->segment_table == NO_TABLE)
        return true;
    for (uint32_t s = 0; s < t->segment_count && VERIFY_STEP(s) <= until; s++) {
        struct segment segment;
        struct operand a, b;

        program_step(v->p, rank, t, s, &segment, &a, &b);
        if (segment.wait.count && !fn(arg, &segment.wait))
            return false;
    }
    return true;
}

static void emit_access(const struct verifier *v, const struct operand *o, uint64_t rows, uint64_t cols,
                        uint32_t window, uint32_t until, bool write, verify_access_fn *fn, void *arg)
{
    const struct buffer *b = &v->p->buffers[o->buffer];
    struct access a = {.row = o->offset / b->cols,
                       .rows = rows,
                       .col = o->offset % b->cols,
                       .cols = cols,
                       .window = window,
                       .buffer = o->buffer,
                       .until = until,
                       .write = write};

    if (rows && cols)
        fn(arg, &a);
}

/* An operand that a work list moves: its rows are the entry's. */
static void emit_selected(const struct verifier *v, const struct task *t, const struct operand *o, uint64_t cols,
                          uint32_t window, uint32_t until, bool write, verify_access_fn *fn, void *arg)
{
    struct access a = {.row = t->select.entry * VERIFY_ENTRY_ROWS + t->select.skip,
                       .rows = t->m,
                       .col = o->offset % v->p->buffers[o->buffer].cols,
                       .cols = cols,
                       .window = window,
                       .buffer = o->buffer,
                       .until = until,
                       .write = write,
                       .list = 1 + t->select.buffer};

    if (t->m && cols)
        fn(arg, &a);
}

static void emit_whole(const struct verifier *v, uint32_t buffer, uint32_t window, bool write, verify_access_fn *fn,
                       void *arg)
{
    const struct buffer *b = &v->p->buffers[buffer];
    struct operand o = {.rank = window, .buffer = buffer, .ld = b->cols};

    emit_access(v, &o, b->rows, b->cols, window, VERIFY_ENTRY, write, fn, arg);
}

/* Rows that an index list names, which may be any: of one rank, or of the stacked copies of the node.  What an
 * indexed wait guards is read behind the guard of just those rows. */
static void each_indexed(const struct verifier *v, uint32_t rank, const struct task *t, verify_access_fn *fn, void *arg)
{
    uint64_t stack_rows = t->a.rank == RANK_NODE ? v->p->buffers[t->a.buffer].rows : t->index_limit;
    uint64_t step = t->indexed.count ? t->indexed.rows_per_flag : stack_rows;

    emit_whole(v, t->index.buffer, rank, false, fn, arg);
    if (t->op == OP_COMBINE_ROWS && t->combine.weighted)
        emit_access(v, &t->combine.weight, t->m, t->combine.terms, rank, VERIFY_ENTRY, false, fn, arg);
    for (uint64_t row = 0, rows; row < t->index_limit; row += rows) {
        uint32_t first, gpu = (uint32_t)(row / stack_rows);
        struct operand o = t->a;

        program_target_ranks(v->p, rank, t->a.rank, &first);
        rows = min_u64(min_u64(step - row % step, stack_rows - row % stack_rows), t->index_limit - row);
        o.offset += row % stack_rows * t->a.ld;
        emit_access(v, &o, rows, program_index_cols(t), first + gpu,
                    t->indexed.count ? VERIFY_INDEXED + (uint32_t)(row / step) : VERIFY_ENTRY, false, fn, arg);
    }
}

static void each_routed(const struct verifier *v, uint32_t rank, const struct route *r, verify_access_fn *fn, void *arg)
{
    uint64_t rows;
    struct operand table = route_reads(r, rank, &rows);

    emit_access(v, &table, rows, r->top_k, rank, VERIFY_ENTRY, false, fn, arg);
    emit_whole(v, r->index, rank, true, fn, arg);
    emit_whole(v, r->kind == ROUTE_SEND ? r->counts : r->list, rank, true, fn, arg);
    if (r->back != NO_BUFFER)
        emit_whole(v, r->back, rank, true, fn, arg);
    if (r->back != NO_BUFFER && r->kind == ROUTE_RECEIVE)
        emit_whole(v, r->counts, rank, true, fn, arg);
    if (r->kind == ROUTE_RECEIVE && r->pulls != NO_BUFFER) {
        emit_whole(v, r->pulls, rank, true, fn, arg);
        emit_whole(v, r->pull_count, rank, true, fn, arg);
    }
}

/* A GEMM's operands where a work list selects them; its b may be any group's. */
static void each_selected(const struct verifier *v, uint32_t rank, const struct task *t, verify_access_fn *fn,
                          void *arg)
{
    if (t->select.mode == SELECT_ENTRY && !t->by_index)
        emit_selected(v, t, &t->a, t->k, t->a.rank, VERIFY_ENTRY, false, fn, arg);
    else if (!t->by_index)
        emit_access(v, &t->a, t->m, t->k, t->a.rank, VERIFY_ENTRY, false, fn, arg);
    emit_whole(v, t->b.buffer, rank, false, fn, arg);
}

static void each_step(const struct verifier *v, uint32_t rank, const struct task *t, verify_access_fn *fn, void *arg)
{
    for (uint32_t s = 0; s < program_step_count(t); s++) {
        uint32_t until = t->segment_table == NO_TABLE ? VERIFY_ENTRY : VERIFY_STEP(s);
        struct segment segment;
        struct operand a, b;
        struct extent ea, eb;

        program_step(v->p, rank, t, s, &segment, &a, &b);
        ea = step_extent_a(t, &segment);
        eb = step_extent_b(t, &segment);
        if (!t->by_index)
            emit_access(v, &a, ea.rows, ea.cols, a.rank, until, false, fn, arg);
        emit_access(v, &b, eb.rows, eb.cols, b.rank, until, false, fn, arg);
    }
}

static void each_addend(const struct verifier *v, uint32_t rank, const struct task *t, verify_access_fn *fn, void *arg)
{
    uint32_t until = op_walks(t->op) ? VERIFY_RESULT : VERIFY_ENTRY;

    for (uint32_t i = 0; i < t->addend_count; i++) {
        struct operand o = program_addend(v->p, rank, t, i);

        emit_access(v, &o, t->m, t->n, o.rank, until, false, fn, arg);
    }
    if (t->op == OP_ATTENTION && t->addend_count)
        emit_access(v, &t->attention.lse, t->m, 1, t->attention.lse.rank, VERIFY_RESULT, false, fn, arg);
}

static void each_read(const struct verifier *v, uint32_t rank, const struct task *t, verify_access_fn *fn, void *arg)
{
    bool listed = t->select.mode == SELECT_ENTRY || t->select.mode == SELECT_GROUP;

    if (t->select.mode != SELECT_ALL)
        emit_whole(v, t->select.buffer, rank, false, fn, arg);
    if (task_indexes(t))
        each_indexed(v, rank, t, fn, arg);
    if (t->op == OP_ROUTE)
        each_routed(v, rank, t->route, fn, arg);
    if (t->op == OP_COPY || t->op == OP_PUT)
        emit_access(v, &t->a, t->m, t->n, t->a.rank, VERIFY_ENTRY, false, fn, arg);
    if (t->op == OP_ATTENTION)
        emit_access(v, &t->attention.q, t->m, t->n, t->attention.q.rank, VERIFY_ENTRY, false, fn, arg);
    if (t->op == OP_GEMM && listed)
        each_selected(v, rank, t, fn, arg);
    else if (op_walks(t->op))
        each_step(v, rank, t, fn, arg);
    each_addend(v, rank, t, fn, arg);
}

void verify_each_access(const struct verifier *v, uint32_t rank, const struct task *t, verify_access_fn *fn, void *arg)
{
    uint32_t until = op_walks(t->op) || task_indexes(t) ? VERIFY_RESULT : VERIFY_ENTRY;

    each_read(v, rank, t, fn, arg);
    if (t->op == OP_ATTENTION && t->attention.leaves)
        emit_access(v, &t->attention.lse, t->m, 1, t->attention.lse.rank, until, true, fn, arg);
    for (uint32_t i = 0; i < t->out_count; i++) {
        const struct operand *o = &t->out[i];
        uint32_t first, count = program_target_ranks(v->p, rank, o->rank, &first);

        for (uint32_t r = first; r < first + count; r++) {
            bool onto_itself =
                t->op == OP_COPY && t->a.rank == r && t->a.buffer == o->buffer && t->a.offset == o->offset;

            if (t->select.mode == SELECT_ENTRY)
                emit_selected(v, t, o, t->n, r, until, true, fn, arg);
            else if (!onto_itself)
                emit_access(v, o, t->m, t->n, r, until, true, fn, arg);
        }
    }
}

/* ---- the whole ---- */

static void verifier_fini(struct verifier *v)
{
    free(v->first_task);
    free(v->last_blocking);
    free(v->totals);
    free(v->sums);
    free(v->signaller_first);
    free(v->signallers);
    free(v->waited);
    free(v->put_raised);
    free(v->begin_clock);
    free(v->flag_clock);
}

static enum status run_steps(struct verifier *v, const struct problem *global, uint64_t sms)
{
    TRY(verify_collect(v, sms));
    if (v->report->violations)
        return ST_WRONG; /* later steps assume sound bounds and totals */
    TRY(verify_execute(v));
    if (v->report->violations)
        return ST_WRONG;
    TRY(verify_races(v));
    if (v->report->violations)
        return ST_WRONG; /* coverage follows the data, which has to be ordered */
    TRY(verify_coverage(v, global));
    return v->report->violations ? ST_WRONG : ST_OK;
}

enum status verify_program(const struct program *p, const struct problem *global, uint64_t sms, struct verify_report *r)
{
    struct verifier v = {.p = p, .report = r, .ranks = world_ranks(p->world)};
    enum status st;

    memset(r, 0, sizeof *r);
    st = run_steps(&v, global, sms);
    r->tasks = v.task_count;
    r->epochs = v.epochs;
    verifier_fini(&v);
    return st;
}
