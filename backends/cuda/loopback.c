#include "backends/cuda/loopback.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cuda/copier.h"

#define BOUNCE_BYTES (4u << 20)

struct flight {
    struct put put;
    net_slot slot;
    uint64_t ticket;
};

struct loopback {
    struct copier copier;
    uint8_t *bounce;        /* pinned */
    struct flight *flights; /* a ring of `depth` */
    uint64_t first, end;
    net_slot *bare; /* puts without bytes, whose flags are raised */
    uint32_t bare_count;
};

/* One process has all of it. */
struct loopback_address {
    uint8_t *window;
    uint64_t *flags;
};

static enum status tell(struct endpoint *e, cudaError_t error)
{
    return error == cudaSuccess ? ST_OK : endpoint_fail(e, ST_IO, NO_PEER, "%s", cudaGetErrorString(error));
}

/* ---- open and close ---- */

static enum status loopback_available(char *why, size_t why_bytes)
{
    (void)why, (void)why_bytes;
    return ST_OK;
}

static enum status loopback_open(struct endpoint *e)
{
    struct loopback *l = e->state;
    cudaError_t error;

    l->flights = calloc(e->config.depth, sizeof *l->flights);
    l->bare = calloc(e->config.depth, sizeof *l->bare);
    if (!l->flights || !l->bare)
        return endpoint_fail(e, ST_MEMORY, NO_PEER, "no memory for %u puts", e->config.depth);
    error = copier_open(&l->copier);
    if (error == cudaSuccess)
        error = cudaHostAlloc((void **)&l->bounce, BOUNCE_BYTES, cudaHostAllocPortable);
    return tell(e, error);
}

static void loopback_close(struct endpoint *e)
{
    struct loopback *l = e->state;

    copier_close(&l->copier); /* waits for puts that nobody waits for any more */
    cudaFreeHost(l->bounce);
    free(l->flights);
    free(l->bare);
}

static enum status loopback_address(struct endpoint *e, uint32_t peer, uint8_t own[ADDRESS_TRANSPORT_BYTES])
{
    struct loopback_address a = {e->config.window.base, e->config.flags.base};

    (void)peer;
    memcpy(own, &a, sizeof a);
    return ST_OK;
}

static enum status loopback_connect(struct endpoint *e, uint32_t peer, const uint8_t own[ADDRESS_TRANSPORT_BYTES])
{
    (void)e, (void)peer, (void)own; /* it stands in the peer's address */
    return ST_OK;
}

static struct loopback_address address_of(const struct endpoint *e, uint32_t peer)
{
    struct loopback_address a;

    memcpy(&a, e->peers[peer].address.own, sizeof a);
    return a;
}

/* ---- puts ---- */

static cudaError_t copy(struct loopback *l, uint8_t *to, const uint8_t *from, uint64_t bytes, uint64_t *ticket_out)
{
    cudaError_t error = cudaSuccess;

    for (uint64_t at = 0; at < bytes && error == cudaSuccess; at += BOUNCE_BYTES) {
        uint64_t part = bytes - at < BOUNCE_BYTES ? bytes - at : BOUNCE_BYTES;

        error = copier_copy(&l->copier, l->bounce, from + at, part, cudaMemcpyDeviceToHost);
        if (error == cudaSuccess)
            error = copier_copy(&l->copier, to + at, l->bounce, part, cudaMemcpyHostToDevice);
    }
    return error == cudaSuccess ? copier_issue(&l->copier, ticket_out) : error;
}

static void raise(const struct endpoint *e, const struct put *p)
{
    __atomic_store_n(&address_of(e, p->peer).flags[p->flag], p->value, __ATOMIC_RELEASE);
}

static enum status start(struct endpoint *e, const struct put *p, net_slot slot)
{
    struct loopback *l = e->state;
    uint64_t ticket;

    if (p->bytes == 0) {
        raise(e, p);
        l->bare[l->bare_count++] = slot;
        return ST_OK;
    }
    TRY(tell(e, copy(l, address_of(e, p->peer).window + p->to, (uint8_t *)e->config.window.base + p->from, p->bytes,
                     &ticket)));
    l->flights[l->end++ % e->config.depth] = (struct flight){.put = *p, .slot = slot, .ticket = ticket};
    return ST_OK;
}

static enum status loopback_put(struct endpoint *e, const struct put *puts, const net_slot *slots, uint32_t count,
                                uint32_t *started)
{
    for (*started = 0; *started < count; ++*started)
        TRY(start(e, &puts[*started], slots[*started]));
    return ST_OK;
}

static enum status loopback_poll(struct endpoint *e, uint32_t max)
{
    struct loopback *l = e->state;
    uint64_t completed = copier_completed(&l->copier);
    uint32_t done = 0;

    for (; done < max && l->bare_count > 0; done++)
        endpoint_complete(e, l->bare[--l->bare_count]);
    for (; done < max && l->first < l->end; done++, l->first++) {
        const struct flight *f = &l->flights[l->first % e->config.depth];

        if (f->ticket > completed)
            break;
        raise(e, &f->put);
        endpoint_complete(e, f->slot);
    }
    return ST_OK;
}

static const struct option no_options[] = {{0}};

const struct transport cuda_loopback_transport = {
    .name = "loopback",
    .title = "GPUs of one process",
    .options = no_options,
    .state_size = sizeof(struct loopback),
    .in_process = true,
    .gpu = true,
    .available = loopback_available,
    .open = loopback_open,
    .address = loopback_address,
    .connect = loopback_connect,
    .put = loopback_put,
    .poll = loopback_poll,
    .close = loopback_close,
};
