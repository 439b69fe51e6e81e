/* An RDMA device, opened for one endpoint: port, GID, and the two memories registered. */
#ifndef BACKENDS_NET_VERBS_DEVICE_H
#define BACKENDS_NET_VERBS_DEVICE_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "backends/net/transport.h"
#include "core/parse/option.h"

#define VERBS_QPS_MAX 8

struct verbs_options {
    char device[OPTION_TEXT_BYTES];
    char address[OPTION_TEXT_BYTES];
    uint64_t port;
    uint64_t qps; /* a peer */
    uint64_t ack_timeout_ps;
    bool relaxed;
};

struct verbs_device {
    struct ibv_context *context;
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    struct ibv_gid_entry gid;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *window, *flags;
};

enum status verbs_device_available(char *why, size_t why_bytes);

/* Fills the keys and bases of e->self. */
enum status verbs_device_open(struct endpoint *e, const struct verbs_options *o, struct verbs_device *d);
void verbs_device_close(struct verbs_device *d); /* safe on whatever open left behind */

#endif
