/* Deadlock freedom, by executing the program with one abstract worker per queue (docs/verifier.md gives the
 * proof that this stands for any number of workers).  A task completes when
 *   - the tasks before it in its queue have,
 *   - all tasks of the queues that the queue's home crew drains first have,
 *   - no task that may block a worker late, in a queue that some crew drains first, is pending, and
 *   - all its waits are met.
 * Nothing here depends on the order of execution: counters only grow.
 *
 * On the way, vector clocks are carried from signals to waits: for each flag, what is known to have begun on
 * each rank when its total is reached. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/program_print.h"
#include "core/verify/verify_state.h"

struct lane { /* one queue of one rank */
    uint64_t next, length;
    struct task task; /* the next one, when `loaded` */
    bool loaded;
};

struct execution {
    struct verifier *v;
    struct lane *lanes; /* [rank * queues + queue] */
    uint64_t *counters;
    uint32_t *epoch;                             /* of each rank; beyond the last: finished */
    verify_clock *begin;                         /* [rank][rank] */
    verify_clock *done;                          /* [rank][rank]: joined over the tasks of the current epoch */
    uint64_t ordered_before[PROGRAM_QUEUES_MAX]; /* bit q: all of q completes first */
    uint64_t blocks_before[PROGRAM_QUEUES_MAX];  /* bit q: its late waits are met first */
};

static struct lane *lane_of(const struct execution *x, uint32_t rank, uint32_t queue)
{
    return &x->lanes[(uint64_t)rank * x->v->p->queue_count + queue];
}

/* The home crew of a queue is the one that reaches it first. */
static void plan_crews(struct execution *x)
{
    const struct program *p = x->v->p;

    for (uint32_t q = 0; q < p->queue_count; q++) {
        uint32_t best = UINT32_MAX;

        for (uint32_t c = 0; c < p->crew_count; c++) {
            uint64_t earlier = 0;

            for (uint32_t i = 0; i < p->crews[c].queue_count; i++) {
                if (p->crews[c].queues[i] != q) {
                    earlier |= 1ull << p->crews[c].queues[i];
                    continue;
                }
                x->blocks_before[q] |= earlier;
                if (i < best) {
                    best = i;
                    x->ordered_before[q] = earlier;
                }
                break;
            }
        }
    }
}

static void join(verify_clock *into, const verify_clock *from, uint32_t ranks)
{
    for (uint32_t r = 0; r < ranks; r++)
        if (from[r] > into[r])
            into[r] = from[r];
}

static bool lane_may_run(const struct execution *x, uint32_t rank, uint32_t queue)
{
    for (uint32_t q = 0; q < x->v->p->queue_count; q++) {
        const struct lane *l = lane_of(x, rank, q);
        int64_t blocking = x->v->last_blocking[(uint64_t)rank * x->v->p->queue_count + q];

        if ((x->ordered_before[queue] >> q & 1) && l->next < l->length)
            return false;
        if ((x->blocks_before[queue] >> q & 1) && (int64_t)l->next <= blocking)
            return false;
    }
    return true;
}

struct wait_state {
    const struct execution *x;
    uint32_t rank;
    verify_clock *clock; /* NULL: only test */
    uint32_t unmet;      /* the first flag whose wait is not met */
};

static bool wait_met(void *arg, const struct wait *w)
{
    struct wait_state *s = arg;
    const struct verifier *v = s->x->v;
    uint32_t epoch = s->x->epoch[s->rank];

    if (epoch <= w->lag)
        return true;
    for (uint32_t i = 0; i < w->count; i++) {
        uint64_t f = verify_flag_index(v, s->rank, w->flag + i);

        if (s->clock) {
            join(s->clock, verify_flag_clock(v, s->rank, w->flag + i, epoch - w->lag), v->ranks);
        } else if (s->x->counters[f] < (epoch - w->lag) * v->totals[f]) {
            s->unmet = w->flag + i;
            return false;
        }
    }
    return true;
}

static void complete(struct execution *x, uint32_t rank, const struct task *t, verify_clock *clock)
{
    const struct verifier *v = x->v;
    struct wait_state s = {.x = x, .rank = rank, .clock = clock};

    memcpy(clock, x->begin + (uint64_t)rank * v->ranks, v->ranks * sizeof *clock);
    verify_each_wait(v, rank, t, VERIFY_RESULT, wait_met, &s);
    join(x->done + (uint64_t)rank * v->ranks, clock, v->ranks);
    for (uint32_t i = 0; i < t->signal_count; i++) {
        uint32_t first, count = program_target_ranks(v->p, rank, t->signals[i].rank, &first);

        for (uint32_t r = first; r < first + count; r++) {
            x->counters[verify_flag_index(v, r, t->signals[i].flag)] += t->signals[i].add;
            join(verify_flag_clock(v, r, t->signals[i].flag, x->epoch[rank]), clock, v->ranks);
        }
    }
}

/* Runs the lane as far as it goes; returns whether it moved. */
static bool run_lane(struct execution *x, uint32_t rank, uint32_t queue, verify_clock *scratch)
{
    struct lane *l = lane_of(x, rank, queue);
    struct wait_state s = {.x = x, .rank = rank};
    uint64_t before = l->next;

    if (l->next == l->length || !lane_may_run(x, rank, queue))
        return false;
    while (l->next < l->length) {
        if (!l->loaded)
            program_task(x->v->p, rank, queue, l->next, &l->task);
        l->loaded = true;
        if (!verify_each_wait(x->v, rank, &l->task, VERIFY_RESULT, wait_met, &s))
            break;
        complete(x, rank, &l->task, scratch);
        l->loaded = false;
        l->next++;
    }
    return l->next != before;
}

static void begin_epoch(struct execution *x, uint32_t rank)
{
    const struct verifier *v = x->v;
    verify_clock *begin = x->begin + (uint64_t)rank * v->ranks;

    join(begin, x->done + (uint64_t)rank * v->ranks, v->ranks);
    begin[rank] = (verify_clock)++x->epoch[rank];
    for (uint32_t q = 0; q < v->p->queue_count; q++)
        *lane_of(x, rank, q) = (struct lane){.length = program_queue_length(v->p, rank, q)};
}

static bool epoch_over(const struct execution *x, uint32_t rank)
{
    for (uint32_t q = 0; q < x->v->p->queue_count; q++)
        if (lane_of(x, rank, q)->next < lane_of(x, rank, q)->length)
            return false;
    return true;
}

static bool run_rank(struct execution *x, uint32_t rank, verify_clock *scratch)
{
    bool moved = false;

    if (x->epoch[rank] > x->v->epochs)
        return false;
    for (uint32_t q = 0; q < x->v->p->queue_count; q++)
        moved |= run_lane(x, rank, q, scratch);
    if (!epoch_over(x, rank))
        return moved;
    if (x->epoch[rank] == x->v->epochs)
        x->epoch[rank]++; /* the clock of the last begin stays */
    else
        begin_epoch(x, rank);
    return true;
}

/* ---- a deadlock, followed from task to task to where it closes ---- */

/* What a stuck lane waits for; false: it is not stuck, or its home crew is elsewhere. */
static bool why_stuck(const struct execution *x, uint32_t rank, uint32_t queue, uint32_t *flag_out)
{
    struct lane *l = lane_of(x, rank, queue);
    struct wait_state s = {.x = x, .rank = rank};

    if (l->next == l->length || !lane_may_run(x, rank, queue))
        return false;
    program_task(x->v->p, rank, queue, l->next, &l->task);
    if (verify_each_wait(x->v, rank, &l->task, VERIFY_RESULT, wait_met, &s))
        return false;
    *flag_out = s.unmet;
    return true;
}

/* The first task that has yet to signal the flag, and the lane head in front of it. */
static bool find_culprit(const struct execution *x, uint32_t rank, uint32_t flag, struct task_place *task_out,
                         struct task_place *head_out)
{
    const struct verifier *v = x->v;
    uint64_t f = verify_flag_index(v, rank, flag);

    for (uint64_t i = v->signaller_first[f]; i < v->signaller_first[f + 1]; i++) {
        struct task_place at = verify_place(v, v->signallers[i]);

        if (x->epoch[at.rank] > v->epochs || at.index < lane_of(x, at.rank, at.queue)->next)
            continue;
        *task_out = at;
        *head_out = (struct task_place){at.rank, at.queue, lane_of(x, at.rank, at.queue)->next};
        for (uint32_t q = 0; q < v->p->queue_count; q++) /* held up by an earlier queue of its crew? */
            if (!lane_may_run(x, at.rank, at.queue) && lane_may_run(x, at.rank, q) &&
                lane_of(x, at.rank, q)->next < lane_of(x, at.rank, q)->length)
                *head_out = (struct task_place){at.rank, q, lane_of(x, at.rank, q)->next};
        return true;
    }
    return false;
}

static void report_chain(const struct execution *x, struct task_place at)
{
    struct verifier *v = x->v;
    char text[2048], task[VERIFY_TASK_TEXT_BYTES], name[64];
    size_t used = 0;
    uint32_t flag;

    text[0] = '\0';
    for (uint32_t hop = 0; hop < 6 && why_stuck(x, at.rank, at.queue, &flag); hop++) {
        struct task_place signaller, head;
        int n;

        verify_describe(v, at, task);
        program_print_flag(v->p, flag, name, sizeof name);
        n = snprintf(text + used, sizeof text - used, "\n    %.300s\n      waits for %s%s", task, name,
                     find_culprit(x, at.rank, flag, &signaller, &head) ? ", which is signalled behind" : "");
        used += (size_t)n < sizeof text - used ? (size_t)n : 0;
        if (!find_culprit(x, at.rank, flag, &signaller, &head))
            break;
        at = head;
    }
    verify_fail(v, "deadlock", "in epoch %u:%s", x->epoch[at.rank], text);
}

static void report_deadlock(const struct execution *x)
{
    uint32_t flag;

    for (uint32_t rank = 0; rank < x->v->ranks; rank++) {
        if (x->epoch[rank] > x->v->epochs)
            continue;
        for (uint32_t q = 0; q < x->v->p->queue_count; q++) {
            if (why_stuck(x, rank, q, &flag)) {
                report_chain(x, (struct task_place){rank, q, lane_of(x, rank, q)->next});
                return;
            }
        }
    }
}

static bool all_over(const struct execution *x)
{
    for (uint32_t rank = 0; rank < x->v->ranks; rank++)
        if (x->epoch[rank] <= x->v->epochs)
            return false;
    return true;
}

static void execute(struct execution *x, verify_clock *scratch)
{
    bool moved = true;

    plan_crews(x);
    for (uint32_t rank = 0; rank < x->v->ranks; rank++)
        begin_epoch(x, rank);
    while (moved) {
        moved = false;
        for (uint32_t rank = 0; rank < x->v->ranks; rank++)
            moved |= run_rank(x, rank, scratch);
    }
    if (!all_over(x))
        report_deadlock(x);
}

enum status verify_execute(struct verifier *v)
{
    uint64_t flags = (uint64_t)v->ranks * v->p->flag_count, square = (uint64_t)v->ranks * v->ranks;
    struct execution x = {.v = v};
    verify_clock *scratch = calloc(v->ranks, sizeof *scratch);
    enum status st = ST_MEMORY;

    x.lanes = calloc((uint64_t)v->ranks * v->p->queue_count, sizeof *x.lanes);
    x.counters = calloc(flags + 1, sizeof *x.counters);
    x.epoch = calloc(v->ranks, sizeof *x.epoch);
    x.done = calloc(square, sizeof *x.done);
    x.begin = v->begin_clock = calloc(square, sizeof *x.begin);
    v->flag_clock = calloc(flags * v->epochs * v->ranks + 1, sizeof *v->flag_clock);
    if (scratch && x.lanes && x.counters && x.epoch && x.done && x.begin && v->flag_clock) {
        execute(&x, scratch);
        st = ST_OK;
    }
    free(scratch);
    free(x.lanes);
    free(x.counters);
    free(x.epoch);
    free(x.done);
    return st;
}
