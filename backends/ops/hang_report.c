#include "backends/ops/hang_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/ops/hang_cause.h"
#include "core/program_print.h"
#include "core/text.h"

#define CHAIN_SHOWN 6
#define TASKS_SEARCHED 1000000 /* a large program must not turn the report into a wait */

/* ---- one wait ---- */

static void say_task(struct text *x, const struct program *p, uint32_t rank, uint32_t queue, uint64_t index)
{
    struct task t;

    program_task(p, rank, queue, index, &t);
    text_add(x, "rank %" PRIu32 " queue %s %s #%" PRIu64, rank, p->queues[queue].name, op_name(t.op), index);
}

static void say_wait(struct text *x, const struct program *p, const struct stuck *w)
{
    struct task t;
    char flag[64];

    program_task(p, w->rank, w->queue, w->index, &t);
    program_print_flag(p, w->flag, flag, sizeof flag);
    text_add(x, "  rank %" PRIu32 " crew %s queue %s %s #%" PRIu64 ", epoch %" PRIu64 ", ", w->rank,
             p->crews[w->crew].name, p->queues[w->queue].name, op_name(t.op), w->index, w->epoch);
    if (w->step != STUCK_NO_STEP)
        text_add(x, "step %" PRIu32 " wait", w->step);
    else
        text_add(x, "%s wait", w->phase == WAIT_LATE ? "late" : "entry");
    text_add(x, ": %s is %" PRIu64 ", wanted %" PRIu64 ", since %.6g us", flag, w->value, w->wanted,
             (double)w->since_ps / 1e6);
    text_end_line(x);
}

static void say_step(struct text *x, const struct hang *h, const struct hang_step *s)
{
    static const char *const why[] = {
        [CAUSE_NOT_BEGUN] = "its rank has not begun that epoch",
        [CAUSE_QUEUED] = "not started",
        [CAUSE_WAITS] = "waits itself",
    };

    if (s->cause <= CAUSE_TOO_LITTLE)
        return; /* the root says it all */
    text_add(x, "    missing: ");
    say_task(x, h->program, s->rank, s->queue, s->index);
    text_add(x, ", epoch %" PRIu64 " (%s)", s->epoch,
             s->cause == CAUSE_OPEN   ? s->open->state
             : s->cause == CAUSE_FATE ? h->ranks[s->rank].fate
                                      : why[s->cause]);
    if (s->others > 0)
        text_add(x, " and %" PRIu64 " more", s->others);
    text_end_line(x);
}

/* ---- root causes ---- */

static void say_open(struct text *x, const struct hang *h, const struct hang_open *o)
{
    say_task(x, h->program, o->rank, o->queue, o->index);
    text_add(x, ", epoch %" PRIu64 ", %s", o->epoch, o->state);
}

static void say_unpopped(struct text *x, const struct hang *h, uint32_t rank, uint32_t queue)
{
    const struct program *p = h->program;

    text_add(x, "rank %" PRIu32 " queue %s, %" PRIu64 " of %" PRIu64 " tasks popped%s", rank, p->queues[queue].name,
             h->ranks[rank].popped[queue], program_queue_length(p, rank, queue),
             hang_queue_drained(p, queue) ? "" : ": no crew drains it");
}

static void say_root(struct text *x, const struct hang *h, const struct stuck *w, const struct hang_step *s)
{
    const struct program *p = h->program;
    char flag[64];

    program_print_flag(p, w->flag, flag, sizeof flag);
    switch (s->cause) {
    case CAUSE_NOT_FOUND: text_add(x, "not found among the first %d tasks", TASKS_SEARCHED); break;
    case CAUSE_NOBODY: text_add(x, "no task signals %s of rank %" PRIu32, flag, w->rank); break;
    case CAUSE_TOO_LITTLE:
        text_add(x, "all tasks that signal %s of rank %" PRIu32 " have done so, %" PRIu64 " an epoch, and %s", flag,
                 w->rank, program_flag_total(p, w->rank, w->flag),
                 h->stopped ? "what they sent is on its way, or too little" : "more is wanted");
        break;
    case CAUSE_FATE: text_add(x, "rank %" PRIu32 " %s", s->rank, h->ranks[s->rank].fate); break;
    default:
        if (s->next)
            text_add(x, "a cycle: each waits for the one below, the last for one above");
        else if (s->open && h->ranks[s->rank].fate)
            text_add(x, "rank %" PRIu32 " %s", s->rank, h->ranks[s->rank].fate);
        else if (s->open)
            say_open(x, h, s->open);
        else if (s->cause == CAUSE_NOT_BEGUN)
            text_add(x, "rank %" PRIu32 " has not begun epoch %" PRIu64, s->rank, s->epoch);
        else
            say_unpopped(x, h, s->rank, s->queue);
    }
}

/* Nobody waits and yet not all is done. */
static void say_root_without_waits(struct text *x, const struct hang *h)
{
    for (uint32_t rank = 0; rank < world_ranks(h->program->world); rank++)
        if (h->ranks[rank].fate) {
            text_add(x, "rank %" PRIu32 " %s", rank, h->ranks[rank].fate);
            return;
        }
    if (h->open_count > 0) {
        say_open(x, h, &h->open[0]);
        return;
    }
    for (uint32_t rank = 0; rank < world_ranks(h->program->world); rank++)
        for (uint32_t q = 0; q < h->program->queue_count; q++)
            if (h->ranks[rank].popped[q] < program_queue_length(h->program, rank, q)) {
                say_unpopped(x, h, rank, q);
                return;
            }
    text_add(x, "not known");
}

/* ---- the chain ---- */

struct chain {
    struct hang_step *steps; /* parallel to `waits` */
    const struct stuck **waits;
    bool *visited; /* by index in h->stuck */
    uint64_t count;
};

static void chain_follow(const struct hang *h, struct chain *c)
{
    uint64_t left = TASKS_SEARCHED;
    const struct stuck *w = &h->stuck[0];

    while (w && !c->visited[w - h->stuck]) {
        c->visited[w - h->stuck] = true;
        c->waits[c->count] = w;
        c->steps[c->count] = hang_cause_find(h, w, &left);
        w = c->steps[c->count++].next;
    }
}

static void chain_say(struct text *x, const struct hang *h, const struct chain *c)
{
    uint64_t hidden = c->count > CHAIN_SHOWN ? c->count - CHAIN_SHOWN : 0;

    for (uint64_t i = 0; i < c->count; i++) {
        if (hidden > 0 && i == CHAIN_SHOWN / 2) {
            text_add(x, "  ... %" PRIu64 " more in between ...", hidden);
            text_end_line(x);
            i += hidden;
        }
        say_wait(x, h->program, c->waits[i]);
        say_step(x, h, &c->steps[i]);
    }
}

static bool told(const struct hang *h, const struct chain *c, uint64_t i)
{
    const struct stuck *w = &h->stuck[i];

    for (uint64_t j = 0; j < h->stuck_count; j++)
        if (c->visited[j] && h->stuck[j].rank == w->rank && h->stuck[j].crew == w->crew &&
            h->stuck[j].queue == w->queue)
            return true;
    return false;
}

/* One worker of a crew speaks for the others in the same queue. */
static void say_others(struct text *x, const struct hang *h, struct chain *c)
{
    uint64_t silent = 0;
    bool first = true;

    for (uint64_t i = 0; i < h->stuck_count; i++) {
        if (c->visited[i])
            continue;
        if (x->lines + 1 + first >= HANG_LINES_MAX || told(h, c, i)) {
            silent++;
            continue;
        }
        if (first) {
            text_add(x, "also waiting:");
            text_end_line(x);
        }
        first = false;
        c->visited[i] = true;
        say_wait(x, h->program, &h->stuck[i]);
    }
    if (silent > 0) {
        text_add(x, "and %" PRIu64 " more workers that wait", silent);
        text_end_line(x);
    }
}

static void say_waits(struct text *x, const struct hang *h, struct chain *c)
{
    chain_follow(h, c);
    text_add(x, "%s: ", h->stopped ? "held up by" : "root cause");
    say_root(x, h, c->waits[c->count - 1], &c->steps[c->count - 1]);
    text_end_line(x);
    chain_say(x, h, c);
    say_others(x, h, c);
}

void hang_report_write(const struct hang *h, const char *headline, char *out, size_t out_bytes)
{
    struct text x = text_begin(out, out_bytes);
    struct chain c = {
        .steps = calloc(h->stuck_count + 1, sizeof *c.steps),
        .waits = calloc(h->stuck_count + 1, sizeof *c.waits),
        .visited = calloc(h->stuck_count + 1, sizeof *c.visited),
    };

    text_add(&x, "%s", headline);
    text_end_line(&x);
    if (h->stuck_count > 0 && c.steps && c.waits && c.visited) {
        say_waits(&x, h, &c);
    } else {
        text_add(&x, "%s: ", h->stopped ? "held up by" : "root cause");
        say_root_without_waits(&x, h);
        text_end_line(&x);
    }
    free(c.steps);
    free(c.waits);
    free(c.visited);
}

void hang_mark_elsewhere(const struct node_link *nodes, struct world w, struct hang_rank *ranks,
                         char (*fates)[HANG_FATE_BYTES])
{
    for (uint32_t i = 0; nodes && i < world_ranks(w); i++) {
        char node[HANG_FATE_BYTES / 2];

        if (world_node(w, i) == nodes->node)
            continue;
        node_link_describe(nodes, world_node(w, i), node, sizeof node);
        snprintf(fates[world_node(w, i)], HANG_FATE_BYTES, "is in another process, %s", node);
        ranks[i].fate = fates[world_node(w, i)];
    }
}
