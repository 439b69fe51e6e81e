#include "backends/net/mesh.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "core/log.h"

/* Addresses as the bootstrap carries them: [member][its endpoint][peer]. */
static struct endpoint_address *address_at(struct endpoint_address *all, uint32_t peers, uint32_t endpoint,
                                           uint32_t peer)
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
                TRY(endpoint_connect(mine[i], peer, address_at(all, peers, peer, b->rank * count + i)));
    return bootstrap_barrier(b);
}

enum status mesh_connect(struct endpoint *const *mine, uint32_t count, struct bootstrap *b)
{
    uint64_t peers = (uint64_t)count * b->size;
    struct endpoint_address *own = calloc(count * peers, sizeof *own);
    struct endpoint_address *all = calloc(peers * peers, sizeof *all);
    enum status st = ST_MEMORY;

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

/* ---- barrier ---- */

#define BUSY_POLLS 1000 /* before it is taken for a long wait, with pauses */
#define PAUSE_NS 100000

struct waiter {
    struct bootstrap *b;
    enum status status;
    atomic_bool done;
};

static void *wait_for_all(void *arg)
{
    struct waiter *w = arg;

    w->status = bootstrap_barrier(w->b);
    atomic_store(&w->done, true);
    return NULL;
}

static enum status poll_all(struct endpoint *const *mine, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t id;
        uint32_t completed;

        TRY(endpoint_poll(mine[i], &id, 1, &completed));
    }
    return ST_OK;
}

enum status mesh_barrier(struct endpoint *const *mine, uint32_t count, struct bootstrap *b)
{
    struct waiter w = {.b = b};
    enum status st = ST_OK;
    pthread_t thread;

    for (uint32_t i = 0; i < count; i++)
        assert(endpoint_pending(mine[i]) == 0);
    if (pthread_create(&thread, NULL, wait_for_all, &w) != 0) {
        log_error("mesh: no thread to wait with");
        return ST_MEMORY;
    }
    for (uint32_t polls = 0; !atomic_load(&w.done) && st >= 0; polls++) {
        st = poll_all(mine, count);
        if (polls < BUSY_POLLS)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    pthread_join(thread, NULL);
    return st < 0 ? st : w.status;
}
