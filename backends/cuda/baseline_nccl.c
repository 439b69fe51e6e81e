/* NCCL and cuBLAS as baselines call them. */
#include "backends/cuda/baseline.h"

enum status baseline_compute(struct baseline_rig *b, uint32_t rank, const struct baseline_product *p)
{
    struct device *d = b->rig.ranks[rank].device;

    if (p->m == 0)
        return ST_OK;
    b->calls++;
    TRY_CUDA(&b->rig, cudaSetDevice(d->index));
    if (!cublas_multiply(&b->blas[d - b->rig.devices], d->stream, p->m, p->n, p->k, p->x, p->w, p->out))
        return rig_fail(&b->rig, ST_ENVIRONMENT, "cuda: cuBLAS refused a product of %llu x %llu x %llu",
                        (unsigned long long)p->m, (unsigned long long)p->n, (unsigned long long)p->k);
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

struct nccl_rank baseline_nccl_rank(const struct baseline_rig *b, uint32_t rank, uint32_t from, uint64_t from_row,
                                    uint32_t to, uint64_t to_row)
{
    return (struct nccl_rank){.from = baseline_at(b, rank, from, from_row),
                              .to = baseline_at(b, rank, to, to_row),
                              .stream = b->rig.ranks[rank].device->stream};
}

enum status baseline_nccl_called(struct baseline_rig *b, const char *why)
{
    b->calls += b->ranks;
    return *why ? rig_fail(&b->rig, ST_ENVIRONMENT, "cuda: NCCL: %s", why) : ST_OK;
}
