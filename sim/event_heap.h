/* A binary heap of things to happen, by time and then by order number: no two entries are equal, so
 * the order of removal depends on nothing but the entries. */
#ifndef SIM_EVENT_HEAP_H
#define SIM_EVENT_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct event {
    uint64_t time_ps;
    uint64_t order;  /* unique */
    uint32_t record; /* the owner's business */
};

struct event_heap {
    struct event *events;
    uint32_t count, capacity;
};

void event_heap_push(struct event_heap *h, struct event e);
struct event event_heap_pop(struct event_heap *h); /* the heap must not be empty */
void event_heap_fini(struct event_heap *h);

static inline const struct event *event_heap_first(const struct event_heap *h)
{
    return h->count > 0 ? &h->events[0] : NULL;
}

#endif
