/* Reliable connected queue pairs, a few to each peer. */
#ifndef BACKENDS_NET_VERBS_QUEUE_H
#define BACKENDS_NET_VERBS_QUEUE_H

#include "backends/net/verbs_device.h"

#define VERBS_WRS 256 /* send requests of a queue pair on their way, at most */

struct verbs_queue {
    struct ibv_qp *qp;
    uint32_t psn, inline_bytes, wrs_max;
    uint32_t wrs; /* on their way */
};

/* One end's queue pairs to one peer, byte for byte. */
struct verbs_address {
    union ibv_gid gid;
    uint16_t lid;
    uint8_t mtu; /* enum ibv_mtu */
    uint8_t qps;
    uint32_t number[VERBS_QPS_MAX], psn[VERBS_QPS_MAX];
};

/* On an error errno says why. */
bool verbs_queue_open(struct verbs_queue *q, const struct verbs_device *d, uint8_t port);
bool verbs_queue_connect(struct verbs_queue *q, const struct verbs_device *d, const struct verbs_options *o,
                         const struct verbs_address *peer, uint32_t i);
void verbs_queue_close(struct verbs_queue *q);

#endif
