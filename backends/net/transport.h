/* Transports: how bytes get from a rank to a rank on another node.  backends/net/transports.c lists them;
 * docs/transports.md explains each one's choices and how to add one.
 *
 * Endpoint   a rank's end of a transport.  It shows its peers two pieces of memory: the window, into
 *            which they put bytes, and the flags, 64-bit words that puts raise.
 * Put        bytes from the own window into a peer's, then one of the peer's flags gets a value.
 *            The flag changes only after that put's own bytes are there: who reads the new value
 *            (load acquire) reads the bytes.  Nothing else is ordered: not two puts, and not a put's
 *            bytes among themselves.  Each put arrives once.
 * Completion the put's bytes and its flag are at the peer, and the source may be overwritten.  A put
 *            that is started afterwards does not overtake it.  Completions come in any order, and
 *            may have to wait for a poll of the peer.
 * Flags      are monotonic: a put's value is larger than what the flag holds, and no two puts to one
 *            flag are on their way at a time.
 *
 * Several endpoints may live in one process.  An endpoint is used by one thread at a time; that thread
 * has to keep polling until the others are done (mesh_barrier()), for some transports deliver what has
 * arrived inside endpoint_poll().  No call blocks: put and poll return at once, open, connect and close
 * after seconds at most.
 *
 * Errors are described once, in endpoint_error(), with the peer's name where there is one, and stay:
 * every later put or poll returns the same status.  ST_IO: peer gone, refused, wrong key, device error;
 * ST_HANG: puts to a peer were not completed for timeout_ps; ST_ENVIRONMENT: a device or provider
 * is missing; ST_INPUT: an option's value does not fit what was found. */
#ifndef BACKENDS_NET_TRANSPORT_H
#define BACKENDS_NET_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/parse/option.h"
#include "core/status.h"

struct transport;
struct endpoint;

/* ---- for users ---- */

/* Owned by the caller, who keeps it until the endpoint is closed. */
struct net_memory {
    void *base;
    uint64_t bytes;
    bool gpu;               /* base is a device address; only transports with `gpu` take it */
    int dmabuf;             /* GPU memory: a dma-buf that covers it, or -1: the peer-memory module has to know it */
    uint64_t dmabuf_offset; /* of base in the dma-buf */
};

#define ENDPOINT_NAME_BYTES 64

struct endpoint_config {
    uint32_t index, peers;          /* own number among `peers` endpoints */
    char name[ENDPOINT_NAME_BYTES]; /* as others' reports shall say it: "rank 3 on node1" */
    struct net_memory window;
    struct net_memory flags; /* 8-byte aligned, zeroed; host memory for all transports but those with `gpu` */
    uint32_t depth;          /* puts on their way at a time, all peers together; at least 1 */
    uint64_t timeout_ps;     /* a peer that completes nothing for so long has failed */
    const void *options;     /* the transport's own, filled from its option table */
};

#define ADDRESS_TRANSPORT_BYTES 192

/* What one endpoint tells one other, byte for byte. */
struct endpoint_address {
    char transport[16];
    char name[ENDPOINT_NAME_BYTES];
    uint64_t window_bytes, window_base, window_key;
    uint64_t flag_count, flags_base, flags_key;
    uint8_t own[ADDRESS_TRANSPORT_BYTES]; /* the transport's */
};

struct put {
    uint32_t peer;
    uint32_t flag;            /* of the peer */
    uint64_t value;           /* that the flag gets */
    uint64_t from, to, bytes; /* offsets into the own window and the peer's; bytes may be 0 */
    uint64_t id;              /* comes back with the completion */
};

/* NULL: not listed. */
const struct transport *transport_find(const char *name);

/* ST_OK, or ST_ENVIRONMENT with the reason in `why`. */
enum status transport_available(const struct transport *t, char *why, size_t why_bytes);

/* On an error *out is NULL and `why` says what and where. */
enum status endpoint_open(const struct transport *t, const struct endpoint_config *c, struct endpoint **out, char *why,
                          size_t why_bytes);

/* What `peer` has to be told, by any means (mesh.h), for its endpoint_connect(). */
enum status endpoint_address(struct endpoint *e, uint32_t peer, struct endpoint_address *out);
enum status endpoint_connect(struct endpoint *e, uint32_t peer, const struct endpoint_address *a);

/* Puts and polls begin once all sides have connected: a barrier says so. */

/* Starts puts in any order; *started says how many of the first ones.  ST_BUSY: not all, the queue is
 * full: poll, then offer the rest again. */
enum status endpoint_put(struct endpoint *e, const struct put *puts, uint32_t count, uint32_t *started);

/* Progress in both directions.  Up to `max` ids of completed puts. */
enum status endpoint_poll(struct endpoint *e, uint64_t *ids, uint32_t max, uint32_t *count);

uint32_t endpoint_pending(const struct endpoint *e);  /* puts started and not completed */
const char *endpoint_error(const struct endpoint *e); /* "" before the first one */

/* Puts on their way may or may not arrive.  NULL is nothing. */
void endpoint_close(struct endpoint *e);

/* ---- for transports ---- */

/* Where a put stands among those on their way: below the endpoint's depth. */
typedef uint32_t net_slot;

struct transport {
    const char *name;             /* as scenarios write it */
    const char *title;            /* one line for `list` */
    const struct option *options; /* its own keys; last row has no name */
    size_t options_size;
    size_t state_size; /* endpoint.c allocates it, zeroed, as e->state */
    bool in_process;   /* endpoints have to live in one process */
    bool gpu;          /* takes GPU memory, for window and flags */

    enum status (*available)(char *why, size_t why_bytes);
    /* Registers both memories and fills the keys and bases of e->self.  May stop half-way: close() follows. */
    enum status (*open)(struct endpoint *e);
    enum status (*address)(struct endpoint *e, uint32_t peer, uint8_t own[ADDRESS_TRANSPORT_BYTES]);
    enum status (*connect)(struct endpoint *e, uint32_t peer, const uint8_t own[ADDRESS_TRANSPORT_BYTES]);
    /* Checked puts to connected peers; slots[i] is puts[i]'s until endpoint_complete().  Else as
     * endpoint_put(). */
    enum status (*put)(struct endpoint *e, const struct put *puts, const net_slot *slots, uint32_t count,
                       uint32_t *started);
    /* Progress; calls endpoint_complete() for puts that are complete, at most `max` times. */
    enum status (*poll)(struct endpoint *e, uint32_t max);
    /* Safe on whatever open() left behind. */
    void (*close)(struct endpoint *e);
};

/* In the order in which `list` shows them; ends with NULL. */
extern const struct transport *const transport_list[];

struct endpoint_peer {
    bool connected;
    struct endpoint_address address;
    uint32_t pending;     /* puts */
    uint64_t progress_ns; /* since when none has been completed, as the clock is looked at; 0: one
                             was, or the first one was started, since that look */
};

struct pending_put {
    uint64_t id;
    uint32_t peer;
};

struct endpoint {
    const struct transport *transport;
    struct endpoint_config config;
    struct endpoint_address self;
    void *state;
    struct endpoint_peer *peers;
    struct pending_put *slots; /* by net_slot */
    net_slot *free_slots;
    uint32_t free_count;
    uint64_t *completed; /* where endpoint_complete() puts ids during a poll */
    uint32_t completed_count;
    uint32_t polls; /* since somebody looked at the clock */
    enum status failed;
    char error[512];
};

/* The put in `slot` is complete; only within poll(). */
void endpoint_complete(struct endpoint *e, net_slot slot);

/* Describes an error once; returns `st`.  peer: NO_PEER, or its name comes first. */
#define NO_PEER UINT32_MAX
enum status endpoint_fail(struct endpoint *e, enum status st, uint32_t peer, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* What a receiving transport does for a put whose bytes are there.  False: no such flag. */
bool endpoint_raise(struct endpoint *e, uint64_t flag, uint64_t value);

#endif
