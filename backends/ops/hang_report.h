/* Why a run makes no progress: who waits for which flag since when, which task should have signalled it,
 * what that one waits for in turn, and so on down to the root cause.  The same words for every backend that
 * knows its workers. */
#ifndef BACKENDS_OPS_HANG_REPORT_H
#define BACKENDS_OPS_HANG_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/program.h"
#include "core/run/node_link.h"

#define STUCK_NO_STEP UINT32_MAX
#define HANG_LINES_MAX 24 /* of a whole report: a screen */

/* A worker that waits for a flag. */
struct stuck {
    uint32_t rank, crew, queue;
    uint64_t index, epoch; /* of its task */
    enum wait_phase phase;
    uint32_t step; /* of a wait before a GEMM's step, else STUCK_NO_STEP */
    uint32_t flag;
    uint64_t value, wanted;
    uint64_t since_ps; /* on the clock of the run */
};

/* A task that was begun, is not done, and waits for no flag. */
struct hang_open {
    uint32_t rank, queue;
    uint64_t index, epoch;
    const char *state; /* "was dropped by the network", "is under way" */
    bool held;         /* by a worker, which takes no other meanwhile */
};

struct hang_rank {
    uint64_t epoch;                      /* begun last */
    uint64_t popped[PROGRAM_QUEUES_MAX]; /* tasks taken from each queue in it */
    const char *fate;                    /* "stopped at 30 us"; NULL: it is well */
};

struct hang {
    const struct program *program;
    const struct hang_rank *ranks; /* by rank */
    const struct stuck *stuck;     /* in the order in which they are to be told */
    uint64_t stuck_count;
    const struct hang_open *open;
    uint64_t open_count;
    bool stopped; /* on its way, from outside: what holds it up need not be a fault */
};

/* Says of ranks in other processes that they are there.  nodes NULL: there are none.  `fates`: by node, kept by the
 * caller as long as `ranks`. */
#define HANG_FATE_BYTES 160
void hang_mark_elsewhere(const struct node_link *nodes, struct world w, struct hang_rank *ranks,
                         char (*fates)[HANG_FATE_BYTES]);

/* Writes the headline, the root cause, the waits that lead to it, and others as far as a screen holds. */
void hang_report_write(const struct hang *h, const char *headline, char *out, size_t out_bytes);

#endif
