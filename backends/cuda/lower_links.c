/* Links: a task's waits, targets, addends and signals, with NODE written out rank by rank. */
#include <inttypes.h>

#include "backends/cuda/lower_task.h"

static enum status add_link(struct lowered *out, union gpu_link link)
{
    ADD(out, links, union gpu_link, &link);
    return ST_OK;
}

static enum status count_up(struct lowering *l, uint8_t *counter, const char *what)
{
    if (*counter == UINT8_MAX)
        return lower_refuse(l, "more than %d %s", UINT8_MAX, what);
    (*counter)++;
    return ST_OK;
}

enum status lower_wait(struct lowering *l, const struct wait *w, struct gpu_wait *out)
{
    if (w->value != FLAG_TOTAL && w->value >= UINT32_MAX)
        return lower_refuse(l, "a wait for %" PRIu64 " is more than 32 bits hold", w->value);
    *out = (struct gpu_wait){w->flag, w->count, w->lag, w->value == FLAG_TOTAL ? 0 : (uint32_t)w->value};
    return ST_OK;
}

static enum status add_wait(struct lowering *l, const struct wait *w, uint8_t *counter)
{
    union gpu_link link;

    if (w->count == 0)
        return ST_OK;
    TRY(count_up(l, counter, "waits"));
    TRY(lower_wait(l, w, &link.wait));
    return add_link(l->out, link);
}

/* A task that cannot wait in the middle waits for everything at its entry: that is never too early.
 * What is selected may turn out to be a kind that cannot. */
static bool waits_late(const struct lowering *l)
{
    return l->word.kind == GPU_GEMM && l->task->select.mode == SELECT_ALL;
}

static bool waits_by_step(const struct lowering *l)
{
    return l->word.kind == GPU_GEMM || l->word.kind == GPU_GEMM_ROWS || l->word.kind == GPU_GEMM_DIRECT ||
           l->word.kind == GPU_ATTENTION || l->word.kind == GPU_ATTENTION_DIRECT;
}

enum status lower_waits(struct lowering *l)
{
    const struct task *t = l->task;
    bool late = waits_late(l);

    for (uint32_t i = 0; i < t->wait_count; i++)
        if (t->waits[i].phase == WAIT_ENTRY || !late)
            TRY(add_wait(l, &t->waits[i], &l->word.entry_waits));
    if (op_walks(t->op) && !waits_by_step(l))
        for (uint32_t i = 0; i < program_step_count(t); i++) {
            struct segment s;
            struct operand a, b;

            program_step(l->out->program, l->rank, t, i, &s, &a, &b);
            TRY(add_wait(l, &s.wait, &l->word.entry_waits));
        }
    for (uint32_t i = 0; late && i < t->wait_count; i++)
        if (t->waits[i].phase == WAIT_LATE)
            TRY(add_wait(l, &t->waits[i], &l->word.late_waits));
    return ST_OK;
}

static enum status add_target(struct lowering *l, const struct operand *o, uint32_t rank)
{
    union gpu_link link;

    if (l->task->op == OP_COPY && rank == l->task->a.rank && o->buffer == l->task->a.buffer &&
        o->offset == l->task->a.offset)
        return ST_OK; /* bytes onto themselves */
    TRY(count_up(l, &l->word.targets, "targets"));
    TRY(lower_place(l, o, rank, 0, &link.matrix));
    return add_link(l->out, link);
}

enum status lower_targets(struct lowering *l)
{
    const struct task *t = l->task;

    for (uint32_t i = 0; i < t->out_count; i++) {
        uint32_t first, count = program_target_ranks(l->out->program, l->rank, t->out[i].rank, &first);

        for (uint32_t k = 0; k < count; k++)
            TRY(add_target(l, &t->out[i], first + k));
    }
    return ST_OK;
}

enum status lower_addend(struct lowering *l, const struct operand *o, uint32_t more)
{
    union gpu_link link;

    TRY(count_up(l, &l->word.addends, "addends"));
    TRY(lower_place(l, o, o->rank, 0, &link.matrix));
    link.matrix.more = more;
    return add_link(l->out, link);
}

enum status lower_addends(struct lowering *l)
{
    const struct task *t = l->task;

    if (t->op == OP_ATTENTION)
        return lower_attention_links(l);
    for (uint32_t i = 0; i < t->addend_count; i++) {
        struct operand o = program_addend(l->out->program, l->rank, t, i);

        TRY(lower_addend(l, &o, 0));
    }
    return ST_OK;
}

/* Signals to one flag are of one scope, the widest that any of them needs: additions of different
 * scopes are not promised to be atomic to each other. */
static enum status add_signal(struct lowering *l, const struct signal *s, uint32_t rank)
{
    struct lowered *out = l->out;
    uint64_t at = (uint64_t)rank * out->program->flag_count + s->flag;
    union gpu_link link = {.signal = {
                               .address = out->ranks[rank].flags + s->flag * sizeof(struct gpu_flag),
                               .add = (uint32_t)s->add,
                               .system = out->far_raised && out->far_raised[at],
                           }};

    if (out->put_raised && out->put_raised[at])
        return lower_refuse(l, "raises flag %" PRIu32 " of rank %" PRIu32 ", which puts raise", s->flag, rank);
    if (s->add > UINT32_MAX)
        return lower_refuse(l, "a signal of %" PRIu64 " is more than 32 bits hold", s->add);
    TRY(count_up(l, &l->word.signals, "signals"));
    return add_link(out, link);
}

enum status lower_signals(struct lowering *l)
{
    const struct task *t = l->task;

    for (uint32_t i = 0; i < t->signal_count; i++) {
        uint32_t first, count = program_target_ranks(l->out->program, l->rank, t->signals[i].rank, &first);

        for (uint32_t k = 0; k < count; k++)
            TRY(add_signal(l, &t->signals[i], first + k));
    }
    return ST_OK;
}
