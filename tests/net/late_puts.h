/* A program whose puts nobody waits for: rank 0 puts to rank 1, on another node, which has nothing to do.  Both are
 * through long before the bytes are. */
#ifndef TESTS_NET_LATE_PUTS_H
#define TESTS_NET_LATE_PUTS_H

#include "core/kernel.h"

#define LATE_PUTS 16 /* an epoch */

extern uint64_t late_puts_elements; /* of each, bf16; 4 MiB unless somebody says otherwise */

extern const struct kernel late_puts_kernel;

#endif
