/* The transport inside one process: the sender copies.  It is the example to copy a transport from, and
 * with `reorder` and `delay_max` the hostile one: what is right on it needs no order between puts. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backends/net/transports.h"
#include "core/clock.h"

struct loopback_options {
    bool reorder;
    uint64_t delay_max_ps;
    uint64_t seed;
};

static const struct option options[] = {
    {"reorder", OPTION_BOOL, offsetof(struct loopback_options, reorder), "false", 0, 0, NULL,
     "puts overtake each other"},
    {"delay_max", OPTION_TIME, offsetof(struct loopback_options, delay_max_ps), "0ns", 0, 60e12, NULL,
     "each put waits for up to this long, evenly spread"},
    {"seed", OPTION_COUNT, offsetof(struct loopback_options, seed), "1", 0, 0, NULL, "of delays and order"},
    {.name = NULL},
};

struct flight {
    struct put put;
    net_slot slot;
    uint64_t due_ns;
};

struct loopback {
    uint64_t id; /* 0: not open */
    struct endpoint *next_open;
    struct flight *flights; /* a ring of `depth` */
    uint64_t first, end;
    uint64_t random;
};

struct loopback_address {
    uint64_t id;
};

/* Deliveries read, open and close write: no put lands in an endpoint that has been closed. */
static pthread_rwlock_t open_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct endpoint *open_first;
static uint64_t ids;

static uint64_t next_random(struct loopback *l)
{
    l->random = l->random * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
    return l->random >> 33;
}

/* ---- open and close ---- */

static enum status loopback_available(char *why, size_t why_bytes)
{
    (void)why;
    (void)why_bytes;
    return ST_OK;
}

static enum status loopback_open(struct endpoint *e)
{
    const struct loopback_options *o = e->config.options;
    struct loopback *l = e->state;

    l->flights = calloc(e->config.depth, sizeof *l->flights);
    if (!l->flights)
        return endpoint_fail(e, ST_MEMORY, NO_PEER, "no memory for %u puts", e->config.depth);
    l->random = o->seed * 0x9e3779b97f4a7c15u + e->config.index;
    pthread_rwlock_wrlock(&open_lock);
    l->id = ++ids;
    l->next_open = open_first;
    open_first = e;
    pthread_rwlock_unlock(&open_lock);
    e->self.window_key = l->id;
    e->self.flags_key = l->id;
    return ST_OK;
}

static void loopback_close(struct endpoint *e)
{
    struct loopback *l = e->state;

    if (l->id) {
        struct endpoint **at = &open_first;

        pthread_rwlock_wrlock(&open_lock);
        while (*at != e)
            at = &((struct loopback *)(*at)->state)->next_open;
        *at = l->next_open;
        pthread_rwlock_unlock(&open_lock);
    }
    free(l->flights);
}

/* NULL: closed.  Under open_lock. */
static struct endpoint *find_open(uint64_t id)
{
    struct endpoint *e = open_first;

    while (e && ((struct loopback *)e->state)->id != id)
        e = ((struct loopback *)e->state)->next_open;
    return e;
}

static enum status loopback_address(struct endpoint *e, uint32_t peer, uint8_t own[ADDRESS_TRANSPORT_BYTES])
{
    struct loopback_address a = {.id = ((struct loopback *)e->state)->id};

    (void)peer;
    memcpy(own, &a, sizeof a);
    return ST_OK;
}

static uint64_t peer_id(const struct endpoint *e, uint32_t peer)
{
    struct loopback_address a;

    memcpy(&a, e->peers[peer].address.own, sizeof a);
    return a.id;
}

static enum status loopback_connect(struct endpoint *e, uint32_t peer, const uint8_t own[ADDRESS_TRANSPORT_BYTES])
{
    bool there;

    (void)own;
    pthread_rwlock_rdlock(&open_lock);
    there = find_open(peer_id(e, peer)) != NULL;
    pthread_rwlock_unlock(&open_lock);
    return there ? ST_OK : endpoint_fail(e, ST_IO, peer, "refused: closed, or in another process");
}

/* ---- puts ---- */

static enum status loopback_put(struct endpoint *e, const struct put *puts, const net_slot *slots, uint32_t count,
                                uint32_t *started)
{
    const struct loopback_options *o = e->config.options;
    struct loopback *l = e->state;
    uint64_t now = o->delay_max_ps ? clock_now_ns() : 0;

    for (uint32_t i = 0; i < count; i++, l->end++) {
        uint64_t delay_ns = o->delay_max_ps ? next_random(l) % (o->delay_max_ps / 1000 + 1) : 0;

        l->flights[l->end % e->config.depth] =
            (struct flight){.put = puts[i], .slot = slots[i], .due_ns = now + delay_ns};
    }
    *started = count;
    return ST_OK;
}

/* Under open_lock. */
static enum status deliver(struct endpoint *e, const struct put *p)
{
    const struct endpoint_address *a = &e->peers[p->peer].address;
    struct endpoint *to = find_open(peer_id(e, p->peer));

    if (!to)
        return endpoint_fail(e, ST_IO, p->peer, "gone: it has closed its endpoint");
    if (a->window_key != to->self.window_key || a->flags_key != to->self.flags_key)
        return endpoint_fail(e, ST_IO, p->peer, "refused a put: wrong key");
    if (p->bytes > 0)
        memcpy((uint8_t *)to->config.window.base + p->to, (const uint8_t *)e->config.window.base + p->from, p->bytes);
    endpoint_raise(to, p->flag, p->value);
    return ST_OK;
}

/* The next to deliver stands first; any of them may be moved there. */
static void choose(struct endpoint *e)
{
    const struct loopback_options *o = e->config.options;
    struct loopback *l = e->state;
    struct flight *first = &l->flights[l->first % e->config.depth], *other;
    struct flight swapped = *first;

    if (!o->reorder)
        return;
    other = &l->flights[(l->first + next_random(l) % (l->end - l->first)) % e->config.depth];
    *first = *other;
    *other = swapped;
}

static enum status loopback_poll(struct endpoint *e, uint32_t max)
{
    struct loopback *l = e->state;

    for (uint32_t i = 0; i < max && l->first < l->end; i++) {
        struct flight *f;
        enum status st;

        choose(e);
        f = &l->flights[l->first % e->config.depth];
        if (f->due_ns > 0 && f->due_ns > clock_now_ns())
            break;
        pthread_rwlock_rdlock(&open_lock);
        st = deliver(e, &f->put);
        pthread_rwlock_unlock(&open_lock);
        TRY(st);
        l->first++;
        endpoint_complete(e, f->slot);
    }
    return ST_OK;
}

const struct transport loopback_transport = {
    .name = "loopback",
    .title = "endpoints of one process, for tests: may delay and reorder puts",
    .options = options,
    .options_size = sizeof(struct loopback_options),
    .state_size = sizeof(struct loopback),
    .in_process = true,
    .available = loopback_available,
    .open = loopback_open,
    .address = loopback_address,
    .connect = loopback_connect,
    .put = loopback_put,
    .poll = loopback_poll,
    .close = loopback_close,
};
