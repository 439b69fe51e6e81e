/* All ranks do the same at the same time, each starting with a different peer so that ports share
 * the load evenly; so one rank's four lanes stand for all.  Work on a lane is done in the order of
 * the calls:
 *
 *   host      issues every call
 *   compute   cuBLAS calls and the kernels that add received rows
 *   copy      one copy engine at a time moves rows between GPUs of the node
 *   net       NCCL send / receive between ranks of a rail, one kernel a piece
 *
 * Between nodes everything goes rail by rail.  Gather: a piece arrives from the other nodes' GPU of
 * the same index, then the node's GPUs copy it from each other.  Reduce: the node's GPUs copy
 * partial rows to the one that stands for their owner, it adds them and sends one sum to the owner.
 * A lane that waits for another pays the event hop. */
#include "sim/streams.h"

#include <stdio.h>

#include "sim/gemm_cost.h"
#include "sim/nccl.h"

#define PIECES_MAX 32
#define BF16_BYTES 2.0
#define FOREVER_PS 1e15

struct lanes {
    const struct streams_setup *setup;
    struct streams_cut cut;
    double host, compute, copy, net; /* when each is free */
    uint32_t calls;
    double hop_ps;
    uint64_t sms, step_ps;
    double nodes, gpus, peers; /* peers: the other GPUs of the node */
    uint64_t shard_rows;       /* of the rank with the most */
    double row_bytes;          /* of what travels */
};

static double later(double a, double b)
{
    return a > b ? a : b;
}

static double transfer_ps(double bytes, double rate)
{
    double seconds = bytes / rate;

    return seconds < FOREVER_PS / 1e12 ? seconds * 1e12 : FOREVER_PS;
}

/* When the call that comes next can start at the earliest. */
static double issue(struct lanes *l, uint32_t calls)
{
    double start = l->host;

    l->calls += calls;
    l->host += (double)calls * (double)l->setup->issue_ps;
    return start;
}

/* Runs on `*lane` once it is free and `ready` has come; returns the end. */
static double run(struct lanes *l, double *lane, double ready, uint32_t calls, double cost_ps)
{
    *lane = later(*lane, later(ready, issue(l, calls))) + cost_ps;
    return *lane;
}

static double gemm(struct lanes *l, double ready, uint64_t rows)
{
    struct problem piece = l->setup->problem;

    piece.m = rows;
    return run(l, &l->compute, ready, 1,
               (double)gemm_piece_ps(l->setup->machine, piece, l->sms, l->step_ps));
}

/* A piece's GEMM, unless the one call for all rows covers it. */
static double gemm_of_piece(struct lanes *l, double ready, uint64_t rows)
{
    return l->cut.whole ? l->compute : gemm(l, ready, rows);
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
               (double)calls * (double)m->nvlink.engine_ps +
                   transfer_ps(rows * l->row_bytes, rate));
}

static double send(struct lanes *l, double ready, double rows)
{
    const struct machine *m = l->setup->machine;
    double rate = m->nic.rate * (double)m->nic.per_gpu;

    return run(l, &l->net, ready, 1,
               (double)nccl_send_recv_fixed_ps(m) + transfer_ps(rows * l->row_bytes, rate));
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
    gemm_of_piece(l, 0, l->shard_rows);
    for (uint32_t i = 0; i < l->cut.local; i++) {
        uint64_t rows = part_size(local_rows(l), l->cut.local, i);
        double here = copy(l, l->hop_ps, (double)rows, local_copies);
        gemm_of_piece(l, here + l->hop_ps, rows);
    }
    for (uint32_t i = 0; i < l->cut.remote; i++) {
        uint64_t rows = part_size(remote_rows(l), l->cut.remote, i);
        double here = spread(l, arrived[i], (double)rows);
        gemm_of_piece(l, here + l->hop_ps, rows);
    }
    if (l->cut.whole)
        gemm(l, later(l->copy, l->net) + l->hop_ps, l->setup->problem.m);
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
        double done = gemm_of_piece(l, 0, rows);
        double here = spread(l, done, (double)rows);
        relay_send(l, &pending);
        pending = (struct relay){.ready = here, .rows = (double)rows};
    }
    for (uint32_t i = 0; i < l->cut.local; i++) {
        uint64_t rows = part_size(local_rows(l), l->cut.local, i);
        double done = gemm_of_piece(l, 0, rows);
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
        gemm(l, 0, l->setup->problem.m);
    reduce_others(l);
    double arrived = later(l->copy, l->net) + l->hop_ps;
    for (uint32_t i = 0; i < l->cut.own; i++) {
        uint64_t rows = part_size(l->shard_rows, l->cut.own, i);
        gemm_of_piece(l, 0, rows);
        double done = add(l, arrived, (double)rows, sources);
        if (to_all)
            broadcast(l, done, (double)rows);
    }
}

static void lanes_init(struct lanes *l, const struct streams_setup *setup, struct streams_cut cut)
{
    const struct machine *m = setup->machine;
    struct world w = setup->world;
    bool gathers = setup->collective == COLLECTIVE_ALL_GATHER;

    *l = (struct lanes){
        .setup = setup,
        .cut = cut,
        .host = (double)setup->launch_ps,
        .hop_ps = (double)m->host.event_ps,
        .sms = m->gpu.sms,
        .nodes = w.nodes,
        .gpus = w.gpus_per_node,
        .peers = w.gpus_per_node - 1,
        .shard_rows = ceil_div(setup->problem.m, world_ranks(w)),
        .row_bytes = (double)(gathers ? setup->problem.k : setup->problem.n) * BF16_BYTES,
    };
    /* NCCL's CTAs stay on their SMs while they wait for the network. */
    if (w.nodes > 1 && !cut.whole)
        l->sms = max_u64(1, l->sms - min_u64(l->sms, nccl_send_recv_channels(m)));
    l->step_ps = gemm_step_ps(m, setup->problem, m->gpu.sms);
}

struct streams_time streams_time(const struct streams_setup *setup, struct streams_cut cut)
{
    struct lanes l;

    lanes_init(&l, setup, cut);
    if (world_ranks(setup->world) == 1)
        gemm(&l, 0, setup->problem.m);
    else if (setup->collective == COLLECTIVE_ALL_GATHER)
        gather(&l);
    else
        reduce(&l, setup->collective == COLLECTIVE_ALL_REDUCE);
    double device = later(l.compute, later(l.copy, l.net));
    double host = (double)l.calls * (double)setup->period_ps;
    return (struct streams_time){.time_ps = later(device, host), .calls = l.calls, .cut = cut};
}

/* Tries cuts with these counts in every combination; a count of 0 stays 0. */
struct streams_time streams_best(const struct streams_setup *setup)
{
    struct world w = setup->world;
    uint32_t remote_max = w.nodes > 1 ? PIECES_MAX : 0;
    uint32_t local_max = w.gpus_per_node > 1 ? PIECES_MAX : 0;
    uint32_t own_max = setup->collective == COLLECTIVE_ALL_REDUCE ? PIECES_MAX : 1;
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
        snprintf(out, out_bytes, "%u piece%s%s", cut->remote + cut->local,
                 cut->remote + cut->local == 1 ? "" : "s", own);
}
