#include "backends/net/mesh.h"

#include <assert.h>
#include <stdlib.h>

#include "core/log.h"

/* Addresses as the bootstrap carries them: [member][its endpoint][peer]. */
static struct endpoint_address *address_at(struct endpoint_address *all, uint32_t peers,
                                           uint32_t endpoint, uint32_t peer)
{
    return &all[(uint64_t)endpoint * peers + peer];
}

static enum status gather(struct endpoint *const *mine, uint32_t count, struct bootstrap *b,
                          struct endpoint_address *own, struct endpoint_address *all)
{
    uint32_t peers = count * b->size;

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t peer = 0; peer < peers; peer++)
            if (peer / count != b->rank)
                TRY(endpoint_address(mine[i], peer, address_at(own, peers, i, peer)));
    return bootstrap_allgather(b, own, (size_t)count * peers * sizeof *own, all);
}

static enum status connect_all(struct endpoint *const *mine, uint32_t count, struct bootstrap *b,
                               struct endpoint_address *all)
{
    uint32_t peers = count * b->size;

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t peer = 0; peer < peers; peer++)
            if (peer / count != b->rank)
                TRY(endpoint_connect(mine[i], peer,
                                     address_at(all, peers, peer, b->rank * count + i)));
    return bootstrap_barrier(b);
}

enum status mesh_connect(struct endpoint *const *mine, uint32_t count, struct bootstrap *b)
{
    uint64_t                 peers = (uint64_t)count * b->size;
    struct endpoint_address *own = calloc(count * peers, sizeof *own);
    struct endpoint_address *all = calloc(peers * peers, sizeof *all);
    enum status              st = ST_MEMORY;

    if (own && all) {
        for (uint32_t i = 0; i < count; i++)
            assert(mine[i]->config.peers == peers && mine[i]->config.index == b->rank * count + i);
        st = gather(mine, count, b, own, all);
        if (st >= 0)
            st = connect_all(mine, count, b, all);
    } else {
        log_error("mesh: no memory for the addresses of %u endpoints", (uint32_t)peers);
    }
    free(own);
    free(all);
    return st;
}
