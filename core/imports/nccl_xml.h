/* What NCCL dumps of a node (NCCL_TOPO_DUMP_FILE) and of the rings and trees that it found there
 * (NCCL_GRAPH_DUMP_FILE), both XML.
 *
 * expat does the parsing.  A document type declaration is refused, so that entities cannot be declared at all;
 * so is what nests deeper or is larger than any such dump. */
#ifndef CORE_IMPORTS_NCCL_XML_H
#define CORE_IMPORTS_NCCL_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

#define NCCL_XML_BYTES_MAX ((size_t)16 << 20)
#define NCCL_XML_NETS_MAX 64

struct nccl_net {
    char name[32];
    uint64_t mbps; /* megabits a second */
    bool gpu_direct;
};

enum nccl_pattern { NCCL_RING = 4, NCCL_TREE = 1, NCCL_NVLS = 5 }; /* as the files number them */

/* A graph with channels. */
struct nccl_graph {
    uint64_t channels;   /* 0: not found, or none */
    double intra, inter; /* GB/s a channel, within and between nodes */
    bool has_net;        /* its channels begin at a NIC: found for several nodes */
};

struct nccl_xml {
    bool has_topology, has_graphs;
    uint64_t gpus;    /* of the first host */
    uint64_t sm;      /* 90; 0: not said */
    uint64_t device;  /* PCI device of the first GPU: 0x2335 */
    uint64_t nvlinks; /* of the first GPU */
    uint64_t hosts;   /* in one dump: more than one where NVLink joins nodes */
    char cpu[32];     /* vendor: "GenuineIntel" */
    struct nccl_net nets[NCCL_XML_NETS_MAX];
    uint32_t net_count;
    struct nccl_graph ring, nvls;
};

/* Adds what a file says; call it for each.  ST_INPUT: logged with file:line:column. */
enum status nccl_xml_parse(const char *path, const char *text, size_t text_bytes, struct nccl_xml *x);

#endif
