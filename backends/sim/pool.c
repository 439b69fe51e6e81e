#include "backends/sim/pool.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"

#define RECORDS_PER_BLOCK 512

struct pool_block {
    struct pool_block *next;
    max_align_t records[];
};

void pool_init(struct pool *p, size_t record_bytes)
{
    const size_t unit = sizeof(max_align_t);

    *p = (struct pool){.record_bytes = (record_bytes + unit - 1) / unit * unit};
}

/* A run checked its memory before it began; if the estimate was wrong there is no result to save.
 */
static void add_block(struct pool *p)
{
    struct pool_block *b = malloc(sizeof *b + RECORDS_PER_BLOCK * p->record_bytes);

    if (!b) {
        log_error("sim: out of memory while running");
        abort();
    }
    b->next = p->blocks;
    p->blocks = b;
    for (size_t i = RECORDS_PER_BLOCK; i-- > 0;)
        pool_give(p, (char *)b->records + i * p->record_bytes);
}

void *pool_take(struct pool *p)
{
    void *record;

    if (!p->free)
        add_block(p);
    record = p->free;
    memcpy(&p->free, record, sizeof p->free);
    return memset(record, 0, p->record_bytes);
}

void pool_give(struct pool *p, void *record)
{
    memcpy(record, &p->free, sizeof p->free);
    p->free = record;
}

void pool_fini(struct pool *p)
{
    while (p->blocks) {
        struct pool_block *next = p->blocks->next;

        free(p->blocks);
        p->blocks = next;
    }
    p->free = NULL;
}
