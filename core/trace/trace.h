/* What happened when, as a backend tells it while it runs or afterwards, and where that goes.
 *
 * A backend that is given a sink (job.trace) says trace_begin() once and then reports tasks, waits, flights
 * and use of links in any order, from one thread at a time.  Times are picoseconds from the start of the run.
 * A sink keeps what it has room for; docs/trace.md describes the file that `mkernel run --trace` writes. */
#ifndef CORE_TRACE_TRACE_H
#define CORE_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/program.h"
#include "core/status.h"

/* Who did it: the `worker`th of a crew of a rank. */
struct trace_lane {
    uint32_t rank, crew, worker;
};

/* Which task.  Its name is what `mkernel show` prints: "gemm #96". */
struct trace_place {
    uint32_t queue;
    enum op op;
    uint64_t index, epoch;
};

/* From its entry waits met until its worker went on.  Waits of its main loop lie inside. */
struct trace_task {
    struct trace_lane lane;
    struct trace_place at;
    uint64_t begin_ps, end_ps;
};

struct trace_wait {
    struct trace_lane lane;
    struct trace_place at; /* the task that has to wait */
    uint32_t flag;         /* of the own rank, or NO_FLAG: `cause` says what for */
    const char *cause;     /* one of the names of run_result.causes */
    bool inside;           /* its task has begun */
    uint64_t begin_ps, end_ps;
    bool known; /* whose signal ended it: then `from`, where that worker stood at from_ps */
    struct trace_lane from;
    uint64_t from_ps;
};

/* Bytes on their way while their worker has gone on: a put, or the remote stores of a GEMM. */
struct trace_flight {
    struct trace_lane lane;
    struct trace_place at;
    uint64_t begin_ps, end_ps; /* handed over; arrived */
};

enum trace_link { TRACE_NVLINK_OUT, TRACE_NVLINK_IN, TRACE_NIC_OUT, TRACE_NIC_IN, TRACE_LINKS };

/* Bytes through a rank's link of that kind; several NICs count as one. */
struct trace_use {
    enum trace_link link;
    uint32_t rank;
    uint64_t bytes, begin_ps, end_ps;
};

struct trace;

struct trace_ops {
    uint64_t (*begin)(struct trace *t, uint64_t first, uint64_t epochs, const uint32_t crew_workers[PROGRAM_CREWS_MAX]);
    void (*task)(struct trace *t, const struct trace_task *x);
    void (*wait)(struct trace *t, const struct trace_wait *x);
    void (*flight)(struct trace *t, const struct trace_flight *x);
    void (*use)(struct trace *t, const struct trace_use *x);
    void (*lost)(struct trace *t, uint64_t events);
};

/* The head of every sink. */
struct trace {
    const struct trace_ops *ops;
};

/* `crew_workers`: how many workers each crew of a rank has in this run.  Epochs count from 1; those from `first` to
 * `epochs` are told.  Returns the first one of them that there is room for: what happens before need not be. */
static inline uint64_t trace_begin(struct trace *t, uint64_t first, uint64_t epochs,
                                   const uint32_t crew_workers[PROGRAM_CREWS_MAX])
{
    return t->ops->begin(t, first, epochs, crew_workers);
}

static inline void trace_task_add(struct trace *t, const struct trace_task *x)
{
    t->ops->task(t, x);
}

static inline void trace_wait_add(struct trace *t, const struct trace_wait *x)
{
    t->ops->wait(t, x);
}

static inline void trace_flight_add(struct trace *t, const struct trace_flight *x)
{
    t->ops->flight(t, x);
}

static inline void trace_use_add(struct trace *t, const struct trace_use *x)
{
    t->ops->use(t, x);
}

/* Events that the backend had no room for. */
static inline void trace_lost_add(struct trace *t, uint64_t events)
{
    t->ops->lost(t, events);
}

/* ---- kinds of sinks ---- */

#define TRACE_PATH_BYTES 256
#define TRACE_NOTE_BYTES 192

/* What became of it: plain data, part of run_result. */
struct trace_result {
    char path[TRACE_PATH_BYTES]; /* "": nothing was written */
    char note[TRACE_NOTE_BYTES]; /* what was left out, for people; "": nothing */
};

struct job;

struct trace_format {
    const char *name;
    /* Opens the file's temporary self; errors are logged.  `limit_bytes` bounds the file before compression. */
    enum status (*open)(const struct job *job, const char *backend, const char *path, uint64_t limit_bytes,
                        struct trace **out);
    /* Ends the file and frees the sink.  The file gets its name when `keep`, else it vanishes. */
    enum status (*close)(struct trace *t, bool keep, struct trace_result *out);
};

extern const struct trace_format trace_chrome; /* JSON for Perfetto; gzip when the name ends in .gz */
extern const struct trace_format trace_goal;   /* GOAL text, docs/export.md */

#endif
