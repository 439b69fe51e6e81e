/* What one writes by hand: copy engines move rows between the GPUs of a node while cuBLAS computes on other ones, and
 * a kernel adds what has come.  Each rank begins with the next rank's rows, so that links share the load evenly.
 *
 *   gather   own rows at once; each piece of the others' when its copies have arrived
 *   reduce   the others' rows piece by piece, each copied to its owner's inbox while the next is computed; own rows
 *            last, then the sum; an all-reduce copies sums to everybody, piece by piece */
#include "backends/cuda/baseline.h"

#include <stdlib.h>

/* ---- lanes ---- */

#define LANE_EVENTS(lane)                                                                                              \
    {                                                                                                                  \
        &(lane)->piece, &(lane)->sent, &(lane)->copied, &(lane)->added[0], &(lane)->added[1]                           \
    }

static enum status open_lane(struct baseline_rig *b, struct baseline_lane *lane)
{
    cudaEvent_t *const events[] = LANE_EVENTS(lane);

    TRY_CUDA(&b->rig, cudaStreamCreateWithFlags(&lane->copies, cudaStreamNonBlocking));
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        TRY_CUDA(&b->rig, cudaEventCreateWithFlags(events[i], cudaEventDisableTiming));
    return ST_OK;
}

enum status baseline_open_streams(struct baseline_rig *b)
{
    b->lanes = calloc(b->ranks, sizeof *b->lanes);
    if (!b->lanes)
        return rig_fail(&b->rig, ST_MEMORY, "cuda: no memory for %u ranks' streams", b->ranks);
    for (uint32_t i = 0; i < b->rig.device_count; i++) {
        TRY_CUDA(&b->rig, cudaSetDevice(b->rig.devices[i].index));
        TRY_CUDA(&b->rig, cudaEventCreateWithFlags(&b->forked[i], cudaEventDisableTiming));
    }
    for (uint32_t i = 0; i < b->ranks; i++) {
        TRY_CUDA(&b->rig, cudaSetDevice(b->rig.ranks[i].device->index));
        TRY(open_lane(b, &b->lanes[i]));
    }
    return ST_OK;
}

static void close_event(cudaEvent_t event)
{
    if (event)
        cudaEventDestroy(event);
}

static void close_lane(struct baseline_lane *lane)
{
    cudaEvent_t *const events[] = LANE_EVENTS(lane);

    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        close_event(*events[i]);
    if (lane->copies)
        cudaStreamDestroy(lane->copies);
}

void baseline_close_streams(struct baseline_rig *b)
{
    for (uint32_t i = 0; b->lanes && i < b->ranks; i++)
        close_lane(&b->lanes[i]);
    for (uint32_t i = 0; i < DEVICES_MAX; i++)
        close_event(b->forked[i]);
    free(b->lanes);
    b->lanes = NULL;
}

/* `after` goes on when what `before` has been given so far is done. */
static enum status follow(struct baseline_rig *b, cudaStream_t before, cudaEvent_t event, cudaStream_t after)
{
    b->calls += 2;
    TRY_CUDA(&b->rig, cudaEventRecord(event, before));
    TRY_CUDA(&b->rig, cudaStreamWaitEvent(after, event, 0));
    return ST_OK;
}

static cudaStream_t stream_of(const struct baseline_rig *b, uint32_t rank)
{
    return b->rig.ranks[rank].device->stream;
}

static enum status select_device(struct baseline_rig *b, uint32_t rank)
{
    TRY_CUDA(&b->rig, cudaSetDevice(b->rig.ranks[rank].device->index));
    return ST_OK;
}

/* ---- rows ---- */

/* Other ranks' rows in the order in which a rank takes them: from behind its own to the last one, then from the
 * first.  Positions [begin, end) of that order. */
struct stretch {
    uint64_t begin, end;
};

/* What stands at one position: rows of one owner. */
struct run {
    uint32_t owner;
    uint64_t row, rows;
};

static uint64_t others(const struct baseline_rig *b, uint32_t rank)
{
    return b->job.problem->m - baseline_rows(b, rank);
}

static struct stretch piece_of(const struct baseline_rig *b, uint32_t rank, uint32_t i)
{
    uint64_t rows = others(b, rank);

    return (struct stretch){part_begin(rows, b->cut.others, i), part_begin(rows, b->cut.others, i + 1)};
}

static struct run run_at(const struct baseline_rig *b, uint32_t rank, struct stretch s)
{
    uint64_t behind = baseline_first_row(b, rank) + baseline_rows(b, rank);
    struct run run = {.row = (behind + s.begin) % b->job.problem->m};

    while (baseline_first_row(b, run.owner + 1) <= run.row)
        run.owner++;
    run.rows = min_u64(s.end - s.begin, baseline_first_row(b, run.owner + 1) - run.row);
    return run;
}

/* Into the same rows of `out`; at most two products, for the order may wrap. */
static enum status multiply_others(struct baseline_rig *b, uint32_t rank, struct stretch s, uint32_t out)
{
    while (s.begin < s.end) {
        struct run run = run_at(b, rank, s);
        uint64_t rows = min_u64(s.end - s.begin, b->job.problem->m - run.row);

        TRY(baseline_multiply(b, rank, run.row, rows, out, run.row));
        s.begin += rows;
    }
    return ST_OK;
}

static enum status copy_rows(struct baseline_rig *b, uint32_t rank, void *to, const void *from, uint64_t rows,
                             uint64_t cols)
{
    b->calls++;
    TRY_CUDA(&b->rig,
             cudaMemcpyAsync(to, from, rows * cols * sizeof(uint16_t), cudaMemcpyDefault, b->lanes[rank].copies));
    return ST_OK;
}

/* ---- gather ---- */

static enum status pull(struct baseline_rig *b, uint32_t rank, struct stretch s)
{
    while (s.begin < s.end) {
        struct run run = run_at(b, rank, s);

        TRY(copy_rows(b, rank, baseline_at(b, rank, b->a, run.row), baseline_at(b, run.owner, b->a, run.row), run.rows,
                      b->job.problem->k));
        s.begin += run.rows;
    }
    return follow(b, b->lanes[rank].copies, b->lanes[rank].piece, stream_of(b, rank));
}

static enum status gather(struct baseline_rig *b, uint32_t rank)
{
    uint64_t first = baseline_first_row(b, rank);

    TRY(select_device(b, rank));
    if (b->cut.whole) {
        TRY(pull(b, rank, (struct stretch){0, others(b, rank)}));
        return baseline_multiply(b, rank, 0, b->job.problem->m, b->c, 0);
    }
    TRY(baseline_multiply(b, rank, first, baseline_rows(b, rank), b->c, first));
    for (uint32_t i = 0; i < b->cut.others; i++) {
        TRY(pull(b, rank, piece_of(b, rank, i)));
        TRY(multiply_others(b, rank, piece_of(b, rank, i), b->c));
    }
    return ST_OK;
}

/* ---- reduce ---- */

/* Where a row of `owner` stands in its inbox when it comes from `rank`. */
static void *inbox_at(const struct baseline_rig *b, uint32_t owner, uint32_t rank, uint64_t row)
{
    uint64_t slot = (rank + b->ranks - owner - 1) % b->ranks;

    return baseline_at(b, owner, b->inbox, slot * baseline_inbox_rows(b) + row - baseline_first_row(b, owner));
}

static enum status push(struct baseline_rig *b, uint32_t rank, struct stretch s)
{
    TRY(follow(b, stream_of(b, rank), b->lanes[rank].piece, b->lanes[rank].copies));
    while (s.begin < s.end) {
        struct run run = run_at(b, rank, s);

        TRY(copy_rows(b, rank, inbox_at(b, run.owner, rank, run.row), baseline_at(b, rank, b->p, run.row), run.rows,
                      b->job.problem->n));
        s.begin += run.rows;
    }
    return ST_OK;
}

/* What was stored in this copy of the inboxes two epochs ago has been added. */
static enum status await_inboxes(struct baseline_rig *b, uint32_t rank)
{
    for (uint32_t i = 0; i < b->ranks; i++)
        TRY_CUDA(&b->rig, cudaStreamWaitEvent(b->lanes[rank].copies, b->lanes[i].added[b->rig.epoch % 2], 0));
    b->calls += b->ranks;
    return ST_OK;
}

static enum status reduce_others(struct baseline_rig *b, uint32_t rank)
{
    struct stretch all = {0, others(b, rank)};

    TRY(select_device(b, rank));
    TRY(await_inboxes(b, rank));
    if (b->cut.whole) {
        TRY(baseline_multiply(b, rank, 0, b->job.problem->m, b->p, 0));
        TRY(push(b, rank, all));
    }
    for (uint32_t i = 0; !b->cut.whole && i < b->cut.others; i++) {
        TRY(multiply_others(b, rank, piece_of(b, rank, i), b->p));
        TRY(push(b, rank, piece_of(b, rank, i)));
    }
    b->calls++;
    TRY_CUDA(&b->rig, cudaEventRecord(b->lanes[rank].sent, b->lanes[rank].copies));
    return ST_OK;
}

static enum status await_peers(struct baseline_rig *b, uint32_t rank)
{
    for (uint32_t i = 0; i < b->ranks; i++)
        TRY_CUDA(&b->rig, cudaStreamWaitEvent(stream_of(b, rank), b->lanes[i].sent, 0));
    b->calls += b->ranks;
    return ST_OK;
}

static enum status add(struct baseline_rig *b, uint32_t rank, uint64_t row, uint64_t rows)
{
    uint64_t first = baseline_first_row(b, rank), n = b->job.problem->n;
    bool scatters = b->job.kernel->collective == COLLECTIVE_REDUCE_SCATTER;
    struct gpu_sum sum = {
        .out = (uintptr_t)baseline_at(b, rank, b->c, scatters ? row - first : row),
        .first = (uintptr_t)baseline_at(b, rank, b->p, row),
        .rest = (uintptr_t)baseline_at(b, rank, b->inbox, row - first),
        .stride = baseline_inbox_rows(b) * n,
        .count = b->ranks - 1,
        .elements = rows * n,
    };

    b->calls++;
    TRY_CUDA(&b->rig, gpu_sum_launch(&sum, stream_of(b, rank)));
    return ST_OK;
}

static enum status publish(struct baseline_rig *b, uint32_t rank, uint64_t row, uint64_t rows)
{
    TRY(follow(b, stream_of(b, rank), b->lanes[rank].piece, b->lanes[rank].copies));
    for (uint32_t i = 1; i < b->ranks; i++)
        TRY(copy_rows(b, rank, baseline_at(b, (rank + i) % b->ranks, b->c, row), baseline_at(b, rank, b->c, row), rows,
                      b->job.problem->n));
    return ST_OK;
}

static enum status reduce_own(struct baseline_rig *b, uint32_t rank)
{
    bool all = b->job.kernel->collective == COLLECTIVE_ALL_REDUCE;

    TRY(select_device(b, rank));
    for (uint32_t i = 0; i < b->cut.own; i++) {
        uint64_t row = baseline_first_row(b, rank) + part_begin(baseline_rows(b, rank), b->cut.own, i);
        uint64_t rows = part_size(baseline_rows(b, rank), b->cut.own, i);

        if (!b->cut.whole)
            TRY(baseline_multiply(b, rank, row, rows, b->p, row));
        if (i == 0)
            TRY(await_peers(b, rank));
        TRY(add(b, rank, row, rows));
        if (all)
            TRY(publish(b, rank, row, rows));
    }
    b->calls++;
    TRY_CUDA(&b->rig, cudaEventRecord(b->lanes[rank].added[b->rig.epoch % 2], stream_of(b, rank)));
    return ST_OK;
}

/* ---- an epoch ---- */

static enum status fork_copies(struct baseline_rig *b)
{
    for (uint32_t i = 0; i < b->rig.device_count; i++)
        TRY_CUDA(&b->rig, cudaEventRecord(b->forked[i], b->rig.devices[i].stream));
    for (uint32_t i = 0; i < b->ranks; i++)
        TRY_CUDA(&b->rig,
                 cudaStreamWaitEvent(b->lanes[i].copies, b->forked[b->rig.ranks[i].device - b->rig.devices], 0));
    b->calls += b->ranks;
    return ST_OK;
}

static enum status join_copies(struct baseline_rig *b)
{
    for (uint32_t i = 0; i < b->ranks; i++)
        TRY(follow(b, b->lanes[i].copies, b->lanes[i].copied, stream_of(b, i)));
    return ST_OK;
}

static enum status for_each_rank(struct baseline_rig *b, enum status (*work)(struct baseline_rig *b, uint32_t rank))
{
    for (uint32_t i = 0; i < b->ranks; i++)
        TRY(work(b, i));
    return ST_OK;
}

enum status baseline_enqueue_streams(struct rig *r)
{
    struct baseline_rig *b = (struct baseline_rig *)r;

    if (b->ranks == 1)
        return baseline_multiply(b, 0, 0, b->job.problem->m, b->c, 0);
    TRY(fork_copies(b));
    if (b->job.kernel->collective == COLLECTIVE_ALL_GATHER) {
        TRY(for_each_rank(b, gather));
    } else {
        TRY(for_each_rank(b, reduce_others));
        TRY(for_each_rank(b, reduce_own));
    }
    return join_copies(b);
}
