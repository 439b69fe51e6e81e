/* Between the files of the verifier. */
#ifndef CORE_VERIFY_VERIFY_STATE_H
#define CORE_VERIFY_VERIFY_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/verify/verify.h"

struct task_place {
    uint32_t rank, queue;
    uint64_t index;
};

/* A vector clock: for each rank the highest epoch known to have begun there, so that everything of the
 * epoch before is complete. */
typedef uint16_t verify_clock;

struct verifier {
    const struct program *p;
    struct verify_report *report;
    uint32_t ranks;
    uint32_t epochs; /* unrolled: 1 .. epochs; the last one is the one that is judged */
    uint32_t lag_max;
    uint64_t task_count;
    uint64_t *first_task;   /* [rank * queues + queue]: tasks are numbered through; one more at the end */
    int64_t *last_blocking; /* [rank * queues + queue]: last index with a late or step wait, or -1 */

    /* Per flag of each rank, [rank * flag_count + flag]. */
    uint64_t *totals;
    uint64_t *sums;            /* what the tasks signal */
    uint64_t *signaller_first; /* one more at the end */
    uint32_t *signallers;      /* task numbers */
    uint8_t *waited;           /* some task of the owner waits for it without lag */
    uint8_t *put_raised;       /* by how many puts, up to 2 */

    bool buffer_written[PROGRAM_BUFFERS_MAX];  /* by some task */
    bool buffer_shared[PROGRAM_BUFFERS_MAX];   /* accessed by a task of another rank */
    uint32_t buffer_list[PROGRAM_BUFFERS_MAX]; /* by which work list its rows are selected: 1 + its buffer; 0: not
                                                  accessed yet; VERIFY_PLAIN: by none */
    bool dynamic;                              /* some task selects its work */

    /* From the abstract execution. */
    verify_clock *begin_clock; /* [rank][rank]: at the begin of the last epoch */
    verify_clock *flag_clock;  /* [flag of a rank][epoch - 1][rank]: when the total was reached */
};

static inline uint64_t verify_flag_index(const struct verifier *v, uint32_t rank, uint32_t flag)
{
    return (uint64_t)rank * v->p->flag_count + flag;
}

static inline verify_clock *verify_flag_clock(const struct verifier *v, uint32_t rank, uint32_t flag, uint32_t epoch)
{
    return v->flag_clock + (verify_flag_index(v, rank, flag) * v->epochs + epoch - 1) * v->ranks;
}

struct task_place verify_place(const struct verifier *v, uint64_t number);
void verify_task(const struct verifier *v, struct task_place at, struct task *t);

/* Every task of an epoch, of all ranks. */
typedef void verify_task_fn(void *arg, struct task_place at, const struct task *t);
void verify_each_task(const struct verifier *v, verify_task_fn *fn, void *arg);

/* Counts a violation and describes it: "KIND: ..." */
void verify_fail(struct verifier *v, const char *kind, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* "rank 3, crew comm, queue gather: copy #17 ..." */
#define VERIFY_TASK_TEXT_BYTES 640
void verify_describe(const struct verifier *v, struct task_place at, char out[VERIFY_TASK_TEXT_BYTES]);

/* The waits of a task up to a point in its life; fn returns false to stop. */
#define VERIFY_ENTRY 0u           /* before any access */
#define VERIFY_STEP(s) (1u + (s)) /* before the reads of step s */
#define VERIFY_RESULT                                                                                                  \
    UINT32_MAX /* before addends are read and results written, and of course before
                  the signals */
#define VERIFY_PLAIN UINT32_MAX
#define VERIFY_INDEXED                                                                                                 \
    0x80000000u /* + i: before rows that the i-th flag of an indexed wait guards are read; of
                   the indexed wait this flag alone */
typedef bool verify_wait_fn(void *arg, const struct wait *w);
bool verify_each_wait(const struct verifier *v, uint32_t rank, const struct task *t, uint32_t until, verify_wait_fn *fn,
                      void *arg);

/* One access of a task to a rank's window.  Rows of a work-list entry stand wherever the entry says; entries do
 * not overlap (that routes partition their range is an axiom here, asserted at run time), so entry e is given rows
 * from e * VERIFY_ENTRY_ROWS on. */
#define VERIFY_ENTRY_ROWS (1ull << 20)
struct access {
    uint64_t row, rows, col, cols;
    uint32_t window; /* the rank that owns the bytes */
    uint32_t buffer;
    uint32_t until; /* the waits that precede it: VERIFY_ENTRY, ... */
    bool write;
    uint32_t list; /* 1 + the work list that selects the rows; 0: they are as they stand */
};

typedef void verify_access_fn(void *arg, const struct access *a);
void verify_each_access(const struct verifier *v, uint32_t rank, const struct task *t, verify_access_fn *fn, void *arg);

/* The steps, in this order; each returns ST_OK even when it found violations. */
enum status verify_collect(struct verifier *v, uint64_t sms); /* bounds, totals, indexes */
enum status verify_execute(struct verifier *v);               /* deadlock; clocks */
enum status verify_races(struct verifier *v);
enum status verify_coverage(struct verifier *v, const struct problem *global);

/* Clock of a task of the last epoch before the given point.  out[ranks]. */
void verify_clock_of(const struct verifier *v, uint32_t rank, const struct task *t, uint32_t until, verify_clock *out);

/* Does the completion of task x, `back` epochs ago, happen before that point of task y (of `y_rank`) in this
 * epoch?  Uses signals alone: searches backwards from y's waits. */
bool verify_reaches(const struct verifier *v, struct task_place x, uint32_t y_rank, const struct task *y,
                    uint32_t until, uint32_t back);

#endif
