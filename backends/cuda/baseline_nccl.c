/* NCCL and cuBLAS in sequence, one stream a device. */
#include "backends/cuda/baseline.h"

enum status baseline_multiply(struct baseline_rig *b, uint32_t rank, uint64_t row, uint64_t rows, uint32_t out,
                              uint64_t out_row)
{
    struct device *d = b->rig.ranks[rank].device;
    const struct problem *s = b->job.problem;

    if (rows == 0)
        return ST_OK;
    b->calls++;
    TRY_CUDA(&b->rig, cudaSetDevice(d->index));
    if (!cublas_multiply(&b->blas[d - b->rig.devices], d->stream, rows, s->n, s->k, baseline_at(b, rank, b->a, row),
                         baseline_at(b, rank, b->b, 0), baseline_at(b, rank, out, out_row)))
        return rig_fail(&b->rig, ST_ENVIRONMENT, "cuda: cuBLAS refused a product of %llu x %llu x %llu",
                        (unsigned long long)rows, (unsigned long long)s->n, (unsigned long long)s->k);
    return ST_OK;
}

enum status baseline_open_nccl(struct baseline_rig *b)
{
    char why[256];

    if (b->ranks == 1)
        return ST_OK; /* nobody to talk to */
    if (b->rig.device_count < b->ranks || b->rig.options->shares > 1)
        return rig_fail(&b->rig, ST_UNSUPPORTED, "NCCL wants a GPU for every rank: %u ranks, %u devices", b->ranks,
                        b->rig.device_count);
    if (!nccl_open(&b->nccl, b->ranks, why, sizeof why))
        return rig_fail(&b->rig, ST_UNSUPPORTED, "%s", why);
    return ST_OK;
}

static const char *collect(struct baseline_rig *b, const struct nccl_rank *ranks)
{
    const struct problem *s = b->job.problem;
    bool gathers = b->job.kernel->collective == COLLECTIVE_ALL_GATHER;
    uint64_t counts[NCCL_RANKS_MAX];

    for (uint32_t i = 0; i < b->ranks; i++)
        counts[i] = baseline_rows(b, i) * (gathers ? s->k : s->n);
    if (gathers)
        return nccl_gather_parts(&b->nccl, ranks, counts);
    if (b->job.kernel->collective == COLLECTIVE_REDUCE_SCATTER)
        return nccl_reduce_parts(&b->nccl, ranks, counts);
    return nccl_reduce_all(&b->nccl, ranks, s->m * s->n);
}

enum status baseline_enqueue_collective(struct rig *r)
{
    struct baseline_rig *b = (struct baseline_rig *)r;
    bool gathers = b->job.kernel->collective == COLLECTIVE_ALL_GATHER;
    uint32_t from = gathers ? b->a : b->p, to = gathers ? b->a : b->c;
    struct nccl_rank ranks[NCCL_RANKS_MAX];
    const char *why;

    for (uint32_t i = 0; i < b->ranks; i++)
        ranks[i] = (struct nccl_rank){.from = baseline_at(b, i, from, gathers ? baseline_first_row(b, i) : 0),
                                      .to = baseline_at(b, i, to, 0),
                                      .stream = b->rig.ranks[i].device->stream};
    b->calls += b->ranks;
    why = collect(b, ranks);
    return *why ? rig_fail(&b->rig, ST_ENVIRONMENT, "cuda: NCCL: %s", why) : ST_OK;
}

static enum status multiply_all(struct baseline_rig *b, uint32_t out)
{
    for (uint32_t i = 0; i < b->ranks; i++)
        TRY(baseline_multiply(b, i, 0, b->job.problem->m, out, 0));
    return ST_OK;
}

enum status baseline_enqueue_nccl(struct rig *r)
{
    struct baseline_rig *b = (struct baseline_rig *)r;

    if (b->ranks == 1)
        return multiply_all(b, b->c);
    if (b->job.kernel->collective == COLLECTIVE_ALL_GATHER) {
        TRY(baseline_enqueue_collective(r));
        return multiply_all(b, b->c);
    }
    TRY(multiply_all(b, b->p));
    return baseline_enqueue_collective(r);
}
