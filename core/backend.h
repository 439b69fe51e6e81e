/* What runs a program: the contract of backends/NAME; backends/backends.c lists them all. */
#ifndef CORE_BACKEND_H
#define CORE_BACKEND_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/statistics/histogram.h"
#include "core/kernel.h"
#include "core/machine/machine.h"
#include "core/run/node_link.h"
#include "core/parse/option.h"
#include "core/program.h"
#include "core/status.h"
#include "core/trace/trace.h"
#include "core/world.h"

enum timing_mode {
    TIMING_ISOLATED,  /* ranks aligned, one epoch at a time, max over ranks */
    TIMING_PIPELINED, /* epochs back to back under credits, time per epoch in the steady state */
};

struct timing {
    enum timing_mode mode;
    uint32_t warmup, iterations;
    bool launch; /* host launch cost counts, for every contestant alike */
};

struct job {
    const struct program *program; /* NULL for a baseline */
    struct world world;
    const struct kernel *kernel;
    const struct problem *problem;
    const struct machine *machine;
    struct timing timing;
    const void *options; /* the backend's own, filled from its option table */
    uint64_t seed;
    bool data;                     /* move and check real data; a backend may always do */
    uint64_t memory_limit_bytes;   /* 0: none */
    const struct node_link *nodes; /* NULL: all nodes are in this process; else it is one of them */
    /* NULL: never.  Once set, the run ends soon with ST_INTERRUPTED and says in its report where it stood. */
    const volatile sig_atomic_t *interrupted;
    struct trace *trace; /* where the backend reports what happened when; NULL: nobody asks */
};

/* A baseline is timed for the same problem, without a program. */
enum baseline { BASELINE_NCCL, BASELINE_STREAMS };

#define RESULT_SAMPLES_MAX 256
#define RESULT_CREWS_MAX PROGRAM_CREWS_MAX
#define RESULT_CAUSES_MAX (PROGRAM_FLAG_GROUPS_MAX + 2)
#define RESULT_LINKS_MAX 4

/* Causes that are no flag; every backend calls them so. */
#define BACKEND_CAUSE_PUTS "nic queue" /* no place for another put */
#define BACKEND_CAUSE_STORE "store"    /* the stores of the task before are still on their way */

/* Worker time, summed over ranks, workers and counted epochs.  busy + waiting + idle is all of it. */
struct crew_result {
    char name[24];
    uint32_t workers; /* per rank */
    uint64_t busy_ps;
    uint64_t waiting_ps[RESULT_CAUSES_MAX]; /* by cause, see run_result.causes */
    uint64_t idle_ps;                       /* nothing left to pop */
};

struct link_result {
    char name[24];              /* "nvlink out", "nic in" */
    double mean_busy, max_busy; /* share of capacity used over the run: mean over ports, busiest port */
    uint64_t bytes;
};

/* What proxies saw, over all ranks and epochs; backends without proxies leave it 0. */
struct proxy_result {
    uint64_t depth_sum, depth_max; /* puts on their way when one more was started, itself included */
    struct histogram latency;      /* of puts, from the command to its completion; one entry a put */
};

/* Plain data: a child process sends it through a pipe. */
struct run_result {
    enum status status;
    uint32_t sample_count;
    uint64_t sample_ps[RESULT_SAMPLES_MAX]; /* max over ranks; one an iteration, or one for all where
                                               iterations cannot differ */
    uint64_t tasks, puts, flows;            /* over all ranks, all epochs run */
    uint64_t epochs;
    uint64_t put_bytes, put_control_bytes; /* between nodes, all epochs: of data, of control buffers */
    struct proxy_result proxy;
    uint64_t rows_dropped; /* by routes, all epochs */
    uint64_t elements_checked, elements_wrong;
    uint64_t runs;             /* an exploration's: seeds tried, the last one failed if any did */
    uint64_t orderings;        /* the verifier's: pairs of accesses that had to be ordered */
    char model[64];            /* what produced the times: "threads", "simgrid 3.32 cm02" */
    char choice[64];           /* baselines: NCCL's choice, "ring/simple" */
    uint64_t collective_ps;    /* NCCL: of the collective alone, as the baseline uses it; 0: none */
    uint64_t bare_ps, flow_ps; /* the same by NCCL's cost model uncorrected, and by simulating its algorithm */
    char report[6144];         /* status < 0: for people, several lines */
    uint32_t crew_count, cause_count, link_count;
    struct crew_result crews[RESULT_CREWS_MAX];
    char causes[RESULT_CAUSES_MAX][24]; /* flag groups first, then "nic queue", "store" */
    struct link_result links[RESULT_LINKS_MAX];
    struct trace_result trace; /* of the job's trace; filled by core/run/run.c */
    double cpu_seconds;        /* filled by core/run/run.c from the child's rusage */
    uint64_t peak_bytes;
};

/* One NCCL call alone, as nccl-tests times it. */
struct collective_call {
    const struct machine *machine; /* holds `world` */
    struct world world;
    enum collective what;
    const char *algorithm; /* "ring", "tree", "nvls", "nvlstree", "pat"; "": NCCL's choice */
    uint64_t bytes;        /* as nccl-tests counts them: all ranks' parts together, or the buffer */
};

struct collective_times {
    uint64_t model_ps;     /* by NCCL's own cost model; 0: it has none for this call */
    uint64_t corrected_ps; /* that, as baselines use it */
    uint64_t flow_ps;      /* by simulating the algorithm chunk by chunk */
    char choice[64];       /* "ring/simple, 24 channels" */
};

struct backend {
    const char *name;             /* as scenarios write it */
    const char *title;            /* one line for `list` */
    const struct option *options; /* the keys of its scenario section; last row has no name */
    size_t options_size;
    bool per_node;  /* can run as one process a node (job.nodes) */
    bool exclusive; /* measures real time or uses every core: one run at a time */

    /* What no row of the table judges by itself.  ST_INPUT: *c has the key and why not.  NULL: there is nothing. */
    enum status (*check_options)(const void *options, struct complaint *c);
    /* ST_OK, or ST_ENVIRONMENT with the reason in `why`. */
    enum status (*available)(char *why, size_t why_bytes);
    /* Upper bound of the memory that run() will allocate, before it allocates any. */
    uint64_t (*memory_bytes)(const struct job *job);
    /* Runs in a process of its own.  Fills *r in every case; returns r->status. */
    enum status (*run)(const struct job *job, struct run_result *r);
    /* NULL: this backend has no baselines. */
    enum status (*baseline)(const struct job *job, enum baseline which, struct run_result *r);
    /* ST_UNSUPPORTED: that algorithm does not exist there.  NULL: this backend has no such models. */
    enum status (*collective)(const struct collective_call *call, struct collective_times *out);
};

#endif
