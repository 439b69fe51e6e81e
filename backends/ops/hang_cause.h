/* One step from a wait towards its root cause. */
#ifndef BACKENDS_OPS_HANG_CAUSE_H
#define BACKENDS_OPS_HANG_CAUSE_H

#include <stdbool.h>

#include "backends/ops/hang_report.h"

/* What keeps a wait from being met.  The later, the better an explanation. */
enum hang_cause {
    CAUSE_NOT_FOUND,  /* the search ended before it found anybody */
    CAUSE_NOBODY,     /* no task signals the flag */
    CAUSE_TOO_LITTLE, /* all who signal it have done so */
    CAUSE_NOT_BEGUN,  /* the task's rank has not begun that epoch */
    CAUSE_QUEUED,     /* nobody has taken the task yet */
    CAUSE_WAITS,      /* the task waits itself */
    CAUSE_FATE,       /* the task's rank is not well */
    CAUSE_OPEN,       /* the task was begun and got lost, or still runs */
};

struct hang_step {
    enum hang_cause cause;
    uint32_t rank, queue; /* the task that should signal */
    uint64_t index, epoch;
    uint64_t others; /* further tasks that have not signalled either */
    const struct hang_open *open;
    const struct stuck *next; /* the wait that holds the task up; NULL: this is the root */
};

/* `left` counts down the tasks that may still be looked at. */
struct hang_step hang_cause_find(const struct hang *h, const struct stuck *w, uint64_t *left);

/* Whether any crew drains the queue. */
bool hang_queue_drained(const struct program *p, uint32_t queue);

#endif
