/* NCCL's own cost model: what it would choose for a collective, and the time it would predict.
 *
 *   time = latency + bytes / bandwidth
 *
 * with one pair per (collective, algorithm, protocol), fixed by the communicator.  It is a
 * selector: good to a few per cent for large messages, optimistic by 20 to 50 % from 4 to 64 MiB.
 * nccl_corrected() multiplies by measured / predicted and is what baselines use; docs/nccl-model.md
 * shows both beside published times. */
#ifndef SIM_NCCL_H
#define SIM_NCCL_H

#include <stddef.h>
#include <stdint.h>

#include "core/kernel.h"
#include "core/machine/machine.h"
#include "core/world.h"
#include "sim/nccl_constants.h"

/* What NCCL's graph search found: rates in GB/s per channel, channels before doubling. */
struct nccl_graph {
    uint32_t channels;
    double intra, inter;
};

struct nccl_cost {
    double latency_us;
    double bandwidth; /* GB/s of algorithm bandwidth; 0: not available */
};

struct nccl_comm {
    const struct nccl_constants *constants;
    uint32_t nodes, ranks, gpus_per_node;
    enum nccl_generation generation;
    enum nccl_cpu cpu;
    double net_latency_us;
    bool nvls;
    struct nccl_graph ring_graph, tree_graph, nvls_graph;
    uint32_t channels, nvls_channels; /* that kernels run on: one CTA each */
    struct nccl_cost costs[NCCL_COLLECTIVES][NCCL_ALGORITHMS][NCCL_PROTOCOLS];
};

struct nccl_choice {
    bool found; /* false: no algorithm is available, or there is one rank only */
    enum nccl_algorithm algorithm;
    enum nccl_protocol protocol;
    uint32_t channels;
    uint64_t time_ps;
};

/* `w` must fit the machine (machine_holds). */
void nccl_comm_init(struct nccl_comm *c, const struct machine *m, struct world w);

/* `bytes`: the whole buffer for AllReduce, all ranks' parts together for AllGather and
 * ReduceScatter. */
struct nccl_choice nccl_predict(const struct nccl_comm *c, enum collective what, uint64_t bytes);

/* Bare prediction of one entry; 0 where it is not available. */
uint64_t nccl_time_of(const struct nccl_comm *c, enum collective what, enum nccl_algorithm algorithm,
                      enum nccl_protocol protocol, uint64_t bytes);

/* Measured over predicted time for such a choice; 1 where nothing was measured. */
double nccl_correction_factor(const struct nccl_comm *c, enum collective what, const struct nccl_choice *choice,
                              uint64_t bytes);

/* nccl_predict() with its time multiplied by nccl_correction_factor(). */
struct nccl_choice nccl_corrected(const struct nccl_comm *c, enum collective what, uint64_t bytes);

/* CTAs that a send and a receive between nodes occupy, and their time apart from bytes / rate. */
uint32_t nccl_send_recv_channels(const struct machine *m);
uint64_t nccl_send_recv_fixed_ps(const struct machine *m);

const char *nccl_algorithm_name(enum nccl_algorithm algorithm); /* "ring" */

/* "ring/simple, 24 channels" */
void nccl_choice_print(const struct nccl_choice *choice, char *out, size_t out_bytes);

#endif
