/* The verifier in the shape of a backend, so that proofs run like everything else: in a child process, bounded
 * in time and memory, several at once. */
#ifndef CORE_VERIFY_PROVE_H
#define CORE_VERIFY_PROVE_H

#include "core/backend.h"

/* The flags that may guard what is read by index, over all tasks; tasks in a row that read alike count once. */
uint64_t prove_guards(const struct program *p);

/* Its result has a status, a report of violations, the number of tasks and of unrolled epochs, and in
 * `orderings` how many pairs of accesses had to be ordered. */
extern const struct backend prove_backend;

#endif
