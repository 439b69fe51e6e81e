#include <stdlib.h>
#include <string.h>

#include "backends/cuda/lower.h"

void *gpu_table_add(struct gpu_table *t, size_t item_bytes, const void *item)
{
    void *place;

    t->item_bytes = item_bytes;
    if (t->count == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 64;
        void *items = realloc(t->items, capacity * item_bytes);

        if (!items)
            return NULL;
        t->items = items;
        t->capacity = capacity;
    }
    place = (char *)t->items + t->count++ * item_bytes;
    return memcpy(place, item, item_bytes);
}
