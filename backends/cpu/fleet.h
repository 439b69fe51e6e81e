/* One run: the ranks, their workers and what they share.
 *
 * Worker   runs its crew's queues task by task (fleet_worker.c).  It holds nothing back: a task is
 *          written and signalled before the next one is popped, so a worker that blocks owes nobody
 *          anything.
 * Epochs   the last worker of a rank to arrive does `end`, then `begin` of the next epoch
 *          (fleet_epoch.c).
 * Puts     go through a FIFO of the rank (fleet_fifo.c) and one proxy for all of them to a transport
 *          (fleet_net.c).  What they raise is mirrored into the rank's flags.
 * Nodes    are all in this process, or one is, and the others in processes like it (core/run/nodes.h).  Arrays
 *          hold this process's ranks; rank numbers are those of the world.
 * Watch    the calling thread, which decides that nothing will ever move again, or that all is over (fleet_watch.c).
 *
 * Memory order: only flags synchronise.  Counters that are watched are relaxed. */
#ifndef BACKENDS_CPU_FLEET_H
#define BACKENDS_CPU_FLEET_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/cpu/bell.h"
#include "backends/cpu/fleet_log.h"
#include "backends/net/proxy.h"
#include "backends/net/way.h"
#include "backends/ops/hang_report.h"
#include "backends/ops/tile_ops.h"
#include "core/backend.h"
#include "core/check.h"
#include "core/clock.h"

struct cpu_options {
    uint64_t threads_per_crew; /* at most; a crew of fewer workers gets as many */
    uint64_t fifo;             /* commands */
    uint64_t timeout_ps;
    struct way_options way;
};

/* Under a sanitizer everything takes several times longer. */
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define TIMEOUT_SCALE 10
#else
#define TIMEOUT_SCALE 1
#endif

struct counter {
    alignas(64) _Atomic uint64_t value; /* a cache line each */
};

/* Flags of our own, after the program's: workers wait for their rank, and ranks for each other, as
 * tasks do. */
enum own_flag { OWN_BEGUN, OWN_ARRIVED, OWN_ALIGNED, OWN_FLAG_COUNT };

/* What a worker is at: plain data of the worker, read by others after it has ended. */
struct position {
    uint64_t epoch, index;
    uint32_t queue;
    enum op op;
    enum wait_phase phase;
    uint32_t step; /* of a segment wait, else NO_STEP */
};

#define NO_STEP UINT32_MAX

struct worker {
    struct fleet *fleet;
    struct rank *rank;
    uint32_t crew, place; /* place: in the crew */
    pthread_t thread;
    struct scratch *scratch;
    struct position at;

    _Atomic uint32_t blocked_flag; /* NO_FLAG: running or ended */
    _Atomic uint64_t blocked_target;
    uint64_t blocked_since_ns;
    uint64_t given_up_value; /* of the flag, when the run stopped */

    uint64_t tasks, puts, put_bytes, put_control_bytes;
    uint64_t paused_ns;                                       /* in waits of tasks, this epoch */
    uint64_t busy_ns, idle_ns, waiting_ns[RESULT_CAUSES_MAX]; /* counted epochs */

    struct trace_log log;
    bool begun; /* the task's entry waits are met */
};

struct command;

struct fifo {
    struct command *slots; /* NULL: the program has no second node */
    uint32_t capacity;
    _Atomic uint32_t filled; /* slots */
    uint64_t random;         /* the proxy's: which slot comes next */
    struct bell emptied;
    struct trace_log log; /* the proxy's */
};

/* A flag that a put from another node raises. */
struct arrival {
    uint32_t flag;
    uint64_t seen; /* of its value */
};

/* Times are kept for the epochs that can become samples. */
#define EPOCH_TIMES (RESULT_SAMPLES_MAX + 1)

#define RANK_BELLS 16

struct rank {
    struct fleet *fleet;
    uint32_t index;
    uint8_t *window;
    struct counter *flags;
    struct bell bells[RANK_BELLS]; /* flag f's is f % RANK_BELLS: a signal wakes few that wait for another */
    struct counter popped[PROGRAM_QUEUES_MAX]; /* this epoch */
    struct counter signals;                    /* received */
    struct fifo fifo;
    uint64_t *put_flags; /* by flag: what puts from other nodes raise; NULL as fifo.slots */
    struct arrival *arrivals;
    uint32_t arrival_count;
    struct check_report check;
    uint64_t epoch;                                          /* begun last */
    uint64_t started_ns[EPOCH_TIMES], ended_ns[EPOCH_TIMES]; /* by epoch % EPOCH_TIMES */
};

enum stop {
    STOP_NOT,
    STOP_QUIESCENT,
    STOP_TIMEOUT,
    STOP_INTERRUPTED,
    STOP_START,    /* a thread did not start */
    STOP_OVERFLOW, /* more was routed to a rank than fits, see `failure` */
    STOP_NET,      /* the way between nodes, or another node's process: see `failure` and `failed` */
};

struct fleet {
    const struct job *job;
    const struct program *program;
    const struct cpu_options *options;
    uint64_t epochs;
    uint32_t first_rank, rank_count; /* that live here */
    uint32_t worker_count, crew_threads[PROGRAM_CREWS_MAX];
    struct rank *ranks;
    struct worker *workers; /* by rank, then crew */
    uint8_t **windows;      /* by number in the world; NULL: elsewhere */
    struct memory memory;
    uint64_t started_ns;
    struct trace_log log; /* an empty one, as threads begin with */

    _Atomic uint32_t stop;     /* enum stop: the abort word, which every wait looks at */
    _Atomic uint64_t active;   /* running workers and undelivered puts: what can still signal */
    _Atomic uint64_t wakings;  /* waits that have ended */
    _Atomic uint32_t checking; /* ranks at an epoch's begin or end, which may take long */
    _Atomic uint32_t ended;    /* workers */
    _Atomic uint64_t aligned;  /* ranks that have come to the end of an epoch, all epochs */
    _Atomic uint64_t dropped;  /* pairs that routes dropped */
    _Atomic uint32_t failures;
    char failure[640]; /* the first one's words */
    enum status failed;
    struct bell end_bell;

    struct way way; /* between nodes; where there is a second one */
    struct proxy *proxy;
    struct bell proxy_bell; /* rings for every command */
    struct proxy_counters puts;
};

/* ---- fleet.c ---- */

/* UINT64_MAX when it does not fit 64 bits. */
uint64_t fleet_memory_bytes(const struct job *job);

/* Allocates and writes the first inputs.  NULL: out of memory. */
struct fleet *fleet_create(const struct job *job);
/* Leaves all memory alone when it had to leave a thread behind: see way_run_bounded(). */
void fleet_destroy(struct fleet *f);

static inline struct rank *fleet_rank(const struct fleet *f, uint32_t rank)
{
    return &f->ranks[rank - f->first_rank];
}

/* Once all workers have ended: they and puts are what is active, and where there are other nodes, these. */
static inline bool fleet_puts_are_complete(const struct fleet *f)
{
    return atomic_load_explicit(&f->active, memory_order_relaxed) == (f->job->nodes != NULL);
}

static inline bool fleet_is_here(const struct fleet *f, uint32_t rank)
{
    return rank - f->first_rank < f->rank_count;
}

/* ---- fleet_flags.c ---- */

uint64_t fleet_signal(struct fleet *f, uint32_t rank, uint32_t flag, uint64_t add); /* what it left there */
/* `by`: who signals and since when its worker has done its part, for `log`. */
void fleet_signal_task(struct fleet *f, uint32_t rank, const struct task *t, struct trace_log *log,
                       const struct trace_entry *by);
bool fleet_flag_reached(const struct rank *r, uint32_t flag, uint64_t target);
void fleet_stop(struct fleet *f, enum stop why); /* the first one counts */
bool fleet_stopped(const struct fleet *f);
void fleet_refuse(struct worker *w, const struct task *route, uint64_t dropped); /* stops the run */
/* Stops it with what fleet_stop() gets; only the first one's words are kept. */
void fleet_fail(struct fleet *f, enum stop why, enum status st, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool worker_await(struct worker *w, uint32_t flag, uint64_t target); /* false: the run stops */

/* ---- fleet_worker.c, fleet_epoch.c, fleet_fifo.c, fleet_watch.c, fleet_hang.c ---- */

void *worker_main(void *worker);
void worker_log_wait(struct worker *w, uint32_t flag, uint64_t target, uint64_t since_ns); /* until now */

uint32_t own_flag(const struct fleet *f, enum own_flag flag);
bool epoch_turn(struct worker *w, uint64_t epoch); /* all of this rank's workers have arrived */

uint64_t fifo_bytes(uint64_t capacity);
bool fifo_push(struct worker *w, const struct task *t, const struct trace_entry *by);
uint32_t fifo_collect(const struct rank *r, struct hang_open *out); /* puts under way; returns how many */
extern const struct proxy_source fifo_source;                       /* of struct rank */

void fleet_watch(struct fleet *f);
void fleet_report_hang(const struct fleet *f, char *out, size_t out_bytes);

/* ---- fleet_net.c ---- */

/* Joins the other nodes, opens and connects endpoints; nothing where there is one node.  What is wrong is in
 * f->failure. */
enum status fleet_net_open(struct fleet *f);
enum status fleet_net_start(struct fleet *f); /* the proxy */
enum status fleet_net_meet(struct fleet *f);  /* returns once every node's process has come here */
void fleet_net_check(struct fleet *f);        /* stops the run when the way between nodes is broken */
void fleet_net_stop(struct fleet *f);
void fleet_net_close(struct fleet *f);           /* safe on whatever open left behind */
uint64_t fleet_net_bytes(const struct job *job); /* that it allocates, at most */

#endif
