/* Which bytes a task moves between ranks. */
#ifndef CORE_TRAFFIC_H
#define CORE_TRAFFIC_H

#include "core/program.h"

typedef void traffic_fn(void *arg, uint32_t from, uint32_t to, uint64_t bytes);

/* Calls fn for each operand that is read from, and each result that is stored to, another rank.  A store to the
 * node is one to each peer.  Work that is selected at run time counts as the most that it can be, rows gathered
 * by index as read from the node's ranks in equal shares. */
void task_traffic(const struct program *p, uint32_t rank, const struct task *t, traffic_fn *fn, void *arg);

#endif
