/* Why a run makes no progress: who waits for which flag, and who should have signalled it.  The
 * same words for every backend that knows its workers. */
#ifndef BACKENDS_OPS_HANG_REPORT_H
#define BACKENDS_OPS_HANG_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "core/program.h"

#define STUCK_NO_STEP UINT32_MAX

/* A worker that waits for a flag. */
struct stuck {
    uint32_t        rank, crew, queue;
    uint64_t        index, epoch; /* of its task */
    enum wait_phase phase;
    uint32_t        step; /* of a wait before a GEMM's step, else STUCK_NO_STEP */
    uint32_t        flag;
    uint64_t        value, wanted;
};

struct hang_rank {
    uint64_t epoch;                      /* begun last */
    uint64_t popped[PROGRAM_QUEUES_MAX]; /* tasks taken from each queue in it */
};

struct hang {
    const struct program   *program;
    const struct hang_rank *ranks; /* by rank */
    const struct stuck     *stuck; /* in the order in which they are to be told */
    uint64_t                stuck_count;
};

/* At most about 30 lines, below the headline: the first few waits for different flags, each with
 * tasks that have not signalled it. */
void hang_report_write(const struct hang *h, const char *headline, char *out, size_t out_bytes);

#endif
