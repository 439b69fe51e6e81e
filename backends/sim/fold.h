/* Folding: where all nodes do the same at the same time, node 0 is simulated alone.
 *
 * A put of node 0 to the node d further on stands for all puts like it, so also for the one that
 * node 0 gets from the node d before it: it leaves its NIC and enters it (sim/fabric.h), and when
 * it lands, what that other put signals on node 0 is raised.  Nothing is neglected; what is asked
 * for is that ranks do the same (symmetry.h) and that nothing perturbs or injures single ones. */
#ifndef BACKENDS_SIM_FOLD_H
#define BACKENDS_SIM_FOLD_H

#include "backends/sim/state.h"

enum fold_mode {
    FOLD_AUTO, /* where there are more than FOLD_RANKS ranks and they do the same */
    FOLD_NONE,
    FOLD_NODE, /* or say why not */
};

#define FOLD_CHOICES "auto|none|node"
#define FOLD_RANKS 1024

/* How many ranks are simulated, as far as the key says; auto: all. */
uint32_t fold_ranks(const struct job *job);

/* Sets s->rank_count and s->folds.  ST_INPUT, with the reason in the report, where folding is asked
 * for in vain. */
enum status fold_open(struct sim *s);

/* The counter that signal `signal` of the task raises on node 0 in the place of one on another
 * node. */
struct signal fold_arrival(const struct sim *s, const struct task_id *id, uint32_t signal, uint32_t target);

/* Makes the result what all nodes have done. */
void fold_close(struct sim *s);

#endif
