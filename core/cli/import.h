/* `mkernel import`: files of others become ours. */
#ifndef CORE_CLI_IMPORT_H
#define CORE_CLI_IMPORT_H

#include <stddef.h>
#include <stdint.h>

#include "core/host.h"
#include "core/status.h"
#include "core/world.h"

struct import_topology {
    const char *const *paths;
    size_t path_count;
    const char *gpu;    /* NULL: by the topology's PCI device */
    const char *name;   /* NULL: from its parts */
    const char *output; /* NULL: NAME.yaml; "-": stdout */
    uint64_t nodes;     /* 0: as many as the shipped machine has */
};

/* Writes a machine file. */
enum status import_topology(const struct import_topology *q);

struct import_nccl_tests {
    const char *path;
    const char *collective; /* NULL: the file says */
    const char *machine;    /* name for the record; NULL: the GPU's */
    const char *output;     /* NULL: results/local/NAME-DATE.jsonl */
    struct world world;     /* nodes 0: the file's device list says */
    int argc;
    char *const *argv; /* for the record */
};

/* Writes a result file. */
enum status import_nccl_tests(const struct import_nccl_tests *q);

#endif
