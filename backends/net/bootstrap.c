#include "backends/net/bootstrap.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"

enum status bootstrap_allgather(struct bootstrap *b, const void *mine, size_t bytes, void *all)
{
    return b->ops->allgather(b, mine, bytes, all);
}

enum status bootstrap_barrier(struct bootstrap *b)
{
    uint8_t *all = calloc(b->size, 1);
    enum status st;

    if (!all) {
        log_error("bootstrap: no memory for %u members", b->size);
        return ST_MEMORY;
    }
    st = bootstrap_allgather(b, &(uint8_t){1}, 1, all);
    free(all);
    return st;
}

void bootstrap_close(struct bootstrap *b)
{
    if (b->ops)
        b->ops->close(b);
    memset(b, 0, sizeof *b);
}
