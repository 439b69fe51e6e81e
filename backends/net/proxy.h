/* The proxy: a thread that takes put commands out of ranks' queues, hands them to their endpoints and says when
 * they are complete.  One implementation for every transport and for every kind of queue: a FIFO of threads, a
 * GPU's in pinned memory.
 *
 * It waits for commands and completions, never for a flag of the program, so a full queue always drains.  A lane
 * is a rank's queue and its endpoint; the thread is the one that uses the endpoints of its lanes. */
#ifndef BACKENDS_NET_PROXY_H
#define BACKENDS_NET_PROXY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/net/transport.h"
#include "core/statistics/histogram.h"

/* What a lane drains; called by the proxy's thread alone. */
struct proxy_source {
    /* The next command; its id comes back in complete().  False: there is none now. */
    bool (*take)(void *owner, struct put *out);
    void (*complete)(void *owner, uint64_t id);
    /* Looks for flags that peers' puts have raised; true when there were any.  NULL: who waits looks itself.
     * Between the completion of a put and its complete() every lane is looked at once more, so that in one
     * process nothing is in flight once complete() has been called. */
    bool (*look)(void *owner);
};

/* How the thread passes its time when there is nothing to do; NULL: it spins, offering the processor. */
struct proxy_rest {
    uint32_t (*listen)(void *owner);                         /* before it looks for something to do */
    void (*sleep)(void *owner, uint32_t heard, uint64_t ns); /* ends early when something has come since */
};

struct proxy_lane_config {
    struct endpoint *endpoint; /* stays the caller's, who leaves it alone while the proxy runs */
    const struct proxy_source *source;
    void *owner;
};

struct proxy_config {
    const struct proxy_lane_config *lanes;
    uint32_t lane_count;
    uint32_t depth; /* puts on their way at a time, a lane: the endpoints' depth */
    int numa_node;  /* whose processors the thread keeps to; -1: any */
    const struct proxy_rest *rest;
    void *rest_owner;
    bool alone; /* all peers live in this process: nothing comes unless it sends */
};

struct proxy_counters {
    uint64_t puts, bytes;          /* completed */
    uint64_t depth_sum, depth_max; /* puts on their way when one more was started, itself included */
    struct histogram latency;      /* from taking a command to its completion */
};

struct proxy;

#define PROXY_THREAD_NAME "mkernel-proxy" /* as top -H shows it */

/* NULL: out of memory, or no thread could be started. */
struct proxy *proxy_start(const struct proxy_config *c);

/* What was pushed before is still delivered, unless a lane fails.  With `now` it ends at once instead.  *counters
 * may be NULL.  NULL is nothing. */
void proxy_stop(struct proxy *p, bool now, struct proxy_counters *counters);

/* While it runs. */
uint64_t proxy_completed(const struct proxy *p); /* puts; moves as long as there is progress */
/* ST_OK, or why the thread has ended before its time; *lane_out says whose endpoint_error() has the words. */
enum status proxy_failed(const struct proxy *p, uint32_t *lane_out);

/* The NUMA node of a PCI device, "0000:18:00.0"; -1: not known, or there is only one. */
int proxy_numa_of_pci(const char *address);

#endif
