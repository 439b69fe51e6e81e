/* A run of several processes, one a node, as a backend sees it in its child process. */
#ifndef CORE_RUN_NODE_LINK_H
#define CORE_RUN_NODE_LINK_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NODE_HOST_BYTES 64

/* What a child of node `node` can do without knowing how processes reach each other: it writes requests into
 * a socket and reads answers, and its parent passes them on (core/run/relay.h has the messages). */
struct node_link {
    uint32_t node, count;
    int socket;
    const char (*hosts)[NODE_HOST_BYTES]; /* by node */
};

/* "node 1 on b"; n NULL: all nodes are in this process. */
static inline void node_link_describe(const struct node_link *n, uint32_t node, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "node %u%s%s", node, n ? " on " : "", n ? n->hosts[node] : "");
}

#endif
