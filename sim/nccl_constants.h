/* The numbers of NCCL's tuning model, by version.  They change from release to release: a new
 * release is a new table, and a result names the table it used. */
#ifndef SIM_NCCL_CONSTANTS_H
#define SIM_NCCL_CONSTANTS_H

#include <stdbool.h>
#include <stdint.h>

enum nccl_algorithm { NCCL_TREE, NCCL_RING, NCCL_NVLS, NCCL_NVLS_TREE, NCCL_PAT };
enum nccl_protocol { NCCL_LL, NCCL_LL128, NCCL_SIMPLE };
enum nccl_generation { NCCL_VOLTA, NCCL_AMPERE, NCCL_HOPPER, NCCL_BLACKWELL };
enum nccl_cpu { NCCL_CPU_INTEL, NCCL_CPU_AMD, NCCL_CPU_OTHER };
enum nccl_link { NCCL_LINK_NVLINK, NCCL_LINK_NET };

#define NCCL_ALGORITHMS 5
#define NCCL_PROTOCOLS 3
#define NCCL_COLLECTIVES 3 /* enum collective */
#define NCCL_GENERATIONS 4
#define NCCL_CPUS 3
#define NCCL_LINKS 2
#define NCCL_SCALES 3 /* columns of the ceilings: one node, two, more */
#define NCCL_TREE_SIZES 24

struct nccl_constants {
    const char *version;
    double base_latency_us[NCCL_ALGORITHMS][NCCL_PROTOCOLS];
    double hop_latency_us[NCCL_LINKS][NCCL_ALGORITHMS][NCCL_PROTOCOLS];
    double net_overhead_us[NCCL_CPUS];
    /* Ceilings, GB/s per channel, and ll_max in all: its row is the generation on one node, and
     * across nodes 1 for AMD hosts, 0 for others. */
    double ring_ll128_max[NCCL_GENERATIONS][NCCL_SCALES];
    double tree_ll128_max[NCCL_GENERATIONS][NCCL_SCALES];
    double tree_max[NCCL_GENERATIONS][NCCL_SCALES];
    double nvls_tree_max[NCCL_GENERATIONS][NCCL_SCALES];
    double ll_max[NCCL_GENERATIONS][NCCL_SCALES];
    double nvls_efficiency[NCCL_GENERATIONS];
    /* Tree AllReduce bandwidth is multiplied by [floor(log2(bytes / 64))]. */
    double tree_correction[NCCL_PROTOCOLS][NCCL_TREE_SIZES];
    uint64_t threads_max[NCCL_PROTOCOLS];
    uint64_t thread_bytes[NCCL_PROTOCOLS]; /* work a thread should have; LL on a ring: times the ranks */
};

extern const struct nccl_constants nccl_constants_2_30_7;

/* Measured over predicted time where NCCL's own model is optimistic, as a function of size.  Not
 * part of NCCL.  A curve applies to the collectives of its mask; the first match of the list
 * counts. */
struct nccl_correction {
    const char *source;
    uint32_t collectives; /* bit 1 << enum collective */
    enum nccl_algorithm algorithm;
    uint32_t protocols; /* bit 1 << enum nccl_protocol */
    bool across_nodes;
    uint32_t ranks_min, ranks_max, gpus_min; /* gpus: of a node */
    struct {
        uint64_t bytes; /* a power of two, rising; 0 ends the curve */
        double factor;
    } points[8];
};

extern const struct nccl_correction nccl_corrections[]; /* ends with a row without source */

#endif
