/* Happens-before queries about tasks of the last unrolled epoch. */
#include <stdlib.h>
#include <string.h>

#include "core/verify/verify_state.h"

struct clock_join {
    const struct verifier *v;
    uint32_t rank;
    verify_clock *out;
};

static bool join_wait(void *arg, const struct wait *w)
{
    struct clock_join *j = arg;

    if (j->v->epochs <= w->lag)
        return true;
    for (uint32_t i = 0; i < w->count; i++) {
        const verify_clock *c = verify_flag_clock(j->v, j->rank, w->flag + i, j->v->epochs - w->lag);

        for (uint32_t r = 0; r < j->v->ranks; r++)
            if (c[r] > j->out[r])
                j->out[r] = c[r];
    }
    return true;
}

void verify_clock_of(const struct verifier *v, uint32_t rank, const struct task *t, uint32_t until, verify_clock *out)
{
    struct clock_join j = {v, rank, out};

    memcpy(out, v->begin_clock + (uint64_t)rank * v->ranks, v->ranks * sizeof *out);
    verify_each_wait(v, rank, t, until, join_wait, &j);
}

/* ---- backwards from waits to signallers ---- */

struct event { /* a flag of a rank reaches its total, `back` epochs ago */
    uint64_t flag;
    uint32_t back;
};

struct search {
    const struct verifier *v;
    struct task_place x;
    struct task x_task;
    uint32_t back; /* of x */
    uint32_t rank; /* whose waits are being added */
    uint32_t base; /* how many epochs ago */
    struct event *open;
    uint64_t open_count, open_room;
    uint64_t *seen; /* hash set of flag * epochs + back + 1 */
    uint64_t seen_count, seen_room;
    bool found;
};

static bool signals_event(const struct search *s, struct event e)
{
    uint32_t rank = (uint32_t)(e.flag / s->v->p->flag_count);
    uint32_t flag = (uint32_t)(e.flag % s->v->p->flag_count);

    if (e.back != s->back)
        return false;
    for (uint32_t i = 0; i < s->x_task.signal_count; i++) {
        const struct signal *signal = &s->x_task.signals[i];
        uint32_t first, count = program_target_ranks(s->v->p, s->x.rank, signal->rank, &first);

        if (signal->flag == flag && rank - first < count)
            return true;
    }
    return false;
}

static uint64_t *slot_of(uint64_t *set, uint64_t room, uint64_t key)
{
    uint64_t i = key * 0x9e3779b97f4a7c15u % room;

    while (set[i] && set[i] != key)
        i = (i + 1) % room;
    return &set[i];
}

/* Whether the event is new. */
static bool mark_seen(struct search *s, struct event e)
{
    uint64_t key = e.flag * s->v->epochs + e.back + 1, *slot;

    if (2 * (s->seen_count + 1) > s->seen_room) {
        uint64_t room = s->seen_room ? 2 * s->seen_room + 1 : 1021;
        uint64_t *bigger = calloc(room, sizeof *bigger);

        if (!bigger)
            abort(); /* bounded by the number of flags, which is far smaller than the clocks */
        for (uint64_t i = 0; i < s->seen_room; i++)
            if (s->seen[i])
                *slot_of(bigger, room, s->seen[i]) = s->seen[i];
        free(s->seen);
        s->seen = bigger;
        s->seen_room = room;
    }
    slot = slot_of(s->seen, s->seen_room, key);
    if (*slot)
        return false;
    *slot = key;
    s->seen_count++;
    return true;
}

static void push(struct search *s, struct event e)
{
    if (s->open_count == s->open_room) {
        s->open_room = s->open_room ? 2 * s->open_room : 256;
        s->open = realloc(s->open, s->open_room * sizeof *s->open);
        if (!s->open)
            abort();
    }
    s->open[s->open_count++] = e;
}

static bool add_wait(void *arg, const struct wait *w)
{
    struct search *s = arg;

    if (s->base + w->lag > s->back || s->base + w->lag >= s->v->epochs)
        return true; /* before x */
    for (uint32_t i = 0; i < w->count; i++) {
        struct event e = {verify_flag_index(s->v, s->rank, w->flag + i), s->base + w->lag};

        if (signals_event(s, e)) {
            s->found = true;
            return false;
        }
        if (mark_seen(s, e))
            push(s, e);
    }
    return true;
}

/* All tasks of the epoch before are complete on a rank that has begun this one: with them, all that they waited
 * for. */
static bool add_epoch_before(struct search *s, uint32_t rank, uint32_t back)
{
    if (back + 1 > s->back || back + 1 >= s->v->epochs)
        return true;
    for (uint32_t flag = 0; flag < s->v->p->flag_count; flag++) {
        struct event e = {verify_flag_index(s->v, rank, flag), back + 1};

        if (!s->v->waited[e.flag])
            continue;
        if (signals_event(s, e)) {
            s->found = true;
            return false;
        }
        if (mark_seen(s, e))
            push(s, e);
    }
    return true;
}

static void expand(struct search *s, struct event e)
{
    const struct verifier *v = s->v;

    for (uint64_t i = v->signaller_first[e.flag]; i < v->signaller_first[e.flag + 1]; i++) {
        struct task_place at = verify_place(v, v->signallers[i]);
        struct task t;

        /* everything of an earlier epoch of that rank is complete, but for puts */
        if (at.rank == s->x.rank && e.back < s->back && s->x_task.op != OP_PUT) {
            s->found = true;
            return;
        }
        verify_task(v, at, &t);
        s->rank = at.rank;
        s->base = e.back;
        if (!verify_each_wait(v, at.rank, &t, VERIFY_RESULT, add_wait, s) || !add_epoch_before(s, at.rank, e.back))
            return;
    }
}

bool verify_reaches(const struct verifier *v, struct task_place x, uint32_t y_rank, const struct task *y,
                    uint32_t until, uint32_t back)
{
    struct search s = {.v = v, .x = x, .back = back, .rank = y_rank};

    verify_task(v, x, &s.x_task);
    verify_each_wait(v, y_rank, y, until, add_wait, &s);
    while (!s.found && s.open_count)
        expand(&s, s.open[--s.open_count]);
    free(s.open);
    free(s.seen);
    return s.found;
}
