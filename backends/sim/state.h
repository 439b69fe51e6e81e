/* What the files of the sim backend share: the state of one run.
 *
 * Memory is allocated before the first event; only flights, and accesses with data, come from pools
 * that grow with what is in flight.  A worker's index is rank * workers_per_rank + place. */
#ifndef BACKENDS_SIM_STATE_H
#define BACKENDS_SIM_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/sim/pool.h"
#include "backends/sim/sim.h"
#include "core/backend.h"
#include "sim/engine.h"
#include "sim/fabric.h"

#define NO_WORKER UINT32_MAX

/* Names one task of the run. */
struct task_id {
    uint32_t rank, queue;
    uint64_t index, epoch;
};

/* Where a worker stands in its task; worker.c has a function for each. */
enum phase {
    PHASE_POP,
    PHASE_ENTRY,   /* waits that precede every access */
    PHASE_INDEXED, /* rows by index: the flag that guards each of them */
    PHASE_STEPS,   /* GEMM: main loop, a wait before each step */
    PHASE_LATE,    /* waits that precede only addends and stores */
    PHASE_RESERVE, /* PUT: a place in the FIFO */
    PHASE_WORK,    /* addends, or the fixed part of the others */
    PHASE_MOVE,    /* COPY, REDUCE: bytes */
    PHASE_STORE,   /* GEMM: hand the stores to the links */
    PHASE_PUSH,    /* PUT: the command is written */
    PHASE_FINISH,
};

/* What takes time, as far as perturbation tells it apart. */
enum delay { DELAY_WORK, DELAY_SIGNAL, DELAY_FLOW, DELAY_PROXY, DELAY_PUT, DELAY_PAUSE, DELAYS };

struct access; /* conflict.h */

struct worker {
    struct task task; /* in hand */
    struct task_id id;
    enum phase phase;
    uint32_t crew, place; /* place: in the crew's list of queues */

    uint32_t wait, wait_flag; /* next to test: waits[wait], its wait_flag-th flag */
    uint32_t step;            /* next step of a GEMM, next value of an index list */
    uint32_t pending;         /* delays and flows to end before the next phase */
    uint64_t owed_ps;         /* charged together with the next piece of work */
    uint64_t since_ps;        /* when it last became busy, blocked or idle */
    uint64_t began_ps;        /* when the entry waits of its task were met */
    bool fetched;             /* its task was popped while the one before ran */
    bool streaming;           /* the task before was a copy, and nothing was waited for since */
    bool absent;              /* under disorder: this run does without it */
    bool storing;             /* a flight with an earlier task's stores is under way */

    /* While blocked: why, and who comes next in the list that it is in. */
    bool blocked;
    uint32_t cause; /* as run_result.causes */
    uint32_t flag;  /* on a flag: which, and the counter value it waits for */
    uint64_t target;
    uint32_t next_blocked;

    struct access *accesses; /* byte ranges the task in hand reads and writes */
};

/* A task whose worker has gone on: the background stores of a GEMM, or a put. */
struct flight {
    struct task_id id;
    uint32_t worker;  /* that started it */
    uint64_t left_ps; /* when that worker went on */
    uint32_t pending; /* flows under way; of a put: deliveries */
    bool landed;      /* a put: was delivered */
    struct access *accesses;
};

/* Commands of one rank's workers to its proxy. */
struct fifo {
    uint64_t used;          /* commands written or about to be, and not yet posted */
    uint64_t proxy_free_ps; /* when the proxy has posted all it knows of */
    uint32_t first_blocked, last_blocked;
};

struct rank {
    uint64_t cursors[PROGRAM_QUEUES_MAX], lengths[PROGRAM_QUEUES_MAX];
    uint64_t length;     /* tasks of an epoch, all queues */
    uint64_t remaining;  /* of this epoch: popped or not, and incomplete */
    uint64_t flushed_ps; /* when the results of those that are complete are all in memory */
    uint64_t epoch;      /* 0: none has started */
    bool running;
    uint64_t step_ps;    /* one GEMM step on this machine at this load */
    double slow[DELAYS]; /* under disorder: factors for the whole run */
    struct fifo fifo;
};

struct prng {
    uint64_t state;
};

/* A task that was begun and will never be done. */
struct lost_task {
    struct task_id id;
    const char *state;
};

#define FAULT_LOST_MAX 32

/* What the injected fault has done so far. */
struct faults {
    uint64_t puts; /* of the rank it strikes */
    struct lost_task lost[FAULT_LOST_MAX];
    uint32_t lost_count;
    char fate[48];
};

struct data;    /* data.h */
struct control; /* control.h */

struct sim {
    const struct job *job;
    const struct program *program;
    const struct machine *machine; /* the job's, as changed by options */
    struct sim_options options;
    uint32_t rank_count, workers_per_rank; /* rank_count: that are simulated, the first ones */
    bool folds;                            /* those of node 0 stand for all (fold.h) */
    uint64_t epochs, warmup;               /* to run; of these not counted */

    struct fabric *fabric;
    struct engine *engine; /* the fabric's */
    struct rank *ranks;
    struct worker *workers;
    uint64_t *counters;      /* flags: rank * flag_count + flag */
    uint32_t *first_blocked; /* the workers that wait for it, latest first */
    struct pool flights;
    struct pool signals; /* on their way, where a trace wants to know whose they are */
    struct prng prng;
    double stretched;  /* under disorder: share of single delays that are stretched */
    struct data *data; /* NULL: timing only */
    struct faults faults;
    struct control *control; /* NULL: the program has no control buffers */

    uint32_t ranks_running;
    uint64_t epoch_start_ps; /* isolated: of the aligned epoch */
    uint64_t warmup_end_ps;  /* pipelined */
    bool failed;             /* r->status and r->report say why; nothing more is started */

    struct run_result *result;
};

static inline struct worker *sim_worker(struct sim *s, uint32_t rank, uint32_t place)
{
    return &s->workers[(uint64_t)rank * s->workers_per_rank + place];
}

static inline uint32_t worker_index(const struct sim *s, const struct worker *w)
{
    return (uint32_t)(w - s->workers);
}

static inline uint64_t sim_now(const struct sim *s)
{
    return engine_now_ps(s->engine);
}

#endif
