#include "sim/fluid.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/event_heap.h"
#include "sim/network.h"

#define NO_LINK UINT32_MAX

/* Port p has the links p (out) and port_count + p (in). */
struct fluid_link {
    double rate;
    double left;      /* while rates are computed: what is not given away */
    uint32_t unfixed; /* flows on it that have no rate yet */
    uint32_t count, capacity;
    uint32_t *flows;
    bool dirty, reached;
};

struct fluid_flow {
    uint32_t out_first, out_count; /* links */
    uint32_t in_first, in_count;
    double bound; /* 0: none */
    double left;  /* bytes, at since_ps */
    double rate, next_rate;
    uint64_t since_ps, end_ps; /* at this rate */
    uint64_t version;          /* of its entry in the heap: older ones are void */
    bool active, reached, fixed;
};

struct fluid {
    uint32_t port_count, group_count, link_count;
    struct engine_group *groups;
    struct fluid_link *links;
    struct fluid_flow *flows;
    uint32_t flow_capacity;
    uint64_t version; /* counts upwards, so that equal times go in the order of their computation */
    struct event_heap heap;
    uint32_t *dirty; /* links whose set of flows changed */
    uint32_t dirty_count;
    uint32_t *reached; /* links of the part that is solved again */
    uint32_t reached_count;
    uint32_t *part; /* flows of it */
    uint32_t part_count;
    uint32_t *bounded; /* those of the part that have a bound and no rate yet */
    uint32_t bounded_count;
};

struct fluid *fluid_create(const struct engine_config *config)
{
    struct fluid *f = calloc(1, sizeof(*f));

    assert(f != NULL);
    f->port_count = config->port_count;
    f->group_count = config->group_count;
    f->link_count = 2 * f->port_count;
    f->links = calloc(f->link_count + 1, sizeof(f->links[0]));
    f->dirty = calloc(f->link_count + 1, sizeof(f->dirty[0]));
    f->reached = calloc(f->link_count + 1, sizeof(f->reached[0]));
    f->groups = calloc(f->group_count + 1, sizeof(f->groups[0]));
    assert(f->links != NULL && f->dirty != NULL && f->reached != NULL && f->groups != NULL);
    for (uint32_t i = 0; i < f->link_count; i++)
        f->links[i].rate = config->ports[i % f->port_count].rate;
    for (uint32_t i = 0; i < f->group_count; i++)
        f->groups[i] = config->groups[i];
    return f;
}

void fluid_destroy(struct fluid *f)
{
    if (f == NULL)
        return;
    for (uint32_t i = 0; i < f->link_count; i++)
        free(f->links[i].flows);
    free(f->links);
    free(f->dirty);
    free(f->reached);
    free(f->groups);
    free(f->flows);
    free(f->part);
    free(f->bounded);
    event_heap_fini(&f->heap);
    free(f);
}

static void link_touch(struct fluid *f, uint32_t link)
{
    if (f->links[link].dirty)
        return;
    f->links[link].dirty = true;
    f->dirty[f->dirty_count++] = link;
}

static void link_add(struct fluid *f, uint32_t link, uint32_t flow)
{
    struct fluid_link *l = &f->links[link];

    if (l->count == l->capacity) {
        l->capacity = l->capacity > 0 ? 2 * l->capacity : 4;
        l->flows = realloc(l->flows, l->capacity * sizeof(l->flows[0]));
        assert(l->flows != NULL);
    }
    l->flows[l->count++] = flow;
    link_touch(f, link);
}

static void link_remove(struct fluid *f, uint32_t link, uint32_t flow)
{
    struct fluid_link *l = &f->links[link];
    uint32_t i = 0;

    while (l->flows[i] != flow)
        i++;
    l->flows[i] = l->flows[--l->count];
    link_touch(f, link);
}

typedef void link_fn(struct fluid *f, uint32_t link, uint32_t flow);

static void flow_links(struct fluid *f, uint32_t flow, link_fn *fn)
{
    struct fluid_flow s = f->flows[flow];

    for (uint32_t i = 0; i < s.out_count; i++)
        fn(f, s.out_first + i, flow);
    for (uint32_t i = 0; i < s.in_count; i++)
        fn(f, s.in_first + i, flow);
}

static void flows_grow(struct fluid *f, uint32_t flow)
{
    uint32_t before = f->flow_capacity;

    if (flow < before)
        return;
    while (f->flow_capacity <= flow)
        f->flow_capacity = f->flow_capacity > 0 ? 2 * f->flow_capacity : 64;
    f->flows = realloc(f->flows, f->flow_capacity * sizeof(f->flows[0]));
    f->part = realloc(f->part, f->flow_capacity * sizeof(f->part[0]));
    f->bounded = realloc(f->bounded, f->flow_capacity * sizeof(f->bounded[0]));
    assert(f->flows != NULL && f->part != NULL && f->bounded != NULL);
    for (uint32_t i = before; i < f->flow_capacity; i++)
        f->flows[i] = (struct fluid_flow){.active = false};
}

static void schedule_end(struct fluid *f, uint32_t flow)
{
    struct fluid_flow *s = &f->flows[flow];

    s->version = ++f->version;
    event_heap_push(&f->heap, (struct event){.time_ps = s->end_ps, .order = s->version, .record = flow});
}

static struct engine_group ports_of(const struct fluid *f, uint32_t end)
{
    if (end == ENGINE_NO_PORT)
        return (struct engine_group){0, 0};
    return end < f->port_count ? (struct engine_group){end, 1} : f->groups[end - f->port_count];
}

void fluid_start(struct fluid *f, uint64_t now_ps, uint32_t flow, uint32_t src, uint32_t dst, uint64_t bytes,
                 double rate_bound)
{
    flows_grow(f, flow);
    struct fluid_flow *s = &f->flows[flow];

    assert(!s->active && bytes > 0);
    struct engine_group out = ports_of(f, src), in = ports_of(f, dst);
    *s = (struct fluid_flow){.out_first = out.first_port,
                             .out_count = out.port_count,
                             .in_first = f->port_count + in.first_port,
                             .in_count = in.port_count,
                             .bound = rate_bound,
                             .left = (double)bytes,
                             .since_ps = now_ps,
                             .active = true};
    assert(s->out_count + s->in_count > 0);
    flow_links(f, flow, link_add);
}

static void link_reach(struct fluid *f, uint32_t link, uint32_t flow)
{
    struct fluid_link *l = &f->links[link];

    (void)flow;
    if (l->reached)
        return;
    l->reached = true;
    l->left = l->rate;
    l->unfixed = l->count;
    f->reached[f->reached_count++] = link;
}

/* Collects the links and flows that depend on one link. */
static void collect_part(struct fluid *f, uint32_t link)
{
    f->reached_count = f->part_count = f->bounded_count = 0;
    link_reach(f, link, 0);
    for (uint32_t i = 0; i < f->reached_count; i++) {
        struct fluid_link *l = &f->links[f->reached[i]];
        for (uint32_t k = 0; k < l->count; k++) {
            struct fluid_flow *s = &f->flows[l->flows[k]];
            if (s->reached)
                continue;
            s->reached = true;
            s->fixed = false;
            f->part[f->part_count++] = l->flows[k];
            if (s->bound > 0)
                f->bounded[f->bounded_count++] = l->flows[k];
            flow_links(f, l->flows[k], link_reach);
        }
    }
}

static void link_give(struct fluid *f, uint32_t link, uint32_t flow)
{
    struct fluid_link *l = &f->links[link];

    l->left -= f->flows[flow].next_rate;
    l->unfixed--;
}

static void flow_fix(struct fluid *f, uint32_t flow, double rate)
{
    f->flows[flow].fixed = true;
    f->flows[flow].next_rate = rate;
    flow_links(f, flow, link_give);
}

/* The lowest bound of flows without a rate, `share` when none is lower; forgets those that have one. */
static double lowest_bound(struct fluid *f, double share)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < f->bounded_count; i++) {
        const struct fluid_flow *s = &f->flows[f->bounded[i]];

        if (s->fixed)
            continue;
        f->bounded[kept++] = f->bounded[i];
        if (s->bound < share)
            share = s->bound;
    }
    f->bounded_count = kept;
    return share;
}

/* Gives that rate to those of the flows that have none, and if `bounded` are bounded by it.  Returns how many. */
static uint32_t fix_flows(struct fluid *f, const uint32_t *flows, uint32_t count, double rate, bool bounded)
{
    uint32_t fixed = 0;

    for (uint32_t i = 0; i < count; i++)
        if (!f->flows[flows[i]].fixed && (!bounded || f->flows[flows[i]].bound == rate)) {
            flow_fix(f, flows[i], rate);
            fixed++;
        }
    return fixed;
}

/* Progressive filling: the tightest link, or the lowest bound, decides next. */
static void solve_part(struct fluid *f)
{
    for (uint32_t open = f->part_count; open > 0;) {
        double share = -1, bound;
        uint32_t tightest = NO_LINK;

        for (uint32_t i = 0; i < f->reached_count; i++) {
            const struct fluid_link *l = &f->links[f->reached[i]];
            if (l->unfixed > 0 && (share < 0 || l->left / l->unfixed < share)) {
                share = l->left / l->unfixed;
                tightest = f->reached[i];
            }
        }
        bound = lowest_bound(f, share);
        if (bound < share)
            open -= fix_flows(f, f->bounded, f->bounded_count, bound, true);
        else
            open -= fix_flows(f, f->links[tightest].flows, f->links[tightest].count, share, false);
    }
}

/* Only the first flows of a part to end are put into the heap: then it is solved again. */
static void apply_rates(struct fluid *f, uint64_t now_ps)
{
    uint64_t first_ps = FLUID_NEVER;

    for (uint32_t i = 0; i < f->reached_count; i++)
        f->links[f->reached[i]].reached = f->links[f->reached[i]].dirty = false;
    for (uint32_t i = 0; i < f->part_count; i++) {
        struct fluid_flow *s = &f->flows[f->part[i]];
        s->reached = false;
        if (s->next_rate != s->rate) {
            s->left -= s->rate * (double)(now_ps - s->since_ps) * 1e-12;
            s->left = s->left > 0 ? s->left : 0;
            s->since_ps = now_ps;
            s->rate = s->next_rate;
            s->end_ps = now_ps + network_round_ps(s->left * 1e12 / s->rate);
            s->version = ++f->version;
        }
        first_ps = s->end_ps < first_ps ? s->end_ps : first_ps;
    }
    for (uint32_t i = 0; i < f->part_count; i++)
        if (f->flows[f->part[i]].end_ps == first_ps)
            schedule_end(f, f->part[i]);
}

/* The first entry that is not void. */
static const struct event *heap_head(struct fluid *f)
{
    const struct event *first;

    while ((first = event_heap_first(&f->heap)) != NULL &&
           (!f->flows[first->record].active || f->flows[first->record].version != first->order))
        event_heap_pop(&f->heap);
    return first;
}

uint64_t fluid_next_ps(struct fluid *f, uint64_t now_ps)
{
    /* Part by part: nodes that do the same at the same time share nothing. */
    for (uint32_t i = 0; i < f->dirty_count; i++) {
        if (!f->links[f->dirty[i]].dirty)
            continue;
        collect_part(f, f->dirty[i]);
        solve_part(f);
        apply_rates(f, now_ps);
    }
    f->dirty_count = 0;
    const struct event *first = heap_head(f);
    return first != NULL ? first->time_ps : FLUID_NEVER;
}

bool fluid_take(struct fluid *f, uint64_t now_ps, uint32_t *flow_out)
{
    const struct event *first = heap_head(f);

    if (first == NULL || first->time_ps > now_ps)
        return false;
    uint32_t flow = event_heap_pop(&f->heap).record;
    f->flows[flow].active = false;
    flow_links(f, flow, link_remove);
    *flow_out = flow;
    return true;
}
