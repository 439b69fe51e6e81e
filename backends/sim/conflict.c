#include "backends/sim/conflict.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct conflicts {
    const struct program *program;
    struct access **lists; /* by rank, buffer and kind: reads, mostly the many, are looked through by writes alone */
    struct pool pool;
};

struct conflicts *conflicts_create(const struct program *p)
{
    struct conflicts *c = calloc(1, sizeof *c);

    assert(c);
    c->program = p;
    c->lists = calloc(2 * ((size_t)world_ranks(p->world) * p->buffer_count + 1), sizeof *c->lists);
    assert(c->lists);
    pool_init(&c->pool, sizeof(struct access));
    return c;
}

void conflicts_destroy(struct conflicts *c)
{
    if (!c)
        return;
    pool_fini(&c->pool);
    free(c->lists);
    free(c);
}

static uint64_t region_end(const struct region *r)
{
    return r->offset + (r->rows - 1) * r->ld + r->cols;
}

/* Whether the run [first, end) meets a row of the region. */
static bool run_meets(uint64_t first, uint64_t end, const struct region *r)
{
    uint64_t row;

    if (end <= r->offset)
        return false;
    if (first < r->offset + r->cols)
        return true;
    if (r->ld == 0)
        return false;
    row = (first - r->offset) / r->ld; /* the last row that starts at or before `first` */
    if (row < r->rows && first < r->offset + row * r->ld + r->cols)
        return true;
    return row + 1 < r->rows && end > r->offset + (row + 1) * r->ld;
}

static bool regions_meet(const struct region *a, const struct region *b)
{
    if (a->copy != b->copy || region_end(a) <= b->offset || region_end(b) <= a->offset)
        return false;
    if (a->rows > b->rows)
        return regions_meet(b, a);
    for (uint64_t row = 0; row < a->rows; row++) {
        uint64_t first = a->offset + row * a->ld;

        if (run_meets(first, first + a->cols, b))
            return true;
    }
    return false;
}

static bool same_task(const struct task_id *a, const struct task_id *b)
{
    return a->rank == b->rank && a->queue == b->queue && a->index == b->index && a->epoch == b->epoch;
}

static const struct access *find(const struct access *list, const struct access *mine)
{
    for (const struct access *a = list; a; a = a->next)
        if (!same_task(&a->id, &mine->id) && regions_meet(&a->region, &mine->region))
            return a;
    return NULL;
}

static void push(struct access **list, struct access *a)
{
    a->next = *list;
    a->link = list;
    if (a->next)
        a->next->link = &a->next;
    *list = a;
}

const struct access *conflicts_add(struct conflicts *c, const struct region *region, enum access_kind kind,
                                   const struct task_id *id, struct access **owned)
{
    struct access **lists = &c->lists[2 * ((uint64_t)region->rank * c->program->buffer_count + region->buffer)];
    struct access *a;
    const struct access *other;

    if (region->rows == 0 || region->cols == 0)
        return NULL;
    a = pool_take(&c->pool);
    a->region = *region;
    a->kind = kind;
    a->id = *id;
    other = find(lists[ACCESS_WRITE], a);
    if (!other && kind == ACCESS_WRITE)
        other = find(lists[ACCESS_READ], a);
    push(&lists[kind], a);
    a->next_owned = *owned;
    *owned = a;
    return other;
}

void conflicts_end(struct conflicts *c, struct access **owned)
{
    while (*owned) {
        struct access *a = *owned;

        *owned = a->next_owned;
        *a->link = a->next;
        if (a->next)
            a->next->link = a->link;
        pool_give(&c->pool, a);
    }
}

static void describe_task(const struct program *p, const struct task_id *id, char *out, size_t out_bytes)
{
    struct task t;

    if (id->queue == TASK_BEGIN || id->queue == TASK_END) {
        snprintf(out, out_bytes, "%s", id->queue == TASK_BEGIN ? "begin" : "end");
        return;
    }
    program_task(p, id->rank, id->queue, id->index, &t);
    snprintf(out, out_bytes, "%s #%" PRIu64 " of queue %s", op_name(t.op), id->index, p->queues[id->queue].name);
}

void conflicts_describe(const struct program *p, const struct task_id *id, enum access_kind kind,
                        const struct region *r, char *out, size_t out_bytes)
{
    const struct buffer *b = &p->buffers[r->buffer];
    uint64_t row = r->offset / b->cols, col = r->offset % b->cols;
    char task[96];

    describe_task(p, id, task, sizeof task);
    snprintf(out, out_bytes,
             "%s, rank %" PRIu32 ", epoch %" PRIu64 ", %s rank %" PRIu32 " %s: %" PRIu64 " x %" PRIu64
             " elements from row %" PRIu64 ", column %" PRIu64 " on",
             task, id->rank, id->epoch, kind == ACCESS_READ ? "reads" : "writes", r->rank, b->name, r->rows, r->cols,
             row, col);
}
