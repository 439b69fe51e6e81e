/* Equal records that come and go: taken from blocks, given back to a free list. */
#ifndef BACKENDS_SIM_POOL_H
#define BACKENDS_SIM_POOL_H

#include <stddef.h>
#include <stdint.h>

struct pool_block;

struct pool {
    size_t record_bytes;
    void *free;                /* first of a list */
    struct pool_block *blocks; /* latest first */
};

void pool_init(struct pool *p, size_t record_bytes);
void *pool_take(struct pool *p); /* zeroed */
void pool_give(struct pool *p, void *record);
void pool_fini(struct pool *p); /* frees every record; safe on a zeroed pool */

#endif
