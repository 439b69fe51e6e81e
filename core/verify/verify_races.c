/* Race freedom: any two accesses to the same bytes, one of them a write, are ordered by signals.
 *
 * Bytes of a buffer of depth d are used again every d epochs, so pairs at a distance of 0 and of d epochs
 * are judged; longer distances follow because a rank's epochs follow each other.  Inputs are also written,
 * and outputs read, by begin and end of the owner's epoch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/program_print.h"
#include "core/verify/verify_state.h"

struct entry {
    struct access access;
    struct task_place at;
    bool put;
};

/* The distinct accesses to one buffer of one window. */
struct shelf {
    struct entry *entries;
    uint64_t count, room;
};

struct races {
    struct verifier *v;
    struct shelf *shelves; /* [rank * buffers + buffer] */
    uint64_t *known;       /* hash set of what is on the shelves */
    uint64_t known_count, known_room;
    struct task_place at; /* the task whose accesses are being added */
    const struct task *task;

    verify_clock *clock;
    bool out_of_memory;
};

/* ---- collecting: accesses that cannot be told apart are kept once ---- */

/* One round of splitmix64 per value.  Accesses with equal hashes are taken for equal, so it has to be good:
 * n of them collide with a chance of n^2 / 2^65. */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = hash * 0x9fb21c651e98df25u + value + 0x9e3779b97f4a7c15u;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    return hash ^ (hash >> 31);
}

static bool hash_wait(void *arg, const struct wait *w)
{
    uint64_t *hash = arg;

    *hash = mix(mix(mix(*hash, w->flag), w->count), w->lag);
    return true;
}

static uint64_t access_hash(const struct races *r, const struct access *a)
{
    uint64_t hash = mix(mix(0, r->at.rank), a->window);

    hash = mix(mix(hash, a->buffer), a->until);
    hash = mix(mix(mix(mix(hash, a->row), a->rows), a->col), a->cols);
    verify_each_wait(r->v, r->at.rank, r->task, a->until, hash_wait, &hash);
    for (uint32_t i = 0; i < r->task->signal_count; i++)
        hash = mix(mix(hash, r->task->signals[i].rank), r->task->signals[i].flag);
    hash = mix(hash, (uint64_t)a->write << 1 | (r->task->op == OP_PUT));
    if (a->write) /* two tasks that write the same bytes and agree in all else are a race */
        hash = mix(mix(hash, r->at.queue), r->at.index);
    return hash ? hash : 1;
}

static bool grow_known(struct races *r)
{
    uint64_t room = r->known_room ? 2 * r->known_room : 4096;
    uint64_t *bigger = calloc(room, sizeof *bigger);

    if (!bigger)
        return false;
    for (uint64_t i = 0; i < r->known_room; i++) {
        uint64_t slot = r->known[i] & (room - 1);

        if (!r->known[i])
            continue;
        while (bigger[slot])
            slot = (slot + 1) & (room - 1);
        bigger[slot] = r->known[i];
    }
    free(r->known);
    r->known = bigger;
    r->known_room = room;
    return true;
}

/* Whether it is new; false too when memory is out. */
static bool remember(struct races *r, uint64_t hash)
{
    uint64_t slot;

    if (2 * (r->known_count + 1) > r->known_room && !grow_known(r)) {
        r->out_of_memory = true;
        return false;
    }
    slot = hash & (r->known_room - 1);
    while (r->known[slot] && r->known[slot] != hash)
        slot = (slot + 1) & (r->known_room - 1);
    if (r->known[slot])
        return false;
    r->known[slot] = hash;
    r->known_count++;
    return true;
}

static void add_access(void *arg, const struct access *a)
{
    struct races *r = arg;
    struct shelf *s = &r->shelves[(uint64_t)a->window * r->v->p->buffer_count + a->buffer];

    if (!r->v->buffer_written[a->buffer] && !r->v->buffer_shared[a->buffer])
        return; /* read by its owner only */
    if (!remember(r, access_hash(r, a)))
        return;
    if (s->count == s->room) {
        uint64_t room = s->room ? 2 * s->room : 64;
        struct entry *bigger = realloc(s->entries, room * sizeof *bigger);

        if (!bigger) {
            r->out_of_memory = true;
            return;
        }
        s->entries = bigger;
        s->room = room;
    }
    s->entries[s->count++] = (struct entry){*a, r->at, r->task->op == OP_PUT};
}

static void add_task(void *arg, struct task_place at, const struct task *t)
{
    struct races *r = arg;

    r->at = at;
    r->task = t;
    verify_each_access(r->v, at.rank, t, add_access, r);
}

/* ---- order ---- */

/* Whether rank `judge` is known, at y's point in the last epoch, to have begun an epoch in which x, `back`
 * epochs ago, is over. */
static bool known_over(const struct races *r, const struct entry *x, uint32_t back)
{
    const struct verifier *v = r->v;
    verify_clock over = (verify_clock)(v->epochs - back + 1);
    struct task t;

    if (!x->put)
        return r->clock[x->at.rank] >= over;
    verify_task(v, x->at, &t); /* over where somebody has waited for its signals */
    for (uint32_t i = 0; i < t.signal_count; i++) {
        if (v->waited[verify_flag_index(v, t.signals[i].rank, t.signals[i].flag)] &&
            r->clock[t.signals[i].rank] >= over)
            return true;
    }
    return false;
}

/* x of `back` epochs ago before y of this one; r->clock is y's. */
static bool ordered(const struct races *r, const struct entry *x, const struct entry *y, const struct task *y_task,
                    uint32_t back)
{
    r->v->report->orderings++;
    return known_over(r, x, back) || verify_reaches(r->v, x->at, y->at.rank, y_task, y->access.until, back);
}

static void describe_bytes(const struct races *r, const struct entry *x, const struct entry *y, char *out, size_t size)
{
    const struct access *a = &x->access, *b = &y->access;
    uint64_t row = a->row > b->row ? a->row : b->row, col = a->col > b->col ? a->col : b->col;
    uint64_t row_end = min_u64(a->row + a->rows, b->row + b->rows);
    uint64_t col_end = min_u64(a->col + a->cols, b->col + b->cols);

    snprintf(out, size, "%s[%lu..%lu, %lu..%lu] of rank %u", r->v->p->buffers[a->buffer].name, (unsigned long)row,
             (unsigned long)row_end - 1, (unsigned long)col, (unsigned long)col_end - 1, a->window);
}

/* The edge that is missing, as far as the two tasks tell: what x signals to y's rank, if anything. */
static void describe_edge(const struct races *r, const struct entry *x, const struct entry *y, char *out, size_t size)
{
    const struct program *p = r->v->p;
    char name[64];
    struct task t;

    verify_task(r->v, x->at, &t);
    for (uint32_t i = 0; i < t.signal_count; i++) {
        uint32_t first, count = program_target_ranks(p, x->at.rank, t.signals[i].rank, &first);

        if (y->at.rank - first >= count)
            continue;
        program_print_flag(p, t.signals[i].flag, name, sizeof name);
        snprintf(out, size, "the first raises %s on rank %u; nothing before the second waits for it", name, y->at.rank);
        return;
    }
    if (t.signal_count == 0) {
        snprintf(out, size, "the first signals nothing, so only the end of its epoch could order it");
        return;
    }
    program_print_flag(p, t.signals[0].flag, name, sizeof name);
    snprintf(out, size, "the first raises %s, but not on rank %u, and no chain leads from there", name, y->at.rank);
}

static void fail_pair(const struct races *r, const struct entry *x, const struct entry *y, uint32_t back)
{
    char bytes[160], first[VERIFY_TASK_TEXT_BYTES], second[VERIFY_TASK_TEXT_BYTES], when[64] = "";
    char edge[200];

    describe_bytes(r, x, y, bytes, sizeof bytes);
    verify_describe(r->v, x->at, first);
    verify_describe(r->v, y->at, second);
    if (back)
        snprintf(when, sizeof when, ", %u epoch%s later", back, back > 1 ? "s" : "");
    describe_edge(r, x, y, edge, sizeof edge);
    verify_fail(r->v, "race",
                "nothing orders the %s of %s%s\n    by  %.400s\n    %s its %s%s\n    by  %.400s\n"
                "    missing: %s",
                x->access.write ? "write" : "read", bytes, x->put ? " by the network" : "", first,
                back ? "before" : "and", y->access.write ? "write" : "read", when, second, edge);
}

static bool overlap(const struct access *a, const struct access *b)
{
    return a->row < b->row + b->rows && b->row < a->row + a->rows && a->col < b->col + b->cols &&
           b->col < a->col + a->cols;
}

/* Either order will do, but one it must be; writes are likelier to come first. */
static bool check_same_epoch(struct races *r, const struct entry *x, const struct entry *y)
{
    const struct entry *first = x->access.write ? x : y, *second = first == x ? y : x;
    struct task t;

    if (x->at.rank == y->at.rank && x->at.queue == y->at.queue && x->at.index == y->at.index)
        return true; /* a task reads before it writes */
    r->v->report->orderings++;
    verify_task(r->v, second->at, &t);
    if (verify_reaches(r->v, first->at, second->at.rank, &t, second->access.until, 0))
        return true;
    verify_task(r->v, first->at, &t);
    if (verify_reaches(r->v, second->at, first->at.rank, &t, first->access.until, 0))
        return true;
    fail_pair(r, first, second, 0);
    return false;
}

static void check_next_use(struct races *r, const struct entry *x, const struct entry *y)
{
    uint32_t depth = r->v->p->buffers[x->access.buffer].depth;
    struct task t;

    verify_task(r->v, y->at, &t);
    verify_clock_of(r->v, y->at.rank, &t, y->access.until, r->clock);
    if (!ordered(r, x, y, &t, depth))
        fail_pair(r, x, y, depth);
}

/* ---- the owner's begin and end ---- */

/* Something of the owner waits, in the same epoch, for a signal that covers the access. */
static bool over_before_end(const struct races *r, const struct entry *e, const struct task *t)
{
    for (uint32_t i = 0; i < t->signal_count; i++) {
        const struct signal *s = &t->signals[i];
        uint32_t first, count = program_target_ranks(r->v->p, e->at.rank, s->rank, &first);

        if (e->access.window - first < count && r->v->waited[verify_flag_index(r->v, e->access.window, s->flag)])
            return true;
    }
    return false;
}

static void check_against_owner(struct races *r, const struct entry *e, const struct io_slice *io)
{
    const struct verifier *v = r->v;
    const char *name = v->p->buffers[e->access.buffer].name;
    uint32_t owner = e->access.window, depth = v->p->buffers[e->access.buffer].depth;
    /* inputs are there once this epoch has begun; outputs were read before the copy's next use began */
    uint32_t begun = io->role == IO_INPUT ? v->epochs : v->epochs - depth + 1;
    char text[VERIFY_TASK_TEXT_BYTES];
    struct task t;

    verify_task(v, e->at, &t);
    verify_clock_of(v, e->at.rank, &t, e->access.until, r->clock);
    if (e->at.rank != owner && r->clock[owner] < begun) {
        verify_describe(v, e->at, text);
        verify_fail(r->v, "race", "nothing tells that rank %u has %s %s %s\n    %s", owner,
                    io->role == IO_INPUT ? "written its input" : "read its output", name, "before this access", text);
    }
    if (!over_before_end(r, e, &t)) {
        verify_describe(v, e->at, text);
        verify_fail(r->v, "race",
                    "rank %u may end its epoch before this access to its %s %s: no task of "
                    "it waits for a signal\n    %s",
                    owner, io->role == IO_INPUT ? "input" : "output", name, text);
    }
}

static void check_io(struct races *r, const struct shelf *s)
{
    struct io_slice io[PROGRAM_IO_MAX];

    for (uint64_t i = 0; i < s->count; i++) {
        const struct entry *e = &s->entries[i];
        uint32_t count;

        if (e->at.rank == e->access.window && !e->put)
            continue; /* between begin and end of its own epoch */
        count = program_io(r->v->p, e->access.window, io);
        for (uint32_t k = 0; k < count; k++)
            if (io[k].buffer == e->access.buffer && e->access.row < io[k].row + io[k].rows &&
                io[k].row < e->access.row + e->access.rows && e->access.col < io[k].cols)
                check_against_owner(r, e, &io[k]);
    }
}

/* ---- sweeping over a shelf ---- */

static int by_row(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return (x->access.row > y->access.row) - (x->access.row < y->access.row);
}

static void check_shelf(struct races *r, struct shelf *s)
{
    if (s->count == 0)
        return;
    qsort(s->entries, s->count, sizeof *s->entries, by_row);
    r->v->report->accesses += s->count;
    for (uint64_t i = 0; i < s->count; i++) {
        const struct entry *x = &s->entries[i];

        if (x->access.write)
            check_next_use(r, x, x);
        for (uint64_t j = i + 1; j < s->count; j++) {
            const struct entry *y = &s->entries[j];

            if (y->access.row >= x->access.row + x->access.rows)
                break;
            if ((!x->access.write && !y->access.write) || !overlap(&x->access, &y->access))
                continue;
            if (!check_same_epoch(r, x, y))
                continue; /* one violation a pair is enough */
            check_next_use(r, x, y);
            check_next_use(r, y, x);
        }
    }
    check_io(r, s);
}

/* ---- epochs of a flag: each signal of one before each signal of the next ---- */

static void check_flag_epochs(struct races *r, uint64_t flag)
{
    const struct verifier *v = r->v;
    uint64_t first = v->signaller_first[flag], end = v->signaller_first[flag + 1];

    for (uint64_t i = first; i < end; i++) {
        struct entry y = {.at = verify_place(v, v->signallers[i])};
        struct task t;

        verify_task(v, y.at, &t);
        verify_clock_of(v, y.at.rank, &t, VERIFY_RESULT, r->clock);
        for (uint64_t j = first; j < end; j++) {
            struct entry x = {.at = verify_place(v, v->signallers[j]), .access.write = true};
            struct task x_task;
            char text[VERIFY_TASK_TEXT_BYTES], name[64];

            if (!v->put_raised[flag] && x.at.rank == y.at.rank)
                continue; /* a rank's epochs follow each other */
            verify_task(v, x.at, &x_task);
            x.put = x_task.op == OP_PUT;
            y.access.until = VERIFY_RESULT;
            if (ordered(r, &x, &y, &t, 1))
                continue;
            program_print_flag(v->p, (uint32_t)(flag % v->p->flag_count), name, sizeof name);
            verify_describe(v, x.at, text);
            verify_fail(r->v, "flags", "a signal of the next epoch to %s on rank %lu may overtake this one\n    %s",
                        name, (unsigned long)(flag / v->p->flag_count), text);
            return;
        }
    }
}

/* Only flags that several ranks or a put raise can mix epochs. */
static bool may_mix(const struct verifier *v, uint64_t flag)
{
    uint64_t first = v->signaller_first[flag], end = v->signaller_first[flag + 1];

    if (v->put_raised[flag])
        return true;
    for (uint64_t i = first + 1; i < end; i++)
        if (verify_place(v, v->signallers[i]).rank != verify_place(v, v->signallers[first]).rank)
            return true;
    return false;
}

enum status verify_races(struct verifier *v)
{
    uint64_t shelves = (uint64_t)v->ranks * v->p->buffer_count;
    uint64_t flags = (uint64_t)v->ranks * v->p->flag_count;
    struct races r = {.v = v};

    r.shelves = calloc(shelves + 1, sizeof *r.shelves);
    r.clock = calloc(v->ranks, sizeof *r.clock);
    r.out_of_memory = !r.shelves || !r.clock;
    if (!r.out_of_memory)
        verify_each_task(v, add_task, &r);
    for (uint64_t f = 0; !r.out_of_memory && f < flags; f++)
        if (may_mix(v, f))
            check_flag_epochs(&r, f);
    for (uint64_t s = 0; !r.out_of_memory && s < shelves; s++)
        check_shelf(&r, &r.shelves[s]);
    for (uint64_t s = 0; r.shelves && s < shelves; s++)
        free(r.shelves[s].entries);
    free(r.shelves);
    free(r.known);
    free(r.clock);
    return r.out_of_memory ? ST_MEMORY : ST_OK;
}
