/* One run of a backend in a process of its own: a crash, a hang or a runaway allocation costs that run
 * only, and two simulation engines never share a process. */
#ifndef CORE_RUN_CHILD_H
#define CORE_RUN_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/backend.h"
#include "core/status.h"

struct child {
    pid_t pid; /* 0: none */
    int pipe;  /* the child's result arrives here */
    size_t received;
    uint64_t deadline_ns; /* on the monotonic clock */
    uint64_t timeout_ns;
    bool asked; /* to stop */
    bool timed_out;
    struct run_result *result;
};

/* Runs in the child; what it leaves in *result is sent to the parent. */
typedef void child_fn(void *arg, struct run_result *result);

/* Starts fn(arg, ...) in a child that is stopped after timeout_ns, as child_stop() does.  *result is the caller's and
 * is complete once child_step() has returned true, whatever became of the child. */
enum status child_start(struct child *c, child_fn *fn, void *arg, uint64_t timeout_ns, struct run_result *result);

/* Takes what has arrived; true once the child is gone and *result filled.  Never blocks: call it when poll()
 * says that c->pipe is readable, or when the deadline has passed. */
bool child_step(struct child *c);

/* Asks the child to stop (SIGTERM).  It is killed CHILD_GRACE_NS later, if it is still there at a
 * child_step(). */
void child_stop(struct child *c);

#define CHILD_GRACE_NS 2000000000u

/* In the child: what is set once it is asked to stop.  A child that never calls this ends at once then. */
const volatile sig_atomic_t *child_interrupt(void);

#endif
