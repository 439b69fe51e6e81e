#include "core/program_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/route.h"
#include "core/text.h"

#define STEP_WAITS_SHOWN 4

static void add_rank(struct text *x, uint32_t self, uint32_t rank)
{
    if (rank == RANK_NODE)
        text_add(x, "node ");
    else if (rank == RANK_EACH)
        text_add(x, "each ");
    else if (rank != self)
        text_add(x, "rank %" PRIu32 " ", rank);
}

static void add_range(struct text *x, uint64_t first, uint64_t count)
{
    if (count == 0)
        text_add(x, "none");
    else if (count == 1)
        text_add(x, "%" PRIu64, first);
    else
        text_add(x, "%" PRIu64 "..%" PRIu64, first, first + count - 1);
}

/* Rows and columns where the operand is a rectangle of its buffer, else its place in memory. */
static void add_operand(struct text *x, const struct program *p, uint32_t self, const struct operand *o, uint64_t rows,
                        uint64_t cols)
{
    const struct buffer *b = &p->buffers[o->buffer];
    uint64_t row, col;

    add_rank(x, self, o->rank);
    text_add(x, "%s[", b->name);
    row = b->cols ? o->offset / b->cols : 0;
    col = b->cols ? o->offset % b->cols : 0;
    if (b->cols && (o->ld == b->cols || rows <= 1) && col + cols <= b->cols) {
        add_range(x, row, rows);
        text_add(x, ", ");
        add_range(x, col, cols);
    } else if (o->ld == cols || rows <= 1) {
        text_add(x, "@%" PRIu64 ", %" PRIu64 " x %" PRIu64, o->offset, rows, cols);
    } else {
        text_add(x, "@%" PRIu64 ", %" PRIu64 " x %" PRIu64 " ld %" PRIu64, o->offset, rows, cols, o->ld);
    }
    text_add(x, "]");
}

static void add_flags(struct text *x, const struct program *p, uint32_t flag, uint32_t count)
{
    const struct flag_group *g = program_flag_group(p, flag);

    if (!g) {
        text_add(x, "flag[");
        add_range(x, flag, count);
    } else {
        text_add(x, "%s[", g->name);
        add_range(x, flag - g->first, count);
    }
    text_add(x, "]");
}

static void add_wait(struct text *x, const struct program *p, const struct wait *w)
{
    add_flags(x, p, w->flag, w->count);
    if (w->value == FLAG_TOTAL)
        text_add(x, " >= total");
    else
        text_add(x, " >= %" PRIu64, w->value);
    if (w->lag)
        text_add(x, ", lag %" PRIu32, w->lag);
    if (w->phase == WAIT_LATE)
        text_add(x, ", late");
}

static void add_results(struct text *x, const struct program *p, uint32_t rank, const struct task *t)
{
    for (uint32_t i = 0; i < t->out_count; i++) {
        text_add(x, "%s", i ? ", " : "  ");
        add_operand(x, p, rank, &t->out[i], t->m, t->n);
    }
    if (t->out_count)
        text_add(x, " =");
}

static void add_addends(struct text *x, const struct program *p, uint32_t rank, const struct task *t)
{
    if (t->addend_count == 0)
        return;
    text_add(x, t->op == OP_GEMM ? " + %" PRIu32 " of " : " sum of %" PRIu32 " x ", t->addend_count);
    add_operand(x, p, rank, &t->addend, t->m, t->n);
    if (t->addend_count > 1 && t->addend.rank != RANK_NODE)
        text_add(x, " every %" PRIu64, t->addend_stride);
}

/* Names the waits between a GEMM's steps; the first few speak for the rest. */
static void add_steps(struct text *x, const struct program *p, uint32_t rank, const struct task *t)
{
    uint32_t steps = program_step_count(t), shown = 0, waits = 0;

    if (t->segment_table == NO_TABLE)
        return;
    text_add(x, " in %" PRIu32 " steps", steps);
    for (uint32_t s = 0; s < steps; s++) {
        struct segment g;
        struct operand a, b;

        program_step(p, rank, t, s, &g, &a, &b);
        if (g.wait.count == 0 || ++waits > STEP_WAITS_SHOWN)
            continue;
        text_add(x, "%s%" PRIu32 ": ", shown++ ? "; " : " (waits before ", s);
        add_wait(x, p, &g.wait);
    }
    if (waits > STEP_WAITS_SHOWN)
        text_add(x, "; and %" PRIu32 " more", waits - STEP_WAITS_SHOWN);
    if (waits)
        text_add(x, ")");
}

/* "held[0..24, 0..63] by send_index[0..7, 0]": any of these rows, as the list says. */
static void add_rows_by_index(struct text *x, const struct program *p, uint32_t rank, const struct task *t)
{
    add_operand(x, p, rank, &t->a, t->a.rank == RANK_NODE ? p->buffers[t->a.buffer].rows : t->index_limit,
                program_index_cols(t));
    text_add(x, " by ");
    add_operand(x, p, rank, &t->index, t->m, program_index_terms(t));
}

static void add_indexed_wait(struct text *x, const struct program *p, const struct task *t)
{
    if (!task_indexes(t) || t->indexed.count == 0)
        return;
    text_add(x, "  (each row waits for its flag of ");
    add_flags(x, p, t->indexed.first, t->indexed.count);
    text_add(x, ", %" PRIu64 " rows a flag)", t->indexed.rows_per_flag);
}

static void add_gather(struct text *x, const struct program *p, uint32_t rank, const struct task *t)
{
    text_add(x, " ");
    add_rows_by_index(x, p, rank, t);
    if (t->op == OP_COMBINE_ROWS && t->combine.weighted) {
        text_add(x, " weighted by ");
        add_operand(x, p, rank, &t->combine.weight, t->m, t->combine.terms);
    }
}

static void add_gemm(struct text *x, const struct program *p, uint32_t rank, const struct task *t)
{
    struct operand a = t->a, b = t->b;
    uint64_t k = t->k;

    if (t->segment_table != NO_TABLE && program_step_count(t) > 0) {
        struct segment g;

        program_step(p, rank, t, 0, &g, &a, &b); /* the first step stands for the walk */
        k = g.k;
    }
    text_add(x, " ");
    if (t->by_index)
        add_rows_by_index(x, p, rank, t);
    else
        add_operand(x, p, rank, &a, t->m, k);
    text_add(x, " x ");
    add_operand(x, p, rank, &b, step_extent_b(t, &(struct segment){.k = k}).rows, k);
    if (t->epilogue == EPILOGUE_SWIGLU)
        text_add(x, " gate and up");
    add_steps(x, p, rank, t);
}

/* "Q[0..127, 0..127] at 512 x KV[...], KV[...] causal", with where the task takes up and leaves its state. */
static void add_attention(struct text *x, const struct program *p, uint32_t rank, const struct task *t)
{
    const struct attention *at = &t->attention;
    struct operand keys = t->a, values = t->b;
    struct segment g = {.k = t->k};

    if (program_step_count(t) > 0)
        program_step(p, rank, t, 0, &g, &keys, &values); /* the first step stands for the walk */
    text_add(x, " ");
    add_operand(x, p, rank, &at->q, t->m, t->n);
    text_add(x, " at %" PRIu64 "%s x ", at->position, at->causal ? " causal" : "");
    add_operand(x, p, rank, &keys, g.k, t->n);
    text_add(x, ", ");
    add_operand(x, p, rank, &values, g.k, t->n);
    add_steps(x, p, rank, t);
    if (t->addend_count) {
        text_add(x, " takes up ");
        add_operand(x, p, rank, &t->addend, t->m, t->n);
    }
    if (t->addend_count || at->leaves) {
        text_add(x, "%s", at->leaves ? " leaves " : " and ");
        add_operand(x, p, rank, &at->lse, t->m, 1);
    }
}

static void add_route(struct text *x, const struct program *p, uint32_t rank, const struct route *r)
{
    uint64_t rows;
    struct operand table = route_reads(r, rank, &rows);

    text_add(x, "  %s, %s = ", p->buffers[r->index].name, p->buffers[r->kind == ROUTE_SEND ? r->counts : r->list].name);
    add_operand(x, p, rank, &table, rows, r->top_k);
    text_add(x, r->kind == ROUTE_SEND ? ", what to send" : ", what comes");
    if (r->back != NO_BUFFER)
        text_add(x, ", and back by %s", p->buffers[r->back].name);
    if (r->kind == ROUTE_RECEIVE && r->pulls != NO_BUFFER)
        text_add(x, ", through %s", p->buffers[r->pulls].name);
}

/* "as many rows as counts[1] from its row 8 on", "moved to entry list[3]" */
static void add_selection(struct text *x, const struct program *p, const struct selection *s)
{
    static const char *const words[] = {
        [SELECT_COUNT] = "as many rows as",
        [SELECT_ENTRY] = "moved to entry",
        [SELECT_GROUP] = "for entry",
    };

    if (s->mode == SELECT_ALL)
        return;
    text_add(x, "  %s %s[%" PRIu64 "]", words[s->mode], p->buffers[s->buffer].name, s->entry);
    if (s->skip > 0)
        text_add(x, " from its row %" PRIu64 " on", s->skip);
}

static void add_work(struct text *x, const struct program *p, uint32_t rank, const struct task *t)
{
    if (t->op == OP_NOP)
        return;
    if (t->op == OP_PUT && (t->m == 0 || t->n == 0)) {
        text_add(x, "  (signal only)");
        return;
    }
    if (t->op == OP_ROUTE) {
        add_route(x, p, rank, t->route);
        return;
    }
    add_results(x, p, rank, t);
    if (t->op == OP_ATTENTION) {
        add_attention(x, p, rank, t);
        return;
    }
    if (t->op == OP_GEMM) {
        add_gemm(x, p, rank, t);
    } else if (task_indexes(t)) {
        add_gather(x, p, rank, t);
    } else if (t->op != OP_REDUCE) {
        text_add(x, " ");
        add_operand(x, p, rank, &t->a, t->m, t->n);
    }
    add_addends(x, p, rank, t);
    add_indexed_wait(x, p, t);
    add_selection(x, p, &t->select);
}

void program_print_flag(const struct program *p, uint32_t flag, char *out, size_t out_bytes)
{
    struct text x = text_begin(out, out_bytes);

    add_flags(&x, p, flag, 1);
}

void program_print_wait(const struct program *p, const struct wait *w, char *out, size_t out_bytes)
{
    struct text x = text_begin(out, out_bytes);

    add_wait(&x, p, w);
}

void program_print_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, const struct task *t,
                        char *out, size_t out_bytes)
{
    struct text x = text_begin(out, out_bytes);

    (void)queue; /* the heading above a queue's tasks names it; numbers are per queue */
    text_add(&x, "%s #%" PRIu64, op_name(t->op), index);
    add_work(&x, p, rank, t);
    for (uint32_t i = 0; i < t->wait_count; i++) {
        if (t->waits[i].count == 0)
            continue;
        text_add(&x, "  wait ");
        add_wait(&x, p, &t->waits[i]);
    }
    for (uint32_t i = 0; i < t->signal_count; i++) {
        text_add(&x, "  signal ");
        add_rank(&x, rank, t->signals[i].rank);
        add_flags(&x, p, t->signals[i].flag, 1);
        text_add(&x, " += %" PRIu64, t->signals[i].add);
    }
}
