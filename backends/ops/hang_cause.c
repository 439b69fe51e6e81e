#include "backends/ops/hang_cause.h"

#define ANY_QUEUE UINT32_MAX

static bool signals(const struct program *p, uint32_t from, const struct task *t, uint32_t rank, uint32_t flag)
{
    for (uint32_t i = 0; i < t->signal_count; i++) {
        uint32_t first, count = program_target_ranks(p, from, t->signals[i].rank, &first);

        if (t->signals[i].flag == flag && rank >= first && rank - first < count)
            return true;
    }
    return false;
}

static bool crew_drains(const struct program *p, uint32_t crew, uint32_t queue)
{
    for (uint32_t i = 0; i < p->crews[crew].queue_count; i++)
        if (p->crews[crew].queues[i] == queue)
            return true;
    return false;
}

bool hang_queue_drained(const struct program *p, uint32_t queue)
{
    for (uint32_t c = 0; c < p->crew_count; c++)
        if (crew_drains(p, c, queue))
            return true;
    return false;
}

/* ---- who holds a task up ---- */

static const struct stuck *waits(const struct hang *h, const struct hang_step *s)
{
    for (uint64_t i = 0; i < h->stuck_count; i++) {
        const struct stuck *w = &h->stuck[i];

        if (w->rank == s->rank && w->queue == s->queue && w->index == s->index && w->epoch == s->epoch)
            return w;
    }
    return NULL;
}

static const struct hang_open *is_open(const struct hang *h, const struct hang_step *s)
{
    for (uint64_t i = 0; i < h->open_count; i++) {
        const struct hang_open *o = &h->open[i];

        if (o->rank == s->rank && o->queue == s->queue && o->index == s->index && o->epoch == s->epoch)
            return o;
    }
    return NULL;
}

static bool could_take(const struct hang *h, uint32_t crew, uint32_t queue)
{
    return queue == ANY_QUEUE || crew_drains(h->program, crew, queue);
}

/* A wait of the rank by a worker that could otherwise take from `queue`. */
static const struct stuck *waiting_worker(const struct hang *h, uint32_t rank, uint32_t queue)
{
    for (uint64_t i = 0; i < h->stuck_count; i++)
        if (h->stuck[i].rank == rank && could_take(h, h->stuck[i].crew, queue))
            return &h->stuck[i];
    return NULL;
}

/* Whether some crew drains both. */
static bool share_crew(const struct program *p, uint32_t a, uint32_t b)
{
    for (uint32_t c = 0; c < p->crew_count; c++)
        if (crew_drains(p, c, a) && crew_drains(p, c, b))
            return true;
    return false;
}

/* The same for what is under way: held by such a worker, or anything of the rank. */
static const struct hang_open *busy_worker(const struct hang *h, uint32_t rank, uint32_t queue)
{
    for (uint64_t i = 0; i < h->open_count; i++) {
        const struct hang_open *o = &h->open[i];

        if (o->rank == rank && (queue == ANY_QUEUE || (o->held && share_crew(h->program, o->queue, queue))))
            return o;
    }
    return NULL;
}

static void find_holder(const struct hang *h, struct hang_step *s, uint32_t queue)
{
    s->next = waiting_worker(h, s->rank, queue);
    if (!s->next)
        s->open = busy_worker(h, s->rank, queue);
}

/* CAUSE_NOBODY: the task is done. */
static void judge(const struct hang *h, struct hang_step *s)
{
    const struct hang_rank *r = &h->ranks[s->rank];
    bool begun = r->epoch > s->epoch || (r->epoch == s->epoch && s->index < r->popped[s->queue]);

    s->cause = CAUSE_NOBODY;
    if ((s->open = is_open(h, s)))
        s->cause = CAUSE_OPEN;
    else if ((s->next = waits(h, s)))
        s->cause = CAUSE_WAITS;
    else if (!begun && r->fate)
        s->cause = CAUSE_FATE;
    else if (!begun) {
        s->cause = r->epoch < s->epoch ? CAUSE_NOT_BEGUN : CAUSE_QUEUED;
        find_holder(h, s, s->cause == CAUSE_QUEUED ? s->queue : ANY_QUEUE);
    }
}

/* ---- who should have signalled ---- */

/* Epochs do not mix on a flag, so the first that has not all its signals is the one to look at. */
static uint64_t missing_epoch(const struct hang *h, const struct stuck *w)
{
    uint64_t total = program_flag_total(h->program, w->rank, w->flag);

    return total == 0 ? w->epoch : min_u64(w->value / total + 1, w->epoch);
}

static void take_better(struct hang_step *best, const struct hang_step *s)
{
    uint64_t others = best->others + (best->cause > CAUSE_TOO_LITTLE);

    if (s->cause > best->cause)
        *best = *s;
    best->others = best->cause > CAUSE_TOO_LITTLE ? others : 0;
}

static void search_queue(const struct hang *h, const struct stuck *w, struct hang_step at, uint64_t *left,
                         struct hang_step *best)
{
    uint64_t length = program_queue_length(h->program, at.rank, at.queue);
    struct task t;

    for (at.index = 0; at.index<length && * left> 0; at.index++, (*left)--) {
        struct hang_step s = at;

        program_task(h->program, at.rank, at.queue, at.index, &t);
        if (!signals(h->program, at.rank, &t, w->rank, w->flag))
            continue;
        judge(h, &s);
        if (s.cause == CAUSE_NOBODY)
            best->cause = best->cause > CAUSE_TOO_LITTLE ? best->cause : CAUSE_TOO_LITTLE;
        else
            take_better(best, &s);
    }
}

struct hang_step hang_cause_find(const struct hang *h, const struct stuck *w, uint64_t *left)
{
    struct hang_step best = {.cause = CAUSE_NOBODY};
    struct hang_step at = {.epoch = missing_epoch(h, w)};

    for (at.rank = 0; at.rank < world_ranks(h->program->world); at.rank++)
        for (at.queue = 0; at.queue < h->program->queue_count; at.queue++)
            search_queue(h, w, at, left, &best);
    if (*left == 0 && best.cause <= CAUSE_TOO_LITTLE)
        best.cause = CAUSE_NOT_FOUND;
    return best;
}
