/* One member of a test of a transport: an endpoint with its window and flags, and calls that wait.
 *
 * Members are processes, or threads where the transport lives in one process.  What goes wrong in a
 * member ends the process with exit code 1 and a line on stderr. */
#ifndef NET_MEMBER_H
#define NET_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/net/bootstrap.h"
#include "backends/net/transport.h"

/* A transport with some of its options. */
struct setting {
    const struct transport *transport;
    const char *options; /* "name=value name=value", "" for the defaults */
    bool gpu;            /* host memory that is said to be a GPU's, with a dma-buf that is none */
};

struct member {
    const struct setting *setting;
    struct bootstrap *b;
    struct endpoint *e;
    uint8_t *window;
    uint64_t *flags;
    uint64_t window_bytes;
    uint64_t completed; /* puts, since it was opened */
};

#define WAIT_S 60 /* for what has to happen; slow machines run many times slower than ours */

void must(bool ok, const char *what, ...) __attribute__((format(printf, 2, 3)));

/* How many times slower than usual things may be, and how much smaller: sanitizers, an emulated machine. */
bool slow_machine(void);

/* Opens an endpoint of window_bytes and `flags` flags, as member b->rank of b->size.  Options are parsed
 * into storage that lives as long as the member. */
struct member *member_open(const struct setting *s, struct bootstrap *b, uint64_t window_bytes, uint32_t flags,
                           uint32_t depth, double timeout_s);
void member_connect(struct member *m); /* everybody to everybody */
void member_close(struct member *m);

/* ST_OK: all started, polling where the queue is full.  Else the endpoint's error. */
enum status member_put(struct member *m, const struct put *puts, uint32_t count);
enum status member_poll(struct member *m);
void member_put_well(struct member *m, struct put p); /* which has to work */
void member_await_flag(struct member *m, uint32_t flag, uint64_t value);
void member_drain(struct member *m); /* until no own put is on its way */
/* Polls until everybody has come here, for others may need this end's progress. */
void member_barrier(struct member *m);

/* Puts to `peer` until an error comes, which has to be within 10 s; returns it. */
enum status member_put_until_error(struct member *m, uint32_t peer);

/* Bytes that say where they stand, different for each `seed`. */
void pattern_fill(uint8_t *at, uint64_t bytes, uint64_t seed);
bool pattern_holds(const uint8_t *at, uint64_t bytes, uint64_t seed);
bool all_bytes_are(const uint8_t *at, uint64_t bytes, uint8_t value);

#endif
