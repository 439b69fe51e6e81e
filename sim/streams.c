/* All ranks do the same at the same time, each starting with a different peer so that ports share
 * the load evenly; so one rank's four lanes stand for all.  Work on a lane is done in the order of
 * the calls:
 *
 *   host      issues every call
 *   compute   cuBLAS or cuDNN calls and the kernels that add received rows or merge results
 *   copy      one copy engine at a time moves rows between GPUs of the node
 *   net       NCCL send / receive between ranks of a rail, one kernel a piece
 *
 * Between nodes everything goes rail by rail.  Gather: a piece arrives from the other nodes' GPU of
 * the same index, then the node's GPUs copy it from each other.  Reduce: the node's GPUs copy
 * partial rows to the one that stands for their owner, it adds them and sends one sum to the owner.
 * A lane that waits for another pays the event hop.
 *
 * Attention gathers: a row is a position of all heads' keys and values, and each piece but the first gives results
 * to be merged with those so far. */
#include "sim/streams.h"

#include <stdio.h>

#include "sim/attention_cost.h"
#include "sim/gemm_cost.h"
#include "sim/lanes.h"
#include "sim/nccl.h"

#define PIECES_MAX 32
#define BF16_BYTES 2.0
#define F32_BYTES 4.0
#define FOREVER_PS 1e15

struct lanes {
    const struct streams_setup *setup;
    struct streams_cut cut;
    struct host_lane host;
    double compute, copy, net; /* when each is free */
    double hop_ps;
    uint64_t sms, step_ps;     /* step: of a GEMM */
    bool attention, merges;    /* merges: there is a result so far */
    double nodes, gpus, peers; /* peers: the other GPUs of the node */
    uint64_t rows, shard_rows; /* all of them; of the rank with the most */
    double row_bytes;          /* of what travels */
};

static double transfer_ps(double bytes, double rate)
{
    double seconds = bytes / rate;

    return seconds < FOREVER_PS / 1e12 ? seconds * 1e12 : FOREVER_PS;
}

static double run(struct lanes *l, double *lane, double ready, uint32_t calls, double cost_ps)
{
    return lane_run(&l->host, lane, ready, calls, cost_ps);
}

/* Reads the results so far and the new ones, writes their merger. */
static double merge(struct lanes *l)
{
    const struct attention_problem *a = &l->setup->problem.attention;
    double rows = (double)(a->batch * a->heads * ceil_div(a->seq, world_ranks(l->setup->world)));
    double rate = l->setup->machine->gpu.memory_rate;

    return run(l, &l->compute, 0, 1, rate > 0 ? transfer_ps(3 * F32_BYTES * rows * (double)a->head_dim, rate) : 0);
}

/* What is computed on, or of, some rows. */
static double compute(struct lanes *l, double ready, uint64_t rows)
{
    const struct streams_setup *setup = l->setup;
    struct problem piece = setup->problem;
    bool merges = l->merges;

    if (!l->attention) {
        piece.m = rows;
        return run(l, &l->compute, ready, 1, (double)gemm_piece_ps(setup->machine, piece, l->sms, l->step_ps));
    }
    l->merges = true;
    run(l, &l->compute, ready, 1, (double)attention_piece_ps(setup->machine, &piece, setup->world, rows, l->sms));
    return merges ? merge(l) : l->compute;
}

/* Of a piece, unless the one call for all rows covers it. */
static double compute_piece(struct lanes *l, double ready, uint64_t rows)
{
    return l->cut.whole ? l->compute : compute(l, ready, rows);
}

/* Adds `sources` copies of some rows; each is read once and the sum is written. */
static double add(struct lanes *l, double ready, double rows, double sources)
{
    const struct machine *m = l->setup->machine;
    double rate = m->copy.reduce_rate * (double)l->sms;

    if (m->gpu.memory_rate > 0 && m->gpu.memory_rate < rate)
        rate = m->gpu.memory_rate;
    return run(l, &l->compute, ready, 1, transfer_ps(rows * l->row_bytes * (sources + 1), rate));
}

static double copy(struct lanes *l, double ready, double rows, uint32_t calls)
{
    const struct machine *m = l->setup->machine;
    double rate = m->nvlink.engine_rate < m->nvlink.rate ? m->nvlink.engine_rate : m->nvlink.rate;

    return run(l, &l->copy, ready, calls,
               (double)calls * (double)m->nvlink.engine_ps + transfer_ps(rows * l->row_bytes, rate));
}

static double send(struct lanes *l, double ready, double rows)
{
    const struct machine *m = l->setup->machine;
    double rate = m->nic.rate * (double)m->nic.per_gpu;

    return run(l, &l->net, ready, 1, (double)nccl_send_recv_fixed_ps(m) + transfer_ps(rows * l->row_bytes, rate));
}

static uint64_t remote_rows(const struct lanes *l)
{
    struct world w = l->setup->world;

    return (uint64_t)(w.nodes - 1) * w.gpus_per_node * l->shard_rows;
}

static uint64_t local_rows(const struct lanes *l)
{
    return (l->setup->world.gpus_per_node - 1) * l->shard_rows;
}

/* Copies that a piece takes: at least one a shard it touches. */
static uint32_t copies(uint32_t shards, uint32_t pieces)
{
    return (uint32_t)max_u64(1, ceil_div(shards, pieces));
}

static uint32_t remote_copies(const struct lanes *l)
{
    struct world w = l->setup->world;

    return (w.gpus_per_node - 1) * copies(w.nodes - 1, l->cut.remote);
}

/* The piece's other rows come from, or go to, the node's peers; this GPU's own rail carries one in
 * gpus. */
static double spread(struct lanes *l, double ready, double piece_rows)
{
    if (l->peers == 0)
        return ready;
    return copy(l, ready + l->hop_ps, piece_rows * l->peers / l->gpus, remote_copies(l));
}

static void gather(struct lanes *l)
{
    uint32_t local_copies = l->cut.local ? copies((uint32_t)l->peers, l->cut.local) : 0;
    double arrived[PIECES_MAX];

    for (uint32_t i = 0; i < l->cut.remote; i++)
        arrived[i] = send(l, 0, (double)part_size(remote_rows(l), l->cut.remote, i) / l->gpus);
    compute_piece(l, 0, l->shard_rows);
    for (uint32_t i = 0; i < l->cut.local; i++) {
        uint64_t rows = part_size(local_rows(l), l->cut.local, i);
        double here = copy(l, l->hop_ps, (double)rows, local_copies);
        compute_piece(l, here + l->hop_ps, rows);
    }
    for (uint32_t i = 0; i < l->cut.remote; i++) {
        uint64_t rows = part_size(remote_rows(l), l->cut.remote, i);
        double here = spread(l, arrived[i], (double)rows);
        compute_piece(l, here + l->hop_ps, rows);
    }
    if (l->cut.whole)
        compute(l, later_ps(l->copy, l->net) + l->hop_ps, l->rows);
}

/* A computed piece of other nodes' rows: the node's partial rows are copied together here at
 * `ready`. */
struct relay {
    double ready, rows;
};

static void relay_send(struct lanes *l, struct relay *r)
{
    double mine = r->rows / l->gpus;

    if (mine > 0) {
        double sum = l->peers > 0 ? add(l, r->ready + l->hop_ps, mine, l->gpus) : r->ready;
        send(l, sum + l->hop_ps, mine);
    }
    r->rows = 0;
}

/* Each piece is added and sent after the next one's GEMM has been issued, so that its copy is
 * hidden. */
static void reduce_others(struct lanes *l)
{
    uint32_t local_copies = l->cut.local ? copies((uint32_t)l->peers, l->cut.local) : 0;
    struct relay pending = {0};

    for (uint32_t i = 0; i < l->cut.remote; i++) {
        uint64_t rows = part_size(remote_rows(l), l->cut.remote, i);
        double done = compute_piece(l, 0, rows);
        double here = spread(l, done, (double)rows);
        relay_send(l, &pending);
        pending = (struct relay){.ready = here, .rows = (double)rows};
    }
    for (uint32_t i = 0; i < l->cut.local; i++) {
        uint64_t rows = part_size(local_rows(l), l->cut.local, i);
        double done = compute_piece(l, 0, rows);
        copy(l, done + l->hop_ps, (double)rows, local_copies);
        relay_send(l, &pending);
    }
    relay_send(l, &pending);
}

/* The finished rows to every rank: over the rails first, and what arrives there to the node's
 * peers. */
static void broadcast(struct lanes *l, double done, double rows)
{
    double others = l->nodes - 1, arrived = done;

    if (l->peers > 0)
        copy(l, done + l->hop_ps, rows * l->peers, (uint32_t)l->peers);
    if (others > 0)
        arrived = send(l, done + l->hop_ps, rows * others);
    if (l->peers > 0 && others > 0)
        copy(l, arrived + l->hop_ps, rows * others * l->peers, (uint32_t)(others * l->peers));
}

static void reduce(struct lanes *l, bool to_all)
{
    double sources = l->gpus + l->nodes - 1;

    if (l->cut.whole)
        compute(l, 0, l->rows);
    reduce_others(l);
    double arrived = later_ps(l->copy, l->net) + l->hop_ps;
    for (uint32_t i = 0; i < l->cut.own; i++) {
        uint64_t rows = part_size(l->shard_rows, l->cut.own, i);
        compute_piece(l, 0, rows);
        double done = add(l, arrived, (double)rows, sources);
        if (to_all)
            broadcast(l, done, (double)rows);
    }
}

/* Of what travels: elements of a row of A or C, or of a position's keys and values. */
static double row_elements(const struct streams_setup *setup)
{
    const struct attention_problem *a = &setup->problem.attention;

    if (a->seq > 0)
        return 2.0 * (double)(a->batch * a->kv_heads * a->head_dim);
    return (double)(setup->collective == COLLECTIVE_ALL_GATHER ? setup->problem.k : setup->problem.n);
}

static void lanes_init(struct lanes *l, const struct streams_setup *setup, struct streams_cut cut)
{
    const struct machine *m = setup->machine;
    bool attention = setup->problem.attention.seq > 0;
    uint64_t rows = attention ? setup->problem.attention.seq : setup->problem.m;
    struct world w = setup->world;

    *l = (struct lanes){
        .setup = setup,
        .cut = cut,
        .host = {.free_ps = (double)setup->launch_ps, .issue_ps = (double)setup->issue_ps},
        .hop_ps = (double)m->host.event_ps,
        .sms = m->gpu.sms,
        .attention = attention,
        .nodes = w.nodes,
        .gpus = w.gpus_per_node,
        .peers = w.gpus_per_node - 1,
        .rows = rows,
        .shard_rows = ceil_div(rows, world_ranks(w)),
        .row_bytes = row_elements(setup) * BF16_BYTES,
    };
    /* NCCL's CTAs stay on their SMs while they wait for the network. */
    if (w.nodes > 1 && !cut.whole)
        l->sms = max_u64(1, l->sms - min_u64(l->sms, nccl_send_recv_channels(m)));
    l->step_ps = attention ? 0 : gemm_step_ps(m, setup->problem, m->gpu.sms);
}

struct streams_time streams_time(const struct streams_setup *setup, struct streams_cut cut)
{
    struct lanes l;

    lanes_init(&l, setup, cut);
    if (world_ranks(setup->world) == 1)
        compute(&l, 0, l.rows);
    else if (setup->collective == COLLECTIVE_ALL_GATHER)
        gather(&l);
    else
        reduce(&l, setup->collective == COLLECTIVE_ALL_REDUCE);
    double device = later_ps(l.compute, later_ps(l.copy, l.net));
    double host = (double)l.host.calls * (double)setup->period_ps;
    return (struct streams_time){.time_ps = later_ps(device, host), .calls = l.host.calls, .cut = cut};
}

static uint32_t pieces_max(uint32_t wanted)
{
    return wanted > 0 && wanted < PIECES_MAX ? wanted : PIECES_MAX;
}

/* Tries cuts with these counts in every combination; a count of 0 stays 0. */
struct streams_time streams_best(const struct streams_setup *setup)
{
    struct world w = setup->world;
    uint32_t others = pieces_max(setup->most.others), own = pieces_max(setup->most.own);
    uint32_t remote_max = w.nodes > 1 ? others : 0;
    uint32_t local_max = w.gpus_per_node > 1 ? others : 0;
    uint32_t own_max = setup->collective == COLLECTIVE_ALL_REDUCE ? own : 1;
    struct streams_time best = {.time_ps = -1};

    for (uint32_t whole = 0; whole < 2; whole++)
        for (uint32_t r = remote_max > 0; r <= remote_max; r = r ? 2 * r : 1)
            for (uint32_t n = local_max > 0; n <= local_max; n = n ? 2 * n : 1)
                for (uint32_t o = 1; o <= own_max; o *= 2) {
                    struct streams_cut cut = {whole, r, n, o};
                    struct streams_time t = streams_time(setup, cut);
                    if (best.time_ps < 0 || t.time_ps < best.time_ps)
                        best = t;
                }
    return best;
}

void streams_cut_print(const struct streams_cut *cut, char *out, size_t out_bytes)
{
    char own[32] = "";

    if (cut->own > 1)
        snprintf(own, sizeof(own), ", own rows in %u", cut->own);
    if (cut->remote + cut->local == 0)
        snprintf(out, out_bytes, "one GPU");
    else if (cut->whole)
        snprintf(out, out_bytes, "no overlap");
    else if (cut->remote && cut->local)
        snprintf(out, out_bytes, "%u remote + %u local pieces%s", cut->remote, cut->local, own);
    else
        snprintf(out, out_bytes, "%u piece%s%s", cut->remote + cut->local, cut->remote + cut->local == 1 ? "" : "s",
                 own);
}
