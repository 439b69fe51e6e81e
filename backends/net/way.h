/* The way between the nodes of a run, as one process sees it: the transport that was chosen, an endpoint for each rank
 * that lives here, connected to those on the other nodes, and, where other nodes live in other processes, what tells
 * about these.  For every backend that can run as one process a node (job.nodes), or with all nodes in one.
 *
 *   way_open       joins the others, finds the transport
 *   way_endpoint   once for each rank here
 *   way_connect    everybody to everybody on another node
 *   way_meet       barriers: before the first put, wherever nodes are aligned, behind the last put
 *   way_check      now and then in between
 *   way_close
 *
 * Proxies (proxy.h) use the endpoints from way_connect() to way_close().
 *
 * Whatever returns a status < 0 has said why in `why`, but for ST_INTERRUPTED: the run was stopped already. */
#ifndef BACKENDS_NET_WAY_H
#define BACKENDS_NET_WAY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/net/bootstrap.h"
#include "backends/net/transport.h"
#include "core/backend.h"

#define WAY_WHY_BYTES 640

/* ---- what a scenario says ---- */

#define WAY_TRANSPORTS "loopback|ofi|verbs"

/* A member of a backend's options. */
struct way_options {
    uint32_t transport;           /* position in WAY_TRANSPORTS */
    char text[OPTION_TEXT_BYTES]; /* the transport's own: "reorder=true seed=7" */
};

/* Two rows of the backend's option table. */
/* clang-format off */
#define WAY_OPTION_ROWS(options, member)                                                                            \
    {"transport", OPTION_CHOICE, offsetof(options, member.transport), "loopback", 0, 0, WAY_TRANSPORTS,             \
     "what carries puts between nodes; loopback stays inside one process"},                                         \
    {                                                                                                                \
        "transport_options", OPTION_TEXT, offsetof(options, member.text), "", 0, 0, NULL,                           \
            "the transport's own, as \"mkernel list transports\" shows them: \"reorder=true seed=7\""               \
    }
/* clang-format on */

/* For the backend's check_options: the transport's own options.  `loopback`: as in struct way_config.  One that this
 * mkernel was built without is not judged. */
enum status way_check_options(const struct way_options *o, const struct transport *loopback, struct complaint *c);

/* ---- the way ---- */

struct way_config {
    const struct job *job; /* its program has several nodes */
    const struct way_options *options;
    const char *backend;              /* whose options they are: "cpu" */
    const struct transport *loopback; /* stands for it; NULL: the one of transports.c */
    const char *loopback_text;        /* its options where the scenario has none; read by way_open() alone */
    uint32_t depth;                   /* puts of a rank on their way at a time */
    uint64_t timeout_ps;              /* without progress a run ends; peers have half of it, and three times
                                         as long to come to the beginning once this process waits there */
    /* Whether the run ends anyhow; asked while others are waited for, from the thread that waits. */
    bool (*stopped)(void *owner);
    void *owner;
};

struct way {
    struct way_config config;
    uint32_t first_rank, rank_count; /* that live here */
    const struct transport *transport;
    void *transport_options;
    struct endpoint **endpoints; /* by place among the ranks here */
    struct bootstrap nodes;      /* no ops: all nodes are here */
    pthread_mutex_t lock;        /* of `nodes` */
    bool met;                    /* all have come to the beginning */
    uint64_t meet_by_ns;         /* those who have not come by then have failed; 0: no limit */
    bool stuck;                  /* a call of the transport did not return, and its thread may use all this */
};

/* The ranks that live in the process of this job, and the first of them. */
uint32_t way_ranks_here(const struct job *job, uint32_t *first_out);

/* At most what open and connect allocate. */
uint64_t way_memory_bytes(const struct job *job, uint64_t depth);

enum status way_open(struct way *w, const struct way_config *c, char why[WAY_WHY_BYTES]);
enum status way_endpoint(struct way *w, uint32_t place, const struct net_memory *window, const struct net_memory *flags,
                         char why[WAY_WHY_BYTES]);
/* Before way_connect(): closes those that were opened, so that others can be. */
void way_drop_endpoints(struct way *w);
/* Collective, before way_connect(): whether *all* processes say so. */
enum status way_agree(struct way *w, bool *all, char why[WAY_WHY_BYTES]);
enum status way_connect(struct way *w, char why[WAY_WHY_BYTES]);

/* True where other nodes live in other processes. */
bool way_is_across(const struct way *w);
/* True where nothing comes unless a rank here has sent it. */
bool way_is_alone(const struct way *w);

/* Returns once every node's process has come here.  One thread at a time; others' way_check() finds nothing then. */
enum status way_meet(struct way *w, char why[WAY_WHY_BYTES]);
enum status way_check(struct way *w, char why[WAY_WHY_BYTES]); /* of other nodes' processes; does not block */

/* Runs fn(arg) in a thread, which is left behind when it takes too long: libfabric's shm waits for ever for a lock that
 * a peer held as it died.  A thread in somebody else's library cannot be ended, but the run has a report to give, and
 * its process ends then.  Sets `stuck`; does nothing once it is set. */
void way_run_bounded(struct way *w, void *(*fn)(void *arg), void *arg);

/* Safe on a zeroed way and on whatever open left behind.  A stuck one keeps its memory. */
void way_close(struct way *w);

/* Calls fn for every put of the program that raises a flag of a rank in [first, first + count) on another node than the
 * sender's.  False: fn has returned false. */
typedef bool way_put_fn(void *arg, uint32_t from, const struct task *t, const struct signal *s);
bool way_each_put(const struct program *p, uint32_t first, uint32_t count, way_put_fn *fn, void *arg);

#endif
