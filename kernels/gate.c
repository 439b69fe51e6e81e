#include "kernels/gate.h"

void gate_init(struct gate *g, struct program *p, bool credits)
{
    g->world = p->world;
    g->credits = credits;
    g->node_flags = program_add_flags(p, "open", credits ? p->world.gpus_per_node : 0);
    g->rail_flags = program_add_flags(p, "rail_open", credits ? p->world.nodes : 0);
    g->sent = program_add_flags(p, "sent", p->world.nodes > 1);
}

uint64_t gate_node_tasks(const struct gate *g)
{
    return g->credits && g->world.gpus_per_node > 1;
}

void gate_node_task(const struct gate *g, uint32_t rank, struct task *t)
{
    t->op = OP_NOP;
    task_signal(t, RANK_NODE, g->node_flags + world_gpu(g->world, rank), 1);
}

uint64_t gate_rail_tasks(const struct gate *g)
{
    return g->credits ? g->world.nodes - 1 : 0;
}

void gate_rail_task(const struct gate *g, uint32_t rank, uint64_t i, struct task *t)
{
    uint32_t node = world_node(g->world, rank);
    uint32_t to = (node + 1 + (uint32_t)i) % g->world.nodes;
    uint32_t peer = world_rank(g->world, to, world_gpu(g->world, rank));

    t->op = OP_PUT;
    task_store_to(t, (struct operand){.rank = peer});
    task_signal(t, peer, g->rail_flags + node, 1);
    task_signal(t, rank, g->sent, 1);
}

void gate_wait_sent(const struct gate *g, struct task *t)
{
    if (g->world.nodes > 1)
        task_wait(t, g->sent, 1, FLAG_TOTAL);
}

static void wait_open(const struct gate *g, struct task *t, uint32_t flag, uint32_t count, uint32_t depth,
                      enum wait_phase phase)
{
    if (!g->credits)
        return;
    task_wait_as(t, (struct wait){.flag = flag, .count = count, .lag = depth - 1, .phase = phase, .value = FLAG_TOTAL});
}

void gate_wait_peer(const struct gate *g, struct task *t, uint32_t gpu, uint32_t depth, enum wait_phase phase)
{
    wait_open(g, t, g->node_flags + gpu, 1, depth, phase);
}

void gate_wait_node(const struct gate *g, struct task *t, uint32_t depth, enum wait_phase phase)
{
    wait_open(g, t, g->node_flags, g->world.gpus_per_node, depth, phase);
}

void gate_wait_rail(const struct gate *g, struct task *t, uint32_t node, uint32_t depth)
{
    wait_open(g, t, g->rail_flags + node, 1, depth, WAIT_ENTRY);
}

bool gate_flag_total(const struct gate *g, uint32_t rank, uint32_t flag, uint64_t *total_out)
{
    if (!g->credits)
        return false;
    if (flag - g->node_flags < g->world.gpus_per_node) {
        *total_out = gate_node_tasks(g);
        return true;
    }
    if (flag - g->rail_flags < g->world.nodes) {
        *total_out = flag - g->rail_flags != world_node(g->world, rank);
        return true;
    }
    return false;
}
