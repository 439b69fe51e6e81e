/* `mkernel export`: ours for the tools of others. */
#ifndef CORE_CLI_EXPORT_H
#define CORE_CLI_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/scenario/scenario.h"

struct export_platform {
    const char *machine; /* name or path */
    struct world world;  /* nodes 0: two, or one where the machine has no network; GPUs 0: all of a node */
    const char *output;  /* NULL: stdout */
};

/* SimGrid platform XML: a host a GPU, NVLink to the node's switch, NICs to the network. */
enum status export_platform(const struct export_platform *q);

struct export_goal {
    const char *scenario;
    const char *const *sets;
    uint32_t set_count;
    bool has_point;
    uint64_t point;
    const char *output;
    const struct registry *registry;
};

/* Simulates one point and writes its last epoch as a GOAL schedule. */
enum status export_goal(const struct export_goal *q);

#endif
