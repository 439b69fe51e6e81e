#include "sim/event_heap.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

static bool event_before(const struct event *a, const struct event *b)
{
    return a->time_ps != b->time_ps ? a->time_ps < b->time_ps : a->order < b->order;
}

static void event_heap_grow(struct event_heap *h)
{
    h->capacity = h->capacity > 0 ? 2 * h->capacity : 1024;
    h->events = realloc(h->events, h->capacity * sizeof(h->events[0]));
    assert(h->events != NULL);
}

void event_heap_push(struct event_heap *h, struct event e)
{
    if (h->count == h->capacity)
        event_heap_grow(h);
    uint32_t i = h->count++;
    while (i > 0 && event_before(&e, &h->events[(i - 1) / 2])) {
        h->events[i] = h->events[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->events[i] = e;
}

struct event event_heap_pop(struct event_heap *h)
{
    assert(h->count > 0);
    struct event first = h->events[0];
    struct event last = h->events[--h->count];
    uint32_t i = 0;
    for (uint32_t child = 1; child < h->count; child = 2 * i + 1) {
        if (child + 1 < h->count && event_before(&h->events[child + 1], &h->events[child]))
            child++;
        if (!event_before(&h->events[child], &last))
            break;
        h->events[i] = h->events[child];
        i = child;
    }
    h->events[i] = last;
    return first;
}

void event_heap_fini(struct event_heap *h)
{
    free(h->events);
    *h = (struct event_heap){0};
}
