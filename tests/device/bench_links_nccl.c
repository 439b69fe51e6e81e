#include "bench_links.h"

#include <stdbool.h>
#include <stdint.h>

#include "backends/cuda/nccl.h"
#include "bench_contest.h"
#include "core/statistics/stats.h"

#define BYTES_MIN (UINT64_C(1) << 10) /* of the largest buffer, as nccl-tests counts */
#define BYTES_MAX (UINT64_C(1) << 30)
#define ITERATIONS 20

struct ring {
    struct nccl nccl;
    unsigned gpus;
    struct nccl_rank ranks[NCCL_RANKS_MAX];
    cudaEvent_t begin[NCCL_RANKS_MAX], end[NCCL_RANKS_MAX];
};

struct nccl_case {
    const char *name;
    double (*bus)(unsigned gpus); /* busbw / algbw, as nccl-tests has it */
    const char *(*call)(struct ring *r, uint64_t elements);
};

static double share(unsigned gpus)
{
    return (gpus - 1.0) / gpus;
}

static double twice_share(unsigned gpus)
{
    return 2 * share(gpus);
}

static const char *gather(struct ring *r, uint64_t elements)
{
    uint64_t counts[NCCL_RANKS_MAX];

    for (unsigned i = 0; i < r->gpus; i++)
        counts[i] = elements / r->gpus;
    return nccl_gather_parts(&r->nccl, r->ranks, counts);
}

static const char *scatter(struct ring *r, uint64_t elements)
{
    uint64_t counts[NCCL_RANKS_MAX];

    for (unsigned i = 0; i < r->gpus; i++)
        counts[i] = elements / r->gpus;
    return nccl_reduce_parts(&r->nccl, r->ranks, counts);
}

static const char *reduce(struct ring *r, uint64_t elements)
{
    return nccl_reduce_all(&r->nccl, r->ranks, elements);
}

static const struct nccl_case collectives[] = {
    {"all_gather", share, gather}, {"reduce_scatter", share, scatter}, {"all_reduce", twice_share, reduce}, {0}};

static void open_ring(struct ring *r, unsigned gpus)
{
    char why[256];

    must(nccl_open(&r->nccl, gpus, why, sizeof why), "NCCL", why);
    r->gpus = gpus;
    for (unsigned i = 0; i < gpus; i++) {
        must_cuda(cudaSetDevice((int)i), "device");
        must_cuda(cudaMalloc(&r->ranks[i].from, BYTES_MAX), "memory");
        must_cuda(cudaMalloc(&r->ranks[i].to, BYTES_MAX), "memory");
        must_cuda(cudaMemset(r->ranks[i].from, 0, BYTES_MAX), "memory");
        must_cuda(cudaStreamCreateWithFlags(&r->ranks[i].stream, cudaStreamNonBlocking), "stream");
        must_cuda(cudaEventCreate(&r->begin[i]), "event");
        must_cuda(cudaEventCreate(&r->end[i]), "event");
    }
}

static void close_ring(struct ring *r)
{
    for (unsigned i = 0; i < r->gpus; i++) {
        cudaSetDevice((int)i);
        cudaFree(r->ranks[i].from);
        cudaFree(r->ranks[i].to);
        cudaEventDestroy(r->begin[i]);
        cudaEventDestroy(r->end[i]);
        cudaStreamDestroy(r->ranks[i].stream);
    }
    nccl_close(&r->nccl);
}

static void record(struct ring *r, cudaEvent_t *events)
{
    for (unsigned i = 0; i < r->gpus; i++) {
        must_cuda(cudaSetDevice((int)i), "device");
        must_cuda(cudaEventRecord(events[i], r->ranks[i].stream), "event");
    }
}

/* Of a call among so many back to back; the slowest GPU's; ps. */
static uint64_t time_calls(struct ring *r, const struct nccl_case *c, uint64_t elements)
{
    float ms, most = 0;

    record(r, r->begin);
    for (int i = 0; i < ITERATIONS; i++) {
        const char *why = c->call(r, elements);

        must(why[0] == '\0', c->name, why);
    }
    record(r, r->end);
    for (unsigned i = 0; i < r->gpus; i++) {
        must_cuda(cudaSetDevice((int)i), "device");
        must_cuda(cudaStreamSynchronize(r->ranks[i].stream), c->name);
        must_cuda(cudaEventElapsedTime(&ms, r->begin[i], r->end[i]), c->name);
        most = ms > most ? ms : most;
    }
    return (uint64_t)(most * 1e9 / ITERATIONS);
}

static void bench_size(FILE *out, struct ring *r, const struct nccl_case *c, uint64_t bytes, const char *hardware)
{
    uint64_t ps[1 + LINKS_SAMPLES];
    struct stats t;
    double gbps;

    for (int i = 0; i < 1 + LINKS_SAMPLES; i++)
        ps[i] = time_calls(r, c, bytes / 2);
    t = stats_of(ps + 1, LINKS_SAMPLES); /* the first warms up */
    gbps = (double)bytes / (double)t.median * 1e3;
    fprintf(out,
            "bench_links,\"%s\",1,%u,%s,,bf16,%llu,%.2f,%.2f,%.2f,\"one process; median of %d, %.2f to %.2f us\"\n",
            hardware, r->gpus, c->name, (unsigned long long)bytes, (double)t.median / 1e6, gbps, gbps * c->bus(r->gpus),
            LINKS_SAMPLES, (double)t.min / 1e6, (double)t.max / 1e6);
}

void bench_links_nccl(FILE *out, unsigned gpus)
{
    struct cudaDeviceProp properties;
    struct ring r = {0};
    char hardware[400];

    open_ring(&r, gpus);
    must_cuda(cudaGetDeviceProperties(&properties, 0), "device");
    snprintf(hardware, sizeof hardware, "%u x %s, NCCL %d.%d.%d", gpus, properties.name, r.nccl.version / 10000,
             r.nccl.version / 100 % 100, r.nccl.version % 100);
    fprintf(out, "source_url,hardware,nodes,gpus_per_node,collective,algo_if_known,dtype,size_bytes,time_us,"
                 "algbw_GBps,busbw_GBps,note\n");
    for (const struct nccl_case *c = collectives; c->name; c++)
        for (uint64_t bytes = BYTES_MIN; bytes <= BYTES_MAX; bytes *= 4)
            bench_size(out, &r, c, bytes, hardware);
    close_ring(&r);
}
