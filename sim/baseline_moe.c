#include "sim/baseline_moe.h"

#include <stdio.h>

#include "sim/gemm_cost.h"
#include "sim/lanes.h"
#include "sim/nccl.h"

#define BF16_BYTES 2
#define PIECES_LOG 5 /* at most 32 of them */

struct setup {
    const struct job *job;
    enum moe_way way;
    uint64_t sms;
    bool returns;       /* a feed-forward layer, whose results travel back */
    struct traffic t;   /* of a piece */
    double shard_bytes; /* of a piece's tokens on one rank */
};

/* ---- what things cost ---- */

/* Grouped send / receive: both kinds of links at once, and the slower one counts. */
static double exchange_ps(const struct setup *s, uint64_t inter_bytes, uint64_t intra_bytes, uint64_t messages)
{
    const struct machine *m = s->job->machine;
    double nics = (double)m->nic.per_gpu;
    double share = m->library.exchange;
    double inter =
        (double)inter_bytes * 1e12 / (m->nic.rate * nics * share) + (double)messages * (double)m->nic.message_ps / nics;
    double fixed = (double)(nccl_send_recv_fixed_ps(m) - (inter_bytes ? 0 : m->nic.latency_ps));

    return fixed + later_ps(inter_bytes ? inter : 0, (double)intra_bytes * 1e12 / (m->nvlink.rate * share));
}

/* By all SMs. */
static double memory_ps(const struct setup *s, double read_bytes, double written_bytes)
{
    double rate = s->job->machine->gpu.memory_rate;

    return rate > 0 ? (read_bytes + written_bytes) * 1e12 / rate : 0;
}

static double reorder_ps(const struct setup *s, uint64_t bytes)
{
    return memory_ps(s, (double)bytes, (double)bytes);
}

static uint64_t row_bytes(const struct setup *s)
{
    return s->job->problem->moe.hidden * BF16_BYTES;
}

static double gemm_part_ps(const struct setup *s, uint64_t n, uint64_t k)
{
    const struct machine *m = s->job->machine;
    struct problem all = s->job->kernel->family->rank_gemm(s->job->problem, s->job->world);
    struct problem work = {.m = s->t.tile_rows_max, .n = n, .k = k};

    return (double)gemm_piece_ps(m, work, s->sms, gemm_step_ps(m, all, m->gpu.sms));
}

static double compute_ps(const struct setup *s)
{
    uint64_t hidden = s->job->problem->moe.hidden, inter = s->job->problem->moe.inter;
    double activated = (double)(s->t.rows_max * inter * BF16_BYTES);

    if (!s->returns)
        return gemm_part_ps(s, inter, hidden);
    return gemm_part_ps(s, 2 * inter, hidden) + memory_ps(s, 2 * activated, activated) + gemm_part_ps(s, hidden, inter);
}

/* ---- the stages of a piece ---- */

static uint64_t far_ranks(const struct setup *s)
{
    return world_ranks(s->job->world) - s->job->world.gpus_per_node;
}

static double pack_ps(const struct setup *s)
{
    if (world_ranks(s->job->world) == 1)
        return 0;
    return reorder_ps(s, s->way == MOE_EACH ? s->t.inter_each_max + s->t.intra_each_max : s->t.inter_once_max);
}

static double out_ps(const struct setup *s)
{
    if (world_ranks(s->job->world) == 1)
        return 0;
    if (s->way == MOE_EACH)
        return exchange_ps(s, s->t.inter_each_max, s->t.intra_each_max, far_ranks(s));
    return (far_ranks(s) > 0 ? exchange_ps(s, s->t.inter_once_max, 0, s->job->world.nodes - 1) : 0) +
           reorder_ps(s, s->t.intra_once_max) + exchange_ps(s, 0, s->t.intra_once_max, 0);
}

/* Into the order of experts, and the work itself. */
static double work_ps(const struct setup *s)
{
    return reorder_ps(s, s->t.rows_max * row_bytes(s)) + compute_ps(s);
}

/* The way out reversed; once: sums before each step. */
static double back_ps(const struct setup *s)
{
    double rows = (double)(s->t.rows_max * row_bytes(s));

    if (!s->returns || world_ranks(s->job->world) == 1)
        return 0;
    if (s->way == MOE_EACH)
        return reorder_ps(s, s->t.rows_max * row_bytes(s)) +
               exchange_ps(s, s->t.inter_each_max, s->t.intra_each_max, far_ranks(s));
    return memory_ps(s, rows, (double)s->t.intra_once_max) + exchange_ps(s, 0, s->t.intra_once_max, 0) +
           (far_ranks(s) > 0 ? memory_ps(s, (double)s->t.intra_once_max, (double)s->t.inter_once_max) +
                                   exchange_ps(s, s->t.inter_once_max, 0, s->job->world.nodes - 1)
                             : 0);
}

static double sum_ps(const struct setup *s)
{
    double read = s->way == MOE_EACH ? s->shard_bytes * (double)s->job->problem->moe.top_k
                                     : (double)s->t.inter_once_max + s->shard_bytes;

    return s->returns ? memory_ps(s, read, s->shard_bytes) : 0;
}

/* ---- pieces on two streams ---- */

static void setup_init(struct setup *s, const struct job *job, uint64_t epoch, enum moe_way way, uint32_t pieces)
{
    const struct machine *m = job->machine;
    struct problem piece = *job->problem;

    piece.moe.tokens = ceil_div(piece.moe.tokens, pieces);
    *s = (struct setup){.job = job, .way = way, .sms = m->gpu.sms};
    s->returns = job->kernel->family == &problem_moe_ffn;
    s->shard_bytes = (double)(ceil_div(piece.moe.tokens, world_ranks(job->world)) * row_bytes(s));
    if (pieces > 1)
        s->sms = max_u64(1, s->sms - min_u64(s->sms, nccl_send_recv_channels(m)));
    job->kernel->traffic(&piece, job->world, job->seed, epoch, m->gemm.tile_m, &s->t);
}

/* The host hears how much there is, and only then starts what depends on it. */
static double sizes_ps(const struct setup *s)
{
    double launch = s->job->timing.launch ? (double)s->job->machine->host.launch_ps : 0;

    if (world_ranks(s->job->world) == 1)
        return launch;
    return launch + exchange_ps(s, far_ranks(s) > 0, 0, far_ranks(s)) + launch;
}

/* All pieces leave first; a piece's results are summed after the next one's work, so that their way is hidden. */
static double pieces_ps(const struct setup *s, uint32_t pieces)
{
    double hop = pieces > 1 ? (double)s->job->machine->host.event_ps : 0, compute = sizes_ps(s), net = compute;
    struct host_lane host = {.free_ps = compute};
    double packed[1 << PIECES_LOG], here[1 << PIECES_LOG], back = 0;

    if (s->job->timing.launch && pieces > 1)
        host.issue_ps = (double)s->job->machine->host.issue_ps;
    for (uint32_t i = 0; i < pieces; i++)
        packed[i] = lane_run(&host, &compute, 0, 1, pack_ps(s));
    for (uint32_t i = 0; i < pieces; i++)
        here[i] = lane_run(&host, &net, packed[i] + hop, 1, out_ps(s));
    for (uint32_t i = 0; i < pieces; i++) {
        double done = lane_run(&host, &compute, here[i] + hop, 2, work_ps(s));

        if (i > 0)
            lane_run(&host, &compute, back + hop, s->returns, sum_ps(s));
        back = lane_run(&host, &net, done + hop, s->returns, back_ps(s));
    }
    lane_run(&host, &compute, s->returns ? back + hop : 0, s->returns, sum_ps(s));
    return compute;
}

double moe_baseline_ps(const struct job *job, uint64_t epoch, enum moe_way way, uint32_t pieces)
{
    struct setup s;

    setup_init(&s, job, epoch, way, pieces);
    return pieces_ps(&s, pieces);
}

/* ---- a run ---- */

struct contest {
    const struct job *job;
    uint64_t count;                                 /* iterations */
    uint64_t samples[MOE_WAYS][RESULT_SAMPLES_MAX]; /* with the pieces in hand */
    double mean[MOE_WAYS];
    uint32_t pieces; /* of the best so far */
    enum moe_way way;
    double best, other; /* means, ps: of the best, and of the other way with as many pieces */
};

static void time_iterations(struct contest *c, enum moe_way way, uint32_t pieces)
{
    c->mean[way] = 0;
    for (uint64_t i = 0; i < c->count; i++) {
        double ps = moe_baseline_ps(c->job, c->job->timing.warmup + 1 + i, way, pieces);

        c->samples[way][i] = (uint64_t)(ps + 0.5);
        c->mean[way] += ps / (double)c->count;
    }
}

static void try_pieces(struct contest *c, uint32_t pieces, struct run_result *r)
{
    for (enum moe_way way = 0; way < MOE_WAYS; way++)
        time_iterations(c, way, pieces);
    for (enum moe_way way = 0; way < MOE_WAYS; way++) {
        if (c->best > 0 && (c->mean[way] >= c->best || (way == MOE_ONCE && !c->job->machine->library.dedup)))
            continue;
        c->best = c->mean[way];
        c->other = c->mean[MOE_WAYS - 1 - way];
        c->way = way;
        c->pieces = pieces;
        for (uint64_t i = 0; i < c->count; i++)
            r->sample_ps[i] = c->samples[way][i];
    }
}

static void describe(const struct contest *c, enum baseline which, struct run_result *r)
{
    static const char *const names[MOE_WAYS] = {"expanded rows", "de-duplicated"};
    char pieces[32] = "";

    if (which == BASELINE_STREAMS)
        snprintf(pieces, sizeof pieces, "%u piece%s, ", c->pieces, c->pieces > 1 ? "s" : "");
    snprintf(r->choice, sizeof r->choice, "%s%s; %s takes %.2fx", pieces, names[c->way], names[MOE_WAYS - 1 - c->way],
             c->other / c->best);
    snprintf(r->model, sizeof r->model, "%s",
             which == BASELINE_STREAMS ? "streams model; GEMM table; NCCL send/recv"
                                       : "NCCL send/recv model; GEMM table");
}

enum status moe_baseline_run(const struct job *job, enum baseline which, struct run_result *r)
{
    struct contest c = {.job = job};

    c.count = min_u64(max_u64(job->timing.iterations, 1), RESULT_SAMPLES_MAX);
    *r = (struct run_result){.status = ST_OK, .epochs = c.count, .sample_count = (uint32_t)c.count};
    for (uint32_t log = 0; log <= (which == BASELINE_STREAMS ? PIECES_LOG : 0); log++)
        try_pieces(&c, 1u << log, r);
    if (job->timing.mode == TIMING_PIPELINED) {
        r->sample_count = 1;
        r->sample_ps[0] = (uint64_t)(c.best + 0.5);
    }
    describe(&c, which, r);
    return ST_OK;
}
