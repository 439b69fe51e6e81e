/* What the builders of the algorithms share: which part of the world is simulated, on which ports,
 * and how the bytes are cut. */
#ifndef SIM_NCCL_FLOW_BUILD_H
#define SIM_NCCL_FLOW_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/machine/machine.h"
#include "sim/nccl.h"
#include "sim/pipeline.h"

/* How a channel's bytes are cut into loops of equal slices. */
struct nccl_flow_cut {
    double loops; /* the last one may be a part of one */
    uint64_t slice_bytes;
    uint32_t slices; /* a chunk has */
    uint32_t slots;  /* slices that fit into a connection's buffer */
};

struct nccl_flow {
    const struct machine *machine;
    const struct nccl_comm *comm;
    enum collective what;
    enum nccl_algorithm algorithm;
    enum nccl_protocol protocol;
    uint64_t bytes;
    uint32_t channels;      /* that the kernel runs on */
    uint32_t channels_here; /* simulated */
    uint32_t nodes_here;
    struct nccl_flow_cut cut;
    struct pipeline *pipeline;
    uint8_t *pattern;     /* of a loop, for rings */
    uint32_t gives;       /* slices that a CTA gives in a loop of that pattern; 0: one */
    double connection_ps; /* a loop's bytes on the busiest connection between nodes, at its rate */
};

/* The bytes of one channel in loops of `parts` chunks each. */
struct nccl_flow_cut nccl_flow_cut_make(double channel_bytes, uint32_t parts, uint64_t chunk_bytes, uint32_t slices,
                                        uint32_t slots);

uint32_t nccl_flow_nvlink_port(const struct nccl_flow *f, uint32_t node, uint32_t gpu);
uint32_t nccl_flow_nic_port(const struct nccl_flow *f, uint32_t node, uint32_t gpu);

/* A stage that stands for a CTA, or half of one (share 0.5). */
uint32_t nccl_flow_add_cta(struct nccl_flow *f, const uint8_t *pattern, uint32_t period, double share);
/* From GPU to GPU of a node. */
void nccl_flow_add_nvlink(struct nccl_flow *f, uint32_t from, uint32_t to, uint32_t node, uint32_t from_gpu,
                          uint32_t to_gpu, double share);
/* Between stages of one GPU; share 0: no time. */
void nccl_flow_add_inside(struct nccl_flow *f, uint32_t from, uint32_t to, double share);
/* From a CTA of `from_node` to one of `to_node`, through the proxy and the NIC of GPU `gpu`, as so
 * many channels. */
void nccl_flow_add_net(struct nccl_flow *f, uint32_t from, uint32_t to, uint32_t from_node, uint32_t to_node,
                       uint32_t gpu, double share, uint32_t channels);

extern const uint8_t nccl_flow_take[1], nccl_flow_give[1], nccl_flow_pass[1];

/* An algorithm: how it cuts the bytes, and its stages and edges.  When folded, `channels` channels
 * stand for all, and one node does where `nodes_alike`. */
struct nccl_flow_ops {
    uint32_t channels;
    bool nodes_alike;
    double nvlink_share; /* of a port that it can use; 0: all */
    uint32_t loops;      /* simulated at most */
    bool drifts;         /* its channels come out of step (nccl_flow.c) */
    struct nccl_flow_cut (*cut)(const struct nccl_flow *f);
    void (*build)(struct nccl_flow *f);
    uint64_t (*setup_ps)(const struct nccl_flow *f); /* beside nccl_flow.start; NULL: none */
};

extern const struct nccl_flow_ops nccl_flow_ring, nccl_flow_pat;       /* _ring.c */
extern const struct nccl_flow_ops nccl_flow_tree, nccl_flow_nvls_tree; /* _tree.c */
extern const struct nccl_flow_ops nccl_flow_nvls;                      /* _nvls.c */
extern const struct nccl_flow_ops nccl_flow_p2p;                       /* _p2p.c */

uint64_t nccl_flow_nvls_setup_ps(const struct nccl_flow *f);

/* The stages of NVLS on one GPU; returns the one that has the node's sum, where a tree ends
 * (`up_out`), and the one that stores what is final into all GPUs (`down_out`): the same on one
 * node. */
void nccl_flow_nvls_gpu(struct nccl_flow *f, uint32_t node, uint32_t gpu, uint32_t *up_out, uint32_t *down_out);

#endif
