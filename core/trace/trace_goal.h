/* What the files of the GOAL sink share.  GOAL is the schedule language of LogGOPSim and its relatives: per rank
 * operations "calc", "send", "recv", and which requires which.
 *
 * A run's last epoch becomes a schedule: each task a calc as long as it kept its worker busy, on the cpu of that
 * worker, after the one before; each signal to another rank a message with the bytes that the task stored there;
 * each wait a dependency on the calcs and messages that raised its flag in that run. */
#ifndef CORE_TRACE_TRACE_GOAL_H
#define CORE_TRACE_TRACE_GOAL_H

#include "core/machine/machine.h"
#include "core/trace/trace.h"
#include "core/trace/trace_file.h"

#define GOAL_TASKS_MAX 400000
#define GOAL_CPUS_MAX 255 /* the format keeps a cpu's number in a byte */

struct goal_node {
    bool seen;
    uint32_t rank, cpu;
    uint64_t begin_ps, end_ps, waited_ps;
    uint32_t before;                 /* the node that its worker did before; GOAL_NONE */
    uint32_t first_edge, edge_count; /* of goal.edges */
    uint32_t first_pull, pull_count; /* of goal.pulls */
};

#define GOAL_NONE UINT32_MAX

/* A signal, or (flag NO_FLAG) bytes that no signal to their rank goes with. */
struct goal_edge {
    uint32_t from, to; /* ranks */
    uint32_t node;     /* that signals */
    uint32_t flag;
    uint64_t add, bytes;
    uint64_t end_ps; /* of the node: the order in which signals came */
};

/* Bytes that a node reads from another rank: a request and a reply. */
struct goal_pull {
    uint32_t owner, node;
    uint64_t bytes;
};

struct goal {
    struct trace head;
    const struct program *program;
    const struct machine *machine;
    struct trace_file file;
    uint64_t epochs;
    uint32_t cpus; /* of a rank's workers; one more stands for its NICs and its proxy */
    uint32_t crew_first[PROGRAM_CREWS_MAX];

    uint32_t *base; /* first node by rank * queue_count + queue */
    struct goal_node *nodes;
    uint32_t node_count;
    struct goal_edge *edges; /* by node */
    uint32_t edge_count, edge_space;
    uint32_t *by_flag;       /* edges by (to, flag, end_ps) */
    struct goal_pull *pulls; /* by node */
    uint32_t pull_count, pull_space;
};

/* Edges, pulls and their order, from the program and the times of the nodes. */
void goal_connect(struct goal *g);

void goal_write(struct goal *g);

#endif
