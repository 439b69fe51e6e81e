/* The processes of one run, one a node: who they are, and what they tell each other between runs.
 *
 * Every process reads the same scenario and takes the same decisions; node 0 is the one that prints and keeps
 * results.  The runs themselves happen in child processes (core/run/run_across.h). */
#ifndef CORE_RUN_NODES_H
#define CORE_RUN_NODES_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/run/node_link.h"
#include "core/status.h"

/* How processes that were started together reach each other.  backends/net has one for MPI. */
struct launcher {
    const char *name;
    /* Joins the others.  ST_ENVIRONMENT: `why` says what is wrong. */
    enum status (*open)(void **state_out, uint32_t *node_out, uint32_t *count_out, char *why, size_t why_bytes);
    /* Takes a copy and does not block.  Between two nodes messages arrive once, in the order of sending. */
    enum status (*send)(void *state, uint32_t to, const void *data, size_t bytes);
    /* The next message from anybody, to be freed by the caller.  False: there is none now. */
    bool (*receive)(void *state, uint32_t *from_out, void **data_out, size_t *bytes_out);
    /* Collective: returns once everybody has come here. */
    void (*close)(void *state);
};

enum message_kind {
    MESSAGE_GATHER,       /* of this module; `number` counts gathers */
    MESSAGE_CHILD_GATHER, /* of runs' children, `number` is the run's */
    MESSAGE_CHILD_FAILED, /* the bytes say how */
};

struct message {
    struct message *next;
    uint32_t from;
    uint32_t kind, number;
    size_t bytes;
    void *data; /* owned */
};

struct nodes {
    uint32_t node, count; /* count 1: this process is alone, and nothing else is filled */
    const struct launcher *launcher;
    void *state;
    char (*hosts)[NODE_HOST_BYTES];           /* by node */
    struct message *inbox;                    /* in the order of arrival */
    uint32_t gathers, runs;                   /* so far */
    uint64_t timeout_ns;                      /* that a gather waits at most */
    const volatile sig_atomic_t *interrupted; /* ends it, too */
};

/* What the environment says about who started this process: "Open MPI", as which of how many. */
struct start {
    const char *by; /* NULL: nobody we know */
    uint32_t node, count;
};

struct start nodes_start(void);

/* `launcher` may be NULL: built without any.  Alone, unless the environment says otherwise.  Errors are logged. */
enum status nodes_open(struct nodes *n, const struct launcher *launcher);
void nodes_close(struct nodes *n); /* collective; safe on a zeroed one */

#define NODES_EXTRA_NS 60000000000u /* that a node may be later than the time-out of what it does */

/* Collective: node i's bytes end up at all[i * bytes].  ST_IO, ST_HANG (logged, with the node's name),
 * ST_INTERRUPTED. */
enum status nodes_gather(struct nodes *n, const void *mine, size_t bytes, void *all);

/* Collective: the worst of everybody's (status_worse). */
enum status nodes_agree(struct nodes *n, enum status st);

/* ---- for core/run/relay.c ---- */

/* To everybody else. */
enum status nodes_tell(struct nodes *n, enum message_kind kind, uint32_t number, const void *data, size_t bytes);
/* Takes in what has arrived; forgets what belongs to earlier runs. */
void nodes_pump(struct nodes *n);
/* The first such message, which is then the caller's (message_free); NULL: it has not arrived. */
struct message *nodes_take(struct nodes *n, uint32_t from, enum message_kind kind, uint32_t number);
void message_free(struct message *m);

#endif
