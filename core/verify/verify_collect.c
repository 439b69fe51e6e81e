/* First step of the verifier: every task is generated once or twice; what it names must exist and be
 * reachable, and what it signals must add up to the declared totals.  Leaves the indexes that later steps
 * search. */
#include <stdlib.h>
#include <string.h>

#include "core/program_print.h"
#include "core/route.h"
#include "core/verify/verify_state.h"

static void fail_task(struct verifier *v, const char *kind, struct task_place at, const char *text)
{
    char task[VERIFY_TASK_TEXT_BYTES];

    verify_describe(v, at, task);
    verify_fail(v, kind, "%s\n    %s", text, task);
}

/* ---- crews and buffers ---- */

static void check_crews(struct verifier *v, uint64_t sms)
{
    const struct program *p = v->p;
    uint64_t workers = 0;

    for (uint32_t c = 0; c < p->crew_count; c++)
        workers += p->crews[c].workers;
    if (workers > sms)
        verify_fail(v, "budget", "crews have %lu workers, the GPU holds %lu", (unsigned long)workers,
                    (unsigned long)sms);
    for (uint32_t q = 0; q < p->queue_count; q++) {
        bool drained = false;

        for (uint32_t c = 0; c < p->crew_count; c++)
            for (uint32_t i = 0; i < p->crews[c].queue_count; i++)
                drained |= p->crews[c].queues[i] == q && p->crews[c].workers > 0;
        if (!drained)
            verify_fail(v, "deadlock", "no crew drains queue %s", p->queues[q].name);
    }
}

/* ---- operands ---- */

static bool operand_fits(const struct verifier *v, const struct operand *o, uint64_t rows, uint64_t cols)
{
    const struct buffer *b;
    uint64_t row, col;

    if (o->buffer >= v->p->buffer_count)
        return false;
    if (rows == 0 || cols == 0)
        return true;
    b = &v->p->buffers[o->buffer];
    row = o->offset / b->cols;
    col = o->offset % b->cols;
    /* rectangles of the buffer only: anything else could not be compared byte by byte */
    return (o->ld == b->cols || rows == 1) && row < b->rows && rows <= b->rows - row && cols <= b->cols - col;
}

static bool reachable(const struct verifier *v, struct task_place at, const struct operand *o)
{
    return o->rank < v->ranks && world_same_node(v->p->world, o->rank, at.rank);
}

static void check_source(struct verifier *v, struct task_place at, const struct operand *o, uint64_t rows,
                         uint64_t cols)
{
    if (rows == 0 || cols == 0)
        return; /* a bare put has no source */
    if (!operand_fits(v, o, rows, cols))
        fail_task(v, "bounds", at, "a source does not lie inside its buffer");
    else if (!reachable(v, at, o))
        fail_task(v, "bounds", at, "a source lies on another node");
}

static void check_attention(struct verifier *v, struct task_place at, const struct task *t)
{
    const struct attention *a = &t->attention;

    check_source(v, at, &a->q, t->m, t->n);
    if (t->addend_count || a->leaves)
        check_source(v, at, &a->lse, t->m, 1);
    if (t->addend_count > 1)
        fail_task(v, "bounds", at, "an attention takes up one result so far, not several");
}

/* Entries count rows from there. */
static bool starts_at_top(const struct verifier *v, const struct task *t)
{
    const struct buffer *b = v->p->buffers;
    bool top = t->index.offset == 0;

    if (t->op == OP_GEMM)
        top &= (t->by_index || t->a.offset < b[t->a.buffer].cols) && t->b.offset < t->select.b_step;
    for (uint32_t i = 0; i < t->out_count; i++)
        top &= t->out[i].offset < b[t->out[i].buffer].cols;
    return top;
}

/* What its entry says is bounded by the route, which asserts it; here: that the columns fit, that no two tasks'
 * rows of an entry can run over, and that control buffers are what they are used as. */
static void check_selection(struct verifier *v, struct task_place at, const struct task *t)
{
    const struct selection *s = &t->select;
    const struct buffer *b;

    if (s->mode == SELECT_ALL)
        return;
    v->dynamic = true;
    if (s->buffer >= v->p->buffer_count) {
        fail_task(v, "bounds", at, "a selection from a buffer that does not exist");
        return;
    }
    b = &v->p->buffers[s->buffer];
    if (!buffer_is_control(b) || s->entry >= b->rows || b->cols != (s->mode == SELECT_COUNT ? 1 : 3))
        fail_task(v, "bounds", at, "a selection that is no row of a control buffer");
    if (s->skip + t->m > VERIFY_ENTRY_ROWS)
        fail_task(v, "bounds", at, "a selection of too many rows");
    if (s->mode == SELECT_ENTRY && !starts_at_top(v, t))
        fail_task(v, "bounds", at, "an operand that a work list moves stands below its buffer's first row");
    if (s->mode != SELECT_COUNT && t->op != OP_GEMM && t->op != OP_GATHER_ROWS)
        fail_task(v, "bounds", at, "only gemm and gather_rows take their rows from a work list");
    if (s->mode == SELECT_GROUP && t->op == OP_GEMM && t->b.offset >= s->b_step)
        fail_task(v, "bounds", at, "the group's operand stands below its buffer's first group");
}

static void check_indexed(struct verifier *v, struct task_place at, const struct task *t)
{
    bool node = t->a.rank == RANK_NODE, listed = t->select.mode == SELECT_ENTRY;
    uint64_t stack = node ? v->p->world.gpus_per_node : 1;
    struct operand first = t->a;

    v->dynamic = true;
    if (node)
        first.rank = at.rank;
    check_source(v, at, &first, t->index_limit / stack, program_index_cols(t));
    check_source(v, at, &t->index, listed ? 1 : t->m, program_index_terms(t));
    if (t->op == OP_COMBINE_ROWS && t->combine.weighted) {
        check_source(v, at, &t->combine.weight, t->m, t->combine.terms);
        if (t->combine.weight.rank != at.rank)
            fail_task(v, "bounds", at, "weights of another rank");
    }
    if (t->index.buffer >= v->p->buffer_count || !buffer_is_control(&v->p->buffers[t->index.buffer]) ||
        t->index.rank != at.rank)
        fail_task(v, "bounds", at, "an index list that is no control buffer of the own rank");
    if (node && (t->a.offset != 0 || t->index_limit != stack * v->p->buffers[t->a.buffer].rows))
        fail_task(v, "bounds", at, "what is read by index from the node is its whole stacked buffers");
    if (t->op != OP_GEMM && t->out_count != 1)
        fail_task(v, "bounds", at, "what is gathered or combined has one target");
    if (t->indexed.count &&
        (t->indexed.rows_per_flag == 0 || (t->index_limit - 1) / t->indexed.rows_per_flag >= t->indexed.count))
        fail_task(v, "flags", at, "an indexed wait with fewer flags than rows need");
}

/* Of a main loop, only one that is a gemm's and walks no segments: those would move its operand. */
static void check_by_index(struct verifier *v, struct task_place at, const struct task *t)
{
    if (!t->by_index)
        return;
    if (t->op != OP_GEMM)
        fail_task(v, "bounds", at, "only a gemm finds the rows of its operand by index");
    else if (t->segment_table != NO_TABLE)
        fail_task(v, "bounds", at, "a segment table and rows by index do not go together");
    else if (t->a.buffer < v->p->buffer_count && v->p->buffers[t->a.buffer].dtype != DTYPE_BF16)
        fail_task(v, "bounds", at, "a gemm's rows by index are of bf16");
}

/* Whether there is room for what a route says of what goes back. */
static bool back_fits(const struct verifier *v, const struct route *r)
{
    const struct buffer *back = &v->p->buffers[r->back], *counts = &v->p->buffers[r->counts];
    uint64_t held = r->world.nodes * r->slot_rows;

    if (!buffer_is_control(back))
        return false;
    if (r->kind == ROUTE_SEND)
        return back->rows >= r->slot_rows && back->cols == r->world.nodes;
    return r->aligned && back->rows == held && back->cols == r->top_k && buffer_is_control(counts) &&
           counts->rows >= r->world.nodes;
}

static bool pulls_fit(const struct verifier *v, const struct route *r)
{
    const struct buffer *b = v->p->buffers;

    return r->pulls < v->p->buffer_count && r->pull_count < v->p->buffer_count && buffer_is_control(&b[r->pulls]) &&
           buffer_elements(&b[r->pulls]) >= route_pulls_max(r) && buffer_is_control(&b[r->pull_count]) &&
           buffer_elements(&b[r->pull_count]) >= 1;
}

static void check_route(struct verifier *v, struct task_place at, const struct task *t)
{
    const struct buffer *b = v->p->buffers;
    const struct route *r = t->route;
    bool send = r->kind == ROUTE_SEND;
    uint64_t held = r->world.nodes * r->slot_rows;

    if (!buffer_is_control(&b[r->table]) || b[r->table].rows != r->tokens || b[r->table].cols != r->top_k ||
        !buffer_is_control(&b[r->index]) || b[r->index].rows < (send ? held : route_rows_max(r)) ||
        (send ? !buffer_is_control(&b[r->counts]) || b[r->counts].rows < r->world.nodes
              : !buffer_is_control(&b[r->list]) ||
                    b[r->list].rows < route_entries_max(r->capacity, r->tile_rows, route_expert_count(r, at.rank))) ||
        (r->back != NO_BUFFER && !back_fits(v, r)) ||
        (!send && (r->pulls != NO_BUFFER || r->pull_count != NO_BUFFER) && !pulls_fit(v, r)))
        fail_task(v, "bounds", at, "a route whose control buffers have not its table's shape or no room");
}

static void check_steps(struct verifier *v, struct task_place at, const struct task *t)
{
    for (uint32_t s = 0; s < program_step_count(t); s++) {
        struct segment segment;
        struct operand a, b;
        struct extent ea, eb;

        program_step(v->p, at.rank, t, s, &segment, &a, &b);
        ea = step_extent_a(t, &segment);
        eb = step_extent_b(t, &segment);
        if (!t->by_index)
            check_source(v, at, &a, t->select.mode == SELECT_ENTRY ? 1 : ea.rows, ea.cols);
        check_source(v, at, &b, eb.rows, eb.cols);
    }
}

static void check_addends(struct verifier *v, struct task_place at, const struct task *t)
{
    if (t->addend_count > 0 && t->select.mode == SELECT_ENTRY)
        fail_task(v, "bounds", at, "a work list moves no addends");
    if (t->addend.rank == RANK_NODE && (t->op != OP_REDUCE || t->addend_count != v->p->world.gpus_per_node))
        fail_task(v, "bounds", at, "addends on every GPU of the node are a reduce's, one for each");
    for (uint32_t i = 0; i < t->addend_count; i++) {
        struct operand o = program_addend(v->p, at.rank, t, i);

        check_source(v, at, &o, t->m, t->n);
    }
}

static void check_sources(struct verifier *v, struct task_place at, const struct task *t)
{
    check_by_index(v, at, t);
    if (task_indexes(t))
        check_indexed(v, at, t);
    if (t->op == OP_ROUTE)
        check_route(v, at, t);
    if (t->epilogue != EPILOGUE_NONE && (t->op != OP_GEMM || t->addend_count > 0))
        fail_task(v, "bounds", at, "an epilogue is a gemm's, and one without addends");
    if (t->op == OP_COPY || t->op == OP_PUT)
        check_source(v, at, &t->a, t->m, t->n);
    if (t->op == OP_ATTENTION)
        check_attention(v, at, t);
    if (op_walks(t->op))
        check_steps(v, at, t);
    check_addends(v, at, t);
}

static void check_targets(struct verifier *v, struct task_place at, const struct task *t)
{
    for (uint32_t i = 0; i < t->out_count; i++) {
        const struct operand *o = &t->out[i];
        bool there = t->op == OP_PUT ? o->rank < v->ranks && !world_same_node(v->p->world, o->rank, at.rank)
                                     : o->rank == RANK_NODE || o->rank == RANK_EACH || reachable(v, at, o);

        if (!operand_fits(v, o, t->select.mode == SELECT_ENTRY ? 1 : t->m, t->n))
            fail_task(v, "bounds", at, "a target does not lie inside its buffer");
        else if (!there)
            fail_task(v, "bounds", at,
                      t->op == OP_PUT ? "a put whose target is not on another node"
                                      : "a store to another node: only puts cross");
    }
    if (t->op == OP_PUT && t->out_count != 1)
        fail_task(v, "bounds", at, "a put has one target");
    if (t->op == OP_PUT && t->m > 1 && (t->n != t->a.ld || t->n != t->out[0].ld))
        fail_task(v, "bounds", at, "a put of bytes that are not contiguous");
}

/* ---- waits and signals ---- */

struct wait_check {
    struct verifier *v;
    struct task_place at;
    bool blocking; /* a late or step wait was seen */
};

static bool check_wait(void *arg, const struct wait *w)
{
    struct wait_check *c = arg;
    struct verifier *v = c->v;

    if (w->flag >= v->p->flag_count || w->count > v->p->flag_count - w->flag) {
        fail_task(v, "flags", c->at, "a wait for a flag that does not exist");
        return true;
    }
    if (w->lag > v->lag_max)
        v->lag_max = w->lag;
    for (uint32_t i = 0; i < w->count; i++) {
        uint64_t f = verify_flag_index(v, c->at.rank, w->flag + i);

        if (w->lag == 0)
            v->waited[f] = 1;
        if (w->value != FLAG_TOTAL && w->value != v->totals[f]) {
            fail_task(v, "flags", c->at,
                      w->value > v->totals[f]
                          ? "a wait for more than the flag's total: it would never be met"
                          : "a wait for less than the flag's total: which signals have come is unknown");
            return true;
        }
    }
    return true;
}

static void check_waits(struct verifier *v, struct task_place at, const struct task *t)
{
    struct wait_check c = {.v = v, .at = at};
    bool late = t->segment_table != NO_TABLE || t->indexed.count > 0;

    for (uint32_t i = 0; i < t->wait_count; i++) {
        if (t->waits[i].phase == WAIT_LATE && !op_walks(t->op))
            fail_task(v, "flags", at, "late waits are for gemm and attention: others have no main loop");
        late |= t->waits[i].phase == WAIT_LATE;
    }
    verify_each_wait(v, at.rank, t, VERIFY_RESULT, check_wait, &c);
    if (late)
        v->last_blocking[(uint64_t)at.rank * v->p->queue_count + at.queue] = (int64_t)at.index;
}

static bool signal_allowed(const struct verifier *v, struct task_place at, const struct task *t, const struct signal *s)
{
    if (s->flag >= v->p->flag_count || s->add == 0)
        return false;
    if (t->op == OP_PUT)
        return s->rank == at.rank || (s->rank == t->out[0].rank && s->add == 1);
    return s->rank == RANK_NODE || (s->rank < v->ranks && world_same_node(v->p->world, s->rank, at.rank));
}

/* Counts signallers per flag into signaller_first[flag + 1]. */
static void check_signals(struct verifier *v, struct task_place at, const struct task *t)
{
    uint32_t arrivals = 0;

    for (uint32_t i = 0; i < t->signal_count; i++) {
        const struct signal *s = &t->signals[i];
        uint32_t first, count;

        if (!signal_allowed(v, at, t, s)) {
            fail_task(v, "flags", at,
                      t->op == OP_PUT ? "a put signals its target once, by 1, and its own rank"
                                      : "a signal to another node, by 0, or to no flag");
            continue;
        }
        count = program_target_ranks(v->p, at.rank, s->rank, &first);
        for (uint32_t r = first; r < first + count; r++) {
            uint64_t f = verify_flag_index(v, r, s->flag);
            bool arrival = t->op == OP_PUT && r != at.rank;

            v->signaller_first[f + 1]++;
            arrivals += arrival;
            if (arrival && v->put_raised[f] < 2)
                v->put_raised[f]++;
        }
    }
    if (t->op == OP_PUT && arrivals != 1)
        fail_task(v, "flags", at, "a put raises exactly one flag at its target");
}

static void check_task(void *arg, struct task_place at, const struct task *t)
{
    struct verifier *v = arg;

    check_selection(v, at, t);
    check_sources(v, at, t);
    check_targets(v, at, t);
    check_waits(v, at, t);
    check_signals(v, at, t);
}

/* ---- who accesses which buffer ---- */

struct access_note {
    struct verifier *v;
    uint32_t rank;
};

static void note_access(void *arg, const struct access *a)
{
    struct access_note *n = arg;
    uint32_t *list = &n->v->buffer_list[a->buffer], by = a->list ? a->list : VERIFY_PLAIN;

    if (*list != 0 && *list != by)
        verify_fail(n->v, "bounds", "%s is accessed by rows of a work list and in other ways, too",
                    n->v->p->buffers[a->buffer].name);
    *list = by;
    n->v->buffer_written[a->buffer] |= a->write;
    n->v->buffer_shared[a->buffer] |= a->window != n->rank;
}

/* ---- second pass: the signallers themselves, and the sums ---- */

static void index_signals(void *arg, struct task_place at, const struct task *t)
{
    struct verifier *v = arg;
    uint64_t number = v->first_task[(uint64_t)at.rank * v->p->queue_count + at.queue] + at.index;
    struct access_note note = {v, at.rank};

    verify_each_access(v, at.rank, t, note_access, &note);
    for (uint32_t i = 0; i < t->signal_count; i++) {
        uint32_t first, count = program_target_ranks(v->p, at.rank, t->signals[i].rank, &first);

        for (uint32_t r = first; r < first + count; r++) {
            uint64_t f = verify_flag_index(v, r, t->signals[i].flag);

            v->signallers[v->signaller_first[f]++] = (uint32_t)number; /* shifted back below */
            v->sums[f] += t->signals[i].add;
        }
    }
}

/* ---- a flag that does not get what it is declared to ---- */

struct waiter {
    const struct verifier *v;
    uint32_t rank, flag;
    bool waits, found;
    struct task_place at;
};

static bool names_flag(void *arg, const struct wait *w)
{
    struct waiter *x = arg;

    x->waits |= x->flag >= w->flag && x->flag - w->flag < w->count;
    return !x->waits;
}

static void look_for_waiter(void *arg, struct task_place at, const struct task *t)
{
    struct waiter *x = arg;

    if (x->found || at.rank != x->rank)
        return;
    verify_each_wait(x->v, at.rank, t, VERIFY_RESULT, names_flag, x);
    x->found = x->waits;
    x->at = at;
}

/* A task to look at: one that signals the flag, else one that waits for it. */
static void describe_user(const struct verifier *v, uint64_t f, char *out, size_t out_bytes)
{
    struct waiter x = {.v = v, .rank = (uint32_t)(f / v->p->flag_count), .flag = (uint32_t)(f % v->p->flag_count)};
    bool signalled = v->signaller_first[f + 1] > v->signaller_first[f];
    char task[VERIFY_TASK_TEXT_BYTES];

    if (signalled)
        x.at = verify_place(v, v->signallers[v->signaller_first[f]]);
    else
        verify_each_task(v, look_for_waiter, &x);
    snprintf(out, out_bytes, ", and no task waits for it");
    if (!signalled && !x.found)
        return;
    verify_describe(v, x.at, task);
    snprintf(out, out_bytes, "\n    %s by  %s", signalled ? "signalled" : "waited for", task);
}

static void check_sums(struct verifier *v, uint64_t flags)
{
    char name[64], user[VERIFY_TASK_TEXT_BYTES + 32];

    for (uint64_t f = 0; f < flags; f++) {
        uint32_t rank = (uint32_t)(f / v->p->flag_count), flag = (uint32_t)(f % v->p->flag_count);
        uint64_t signallers = v->signaller_first[f + 1] - v->signaller_first[f];
        bool wrong_sum = v->sums[f] != v->totals[f], shared_put = v->put_raised[f] && signallers > 1;

        if (!wrong_sum && !shared_put)
            continue;
        program_print_flag(v->p, flag, name, sizeof name);
        user[0] = '\0';
        if (v->report->violations < VERIFY_VIOLATIONS_MAX)
            describe_user(v, f, user, sizeof user);
        if (wrong_sum)
            verify_fail(v, "flags", "%s on rank %u is signalled %lu times an epoch, declared %lu%s", name, rank,
                        (unsigned long)v->sums[f], (unsigned long)v->totals[f], user);
        if (shared_put)
            verify_fail(v, "flags", "%s on rank %u is raised by a put and by %lu more%s", name, rank,
                        (unsigned long)signallers - 1, user);
    }
}

static enum status index_all(struct verifier *v, uint64_t flags)
{
    for (uint64_t f = 0; f < flags; f++)
        v->signaller_first[f + 1] += v->signaller_first[f];
    v->signallers = calloc(v->signaller_first[flags] + 1, sizeof *v->signallers);
    v->sums = calloc(flags + 1, sizeof *v->sums);
    if (!v->signallers || !v->sums)
        return ST_MEMORY;
    verify_each_task(v, index_signals, v);
    memmove(v->signaller_first + 1, v->signaller_first, flags * sizeof *v->signaller_first);
    v->signaller_first[0] = 0;
    check_sums(v, flags);
    return ST_OK;
}

static enum status number_tasks(struct verifier *v)
{
    uint64_t queues = (uint64_t)v->ranks * v->p->queue_count;

    v->first_task = calloc(queues + 1, sizeof *v->first_task);
    v->last_blocking = calloc(queues + 1, sizeof *v->last_blocking);
    if (!v->first_task || !v->last_blocking)
        return ST_MEMORY;
    for (uint64_t q = 0; q < queues; q++) {
        v->last_blocking[q] = -1;
        v->first_task[q + 1] = v->first_task[q] + program_queue_length(v->p, (uint32_t)(q / v->p->queue_count),
                                                                       (uint32_t)(q % v->p->queue_count));
    }
    v->task_count = v->first_task[queues];
    return v->task_count < UINT32_MAX ? ST_OK : ST_MEMORY;
}

enum status verify_collect(struct verifier *v, uint64_t sms)
{
    uint64_t flags = (uint64_t)v->ranks * v->p->flag_count;

    TRY(number_tasks(v));
    v->totals = calloc(flags + 1, sizeof *v->totals);
    v->signaller_first = calloc(flags + 2, sizeof *v->signaller_first);
    v->waited = calloc(flags + 1, 1);
    v->put_raised = calloc(flags + 1, 1);
    if (!v->totals || !v->signaller_first || !v->waited || !v->put_raised)
        return ST_MEMORY;
    for (uint64_t f = 0; f < flags; f++)
        v->totals[f] = program_flag_total(v->p, (uint32_t)(f / v->p->flag_count), (uint32_t)(f % v->p->flag_count));
    check_crews(v, sms);
    verify_each_task(v, check_task, v);
    if (v->report->violations)
        return ST_OK;
    TRY(index_all(v, flags));
    v->epochs = 1 + v->lag_max;
    for (uint32_t b = 0; b < v->p->buffer_count; b++)
        if (v->p->buffers[b].depth + 1 > v->epochs)
            v->epochs = v->p->buffers[b].depth + 1;
    if (v->epochs < 2)
        v->epochs = 2;
    return ST_OK;
}
