/* The links of a cluster, on the engine: one NVLink port per GPU, nic.per_gpu NIC ports per GPU.
 *
 * NVLink.  A stream of stores occupies the sender's out link and the receiver's in link; the switch
 *   in between never limits.  A multicast leaves once and takes the in link of every GPU of the
 *   node, the sender's too, all at the pace of the slowest.  A reduction by the switch is the same backwards: the bytes
 *   leave every GPU of the node, the reader too, and enter the reader once.
 * NIC.  Networks between nodes are non-blocking: only NICs limit.  NIC i of a GPU talks to NIC i of
 *   any other; a GPU hands its messages to its NICs in turn.  A NIC starts a message nic.message_ps
 *   after the one before or later, has two in flight at once (fabric_nic.c says why), and serves
 *   the destinations it has messages for in turn.  On an RC NIC the messages of one NIC to one
 *   destination are sent one after the other and arrive in order, on SRD in any order. */
#ifndef SIM_FABRIC_H
#define SIM_FABRIC_H

#include <stdint.h>

#include "core/backend.h"
#include "core/machine/machine.h"
#include "core/status.h"
#include "core/world.h"
#include "sim/engine.h"

struct fabric;

/* `m` is borrowed until fabric_destroy(); it must hold `w` (machine_holds).  Creates the engine of
 * this process.
 *
 * Only the first `nodes` nodes have links: all, or one that stands for all, which do the same at the same time.  What
 * that one puts to a node further on then also is what it gets from a node before: it leaves by its own NICs and
 * enters by them.  Not with SimGrid. */
enum status fabric_create(const struct machine *m, struct world w, uint32_t nodes, enum engine_api api,
                          struct fabric **out);
struct engine *fabric_engine(struct fabric *f);
void fabric_destroy(struct fabric *f); /* NULL is fine */

/* In each case fn(arg, a, b) is called when the last byte has arrived; 0 bytes take a latency. */

/* Bytes stored by `src` into `dst`, or read by `dst` from `src`, both on one node.  rate_bound:
 * what the CTA at work can do, bytes/s; 0: no bound. */
void fabric_nvlink(struct fabric *f, uint32_t src, uint32_t dst, uint64_t bytes, double rate_bound, engine_fn *fn,
                   void *arg, uint64_t a, uint64_t b);

/* Bytes stored by `src` into every GPU of its node; the machine must have nvlink.multicast. */
void fabric_multicast(struct fabric *f, uint32_t src, uint64_t bytes, double rate_bound, engine_fn *fn, void *arg,
                      uint64_t a, uint64_t b);

/* Bytes that `dst` loads as the sum over every GPU of its node, so many from each; the machine must have
 * nvlink.reduce. */
void fabric_reduce(struct fabric *f, uint32_t dst, uint64_t bytes, double rate_bound, engine_fn *fn, void *arg,
                   uint64_t a, uint64_t b);

/* Bytes that `dst` reads from several GPUs of its node at once, bytes_from[gpu] each (the own entry does not
 * count), as one flow.  The reader's in link limits it; the out links of the sources do not: rows are read
 * from everywhere, and a flow from each source would tie all links of the node into one system. */
void fabric_gather(struct fabric *f, uint32_t dst, const uint64_t *bytes_from, double rate_bound, engine_fn *fn,
                   void *arg, uint64_t a, uint64_t b);

/* One message from `src` to `dst` on another node, posted now. */
void fabric_put(struct fabric *f, uint32_t src, uint32_t dst, uint64_t bytes, engine_fn *fn, void *arg, uint64_t a,
                uint64_t b);

enum fabric_link { FABRIC_NVLINK_OUT, FABRIC_NVLINK_IN, FABRIC_NIC_OUT, FABRIC_NIC_IN };

/* Bytes that have passed a rank's link by now. */
struct fabric_use {
    enum fabric_link link;
    uint32_t rank;
    uint64_t bytes, begin_ps;
};

typedef void fabric_watch_fn(void *arg, const struct fabric_use *use);

/* Has fn called for every link that a flow has passed, when the flow ends.  What fabric_gather() reads shows at
 * the reader's link alone. */
void fabric_watch(struct fabric *f, fabric_watch_fn *fn, void *arg);

/* Use of each class of links up to now.  Returns how many rows it wrote. */
uint32_t fabric_links(const struct fabric *f, struct link_result out[RESULT_LINKS_MAX]);

#endif
