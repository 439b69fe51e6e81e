/* The send side of NICs: which message goes next, and when. */
#ifndef SIM_FABRIC_NIC_H
#define SIM_FABRIC_NIC_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/engine.h"

struct nic;
struct nic_message;

struct nic_model {
    uint64_t latency_ps; /* from the last byte's departure to its arrival */
    uint64_t message_ps; /* between the starts of two messages of a NIC */
    bool ordered;        /* messages to one destination one after the other */
};

/* All NICs of the cluster; NIC i stands at port first_port + i. */
struct nic_set {
    struct engine *engine;
    struct nic_model model;
    uint32_t first_port;
    uint32_t nic_count;
    struct nic *nics;
    struct nic_message *messages; /* pool; free ones are chained from first_free on */
    uint32_t message_capacity, first_free;
};

void nic_set_init(struct nic_set *s, struct engine *e, const struct nic_model *model, uint32_t first_port,
                  uint32_t nic_count);
void nic_set_fini(struct nic_set *s); /* safe on a zeroed set */

/* Queues a message from NIC `src` to NIC `dst`; fn(arg, a, b) when it has arrived.  A `dst` beyond the last NIC is a
 * destination of its own, whose link is that of NIC dst % nic_count, which stands for it. */
void nic_send(struct nic_set *s, uint32_t src, uint32_t dst, uint64_t bytes, engine_fn *fn, void *arg, uint64_t a,
              uint64_t b);

#endif
