/* What passes between a child of a run of several processes and its parent, each way a header and then `bytes`
 * bytes. */
#ifndef CORE_RUN_RELAY_MESSAGE_H
#define CORE_RUN_RELAY_MESSAGE_H

#include <stdint.h>

enum relay_kind {
    /* Child: my bytes of a gather, equally many on every node.  Parent: everybody's, by node. */
    RELAY_GATHER = 1,
    /* Parent: the child of `node` has failed; the bytes say how, for people, without a 0 at the end. */
    RELAY_FAILED,
};

struct relay_message {
    uint32_t kind;
    uint32_t node;
    uint64_t bytes;
};

#define RELAY_TEXT_BYTES 256

#endif
