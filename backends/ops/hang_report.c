#include "backends/ops/hang_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/program_print.h"

#define WAITS_SHOWN 6
#define MISSING_SHOWN 3
#define TASKS_SEARCHED 200000 /* per wait: a large program must not turn the report into a wait */

struct text {
    char *out;
    size_t size, used;
};

static void say(struct text *x, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct text *x, const char *format, ...)
{
    va_list args;
    int n;

    if (x->used >= x->size)
        return;
    va_start(args, format);
    n = vsnprintf(x->out + x->used, x->size - x->used, format, args);
    va_end(args);
    x->used += n > 0 ? (size_t)n : 0;
}

/* ---- who should have signalled ---- */

static bool signals(const struct program *p, uint32_t from, const struct task *t, uint32_t rank,
                    uint32_t flag)
{
    for (uint32_t i = 0; i < t->signal_count; i++) {
        uint32_t first, count = program_target_ranks(p, from, t->signals[i].rank, &first);

        if (t->signals[i].flag == flag && rank >= first && rank - first < count)
            return true;
    }
    return false;
}

static bool is_stuck(const struct hang *h, uint32_t rank, uint32_t queue, uint64_t index)
{
    for (uint64_t i = 0; i < h->stuck_count; i++)
        if (h->stuck[i].rank == rank && h->stuck[i].queue == queue && h->stuck[i].index == index)
            return true;
    return false;
}

/* NULL: done in that epoch. */
static const char *why_not_done(const struct hang *h, uint32_t rank, uint32_t queue, uint64_t index,
                                uint64_t epoch)
{
    const struct hang_rank *r = &h->ranks[rank];

    if (r->epoch != epoch)
        return r->epoch > epoch ? NULL : "its rank has not begun that epoch";
    if (index >= r->popped[queue])
        return "not started";
    return is_stuck(h, rank, queue, index) ? "waits itself" : NULL;
}

/* The epoch whose signals lift the flag to what is wanted: the waiter's, or one before it. */
static uint64_t signal_epoch(const struct program *p, const struct stuck *w)
{
    uint64_t total = program_flag_total(p, w->rank, w->flag);

    return total == 0 ? 0 : min_u64(ceil_div(w->wanted, total), w->epoch);
}

struct search {
    uint64_t left; /* tasks that may still be looked at */
    uint64_t found, shown;
};

static void search_queue(const struct hang *h, const struct stuck *w, uint32_t rank, uint32_t queue,
                         struct search *s, struct text *x)
{
    const struct program *p = h->program;
    uint64_t length = program_queue_length(p, rank, queue);
    struct task t;

    for (uint64_t i = 0; i < length && s->left > 0; i++, s->left--) {
        const char *why;

        program_task(p, rank, queue, i, &t);
        if (!signals(p, rank, &t, w->rank, w->flag))
            continue;
        s->found++;
        why = why_not_done(h, rank, queue, i, signal_epoch(p, w));
        if (!why || s->shown == MISSING_SHOWN)
            continue;
        s->shown++;
        say(x, "    missing: rank %" PRIu32 " queue %s %s #%" PRIu64 " (%s)\n", rank,
            p->queues[queue].name, op_name(t.op), i, why);
    }
}

static void say_missing(struct text *x, const struct hang *h, const struct stuck *w)
{
    struct search s = {.left = TASKS_SEARCHED};

    for (uint32_t rank = 0; rank < world_ranks(h->program->world); rank++)
        for (uint32_t q = 0; q < h->program->queue_count; q++)
            search_queue(h, w, rank, q, &s, x);
    if (s.left == 0)
        say(x, "    (only the first %d tasks were searched for signals)\n", TASKS_SEARCHED);
    else if (s.found == 0)
        say(x, "    no task signals this flag\n");
    else if (s.shown == 0)
        say(x, "    all %" PRIu64 " tasks that signal it in epoch %" PRIu64 " are done\n", s.found,
            signal_epoch(h->program, w));
}

/* ---- who waits ---- */

static void say_phase(struct text *x, const struct stuck *w)
{
    if (w->step != STUCK_NO_STEP)
        say(x, "step %" PRIu32 " wait", w->step);
    else
        say(x, "%s wait", w->phase == WAIT_LATE ? "late" : "entry");
}

static void say_wait(struct text *x, const struct hang *h, const struct stuck *w)
{
    const struct program *p = h->program;
    struct task t;
    char flag[64];

    program_task(p, w->rank, w->queue, w->index, &t);
    program_print_flag(p, w->flag, flag, sizeof flag);
    say(x, "  rank %" PRIu32 " crew %s queue %s %s #%" PRIu64 ", epoch %" PRIu64 ", ", w->rank,
        p->crews[w->crew].name, p->queues[w->queue].name, op_name(t.op), w->index, w->epoch);
    say_phase(x, w);
    say(x, ": %s is %" PRIu64 ", wanted %" PRIu64 "\n", flag, w->value, w->wanted);
    say_missing(x, h, w);
}

static bool is_shown(const struct stuck *const shown[], uint32_t count, const struct stuck *w)
{
    for (uint32_t i = 0; i < count; i++)
        if (shown[i]->rank == w->rank && shown[i]->flag == w->flag && shown[i]->wanted == w->wanted)
            return true;
    return false;
}

void hang_report_write(const struct hang *h, const char *headline, char *out, size_t out_bytes)
{
    struct text x = {.out = out, .size = out_bytes};
    const struct stuck *shown[WAITS_SHOWN];
    uint32_t count = 0;

    say(&x, "%s\n", headline);
    for (uint64_t i = 0; i < h->stuck_count && count < WAITS_SHOWN; i++) {
        if (is_shown(shown, count, &h->stuck[i]))
            continue;
        shown[count++] = &h->stuck[i];
        say_wait(&x, h, &h->stuck[i]);
    }
    if (h->stuck_count > count)
        say(&x, "  and %" PRIu64 " more workers that wait\n", h->stuck_count - count);
}
