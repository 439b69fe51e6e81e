/* The parent's end of what a child tells the other nodes' children while they run together. */
#ifndef CORE_RUN_RELAY_H
#define CORE_RUN_RELAY_H

#include <stdbool.h>

#include "core/run/nodes.h"
#include "core/run/relay_message.h"

struct relay {
    struct nodes *nodes;
    uint32_t run;                 /* number */
    int parent, child;            /* ends of a socket pair; -1: closed */
    struct relay_message request; /* of the child, as far as it has arrived */
    uint8_t *mine;
    size_t received;          /* header and bytes */
    bool asked;               /* the others have been told; their answers are awaited */
    struct message **answers; /* by node */
    uint64_t failed_ns;       /* when the first failure of another node was passed on; 0: none */
};

/* Begins run number nodes->runs. */
enum status relay_open(struct relay *r, struct nodes *n);
void relay_close(struct relay *r);

/* What the child gets; in the child, after fork(). */
struct node_link relay_link(struct relay *r);
/* In the parent, after fork(). */
void relay_forked(struct relay *r);

/* Passes on what there is, without waiting for anything. */
void relay_step(struct relay *r);

/* Tells the others that this node's child has failed, in a line for people. */
void relay_fail(struct relay *r, const char *text);

#endif
