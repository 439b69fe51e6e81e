/* Credits: who may write into whose window in this epoch.
 *
 * At the start of epoch e every rank tells its writers "open": by a signal to its node and by a bare put
 * to each rank of its rail.  Epoch e of a rank starts when all of its epoch e - 1 is complete, so a writer
 * into a buffer of depth d, whose copy was last used in epoch e - d, waits for "open" of epoch e - d + 1:
 * a lag of d - 1.  With depth 2 that signal is one epoch old and costs nothing; with depth 1 a writer
 * waits for the receiver to arrive.
 *
 * One flag per writer and direction, each raised once per epoch by one rank.  The bare puts count in `sent` as
 * every put does, and the epoch's last task waits for all of them: without that a put of epoch e + 1 could
 * overtake that of epoch e on a network that reorders. */
#ifndef KERNELS_GATE_H
#define KERNELS_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/program.h"

struct gate {
    struct world world;
    bool credits;        /* false: every rank hears from every other in each epoch anyway; no flags, no
                            tasks, no waits but for `sent` */
    uint32_t node_flags; /* one per GPU of the node */
    uint32_t rail_flags; /* one per node */
    uint32_t sent;       /* counts complete puts of this rank, the kernel's own too; none on one node */
};

void gate_init(struct gate *g, struct program *p, bool credits);

/* Tasks at the head of a queue that does not block before them: one for the node if it has several GPUs,
 * and one bare put per other node. */
uint64_t gate_node_tasks(const struct gate *g);
void gate_node_task(const struct gate *g, uint32_t rank, struct task *t);
uint64_t gate_rail_tasks(const struct gate *g);
void gate_rail_task(const struct gate *g, uint32_t rank, uint64_t i, struct task *t);

/* Makes `t` wait until all puts of this epoch, `sent`'s total, are complete. */
void gate_wait_sent(const struct gate *g, struct task *t);

/* Wait for one GPU of the node, for all of them, for a node of the rail, before writing to a buffer of
 * `depth` there. */
void gate_wait_peer(const struct gate *g, struct task *t, uint32_t gpu, uint32_t depth, enum wait_phase phase);
void gate_wait_node(const struct gate *g, struct task *t, uint32_t depth, enum wait_phase phase);
void gate_wait_rail(const struct gate *g, struct task *t, uint32_t node, uint32_t depth);

/* Whether `flag` is one of the gate's two directions; if so, its total per epoch on `rank`. */
bool gate_flag_total(const struct gate *g, uint32_t rank, uint32_t flag, uint64_t *total_out);

#endif
