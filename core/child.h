/* One run of a backend in a process of its own: a crash, a hang or a runaway allocation costs that run
 * only, and two simulation engines never share a process. */
#ifndef CORE_CHILD_H
#define CORE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/backend.h"
#include "core/status.h"

struct child {
    pid_t              pid; /* 0: none */
    int                pipe; /* the child's result arrives here */
    size_t             received;
    uint64_t           deadline_ns; /* on the monotonic clock */
    uint64_t           timeout_ns;
    bool               timed_out;
    struct run_result *result;
};

/* Runs in the child; what it leaves in *result is sent to the parent. */
typedef void child_fn(void *arg, struct run_result *result);

/* Starts fn(arg, ...) in a child that is killed after timeout_ns.  *result is the caller's and is complete
 * once child_step() has returned true, whatever became of the child. */
enum status child_start(struct child *c, child_fn *fn, void *arg, uint64_t timeout_ns,
                        struct run_result *result);

/* Takes what has arrived; true once the child is gone and *result filled.  Never blocks for long: call it
 * when poll() says that c->pipe is readable, or when the deadline has passed. */
bool child_step(struct child *c);

/* Kills the child, if there is one; its result is ST_INTERRUPTED. */
void child_kill(struct child *c);

uint64_t child_clock_ns(void);

#endif
