/* Times of the cuda backend on one GPU, against cuBLAS and the unfused forms.  A line of JSON a
 * contestant on stdout, all samples in it; a summary on stderr.  bench_contest.h says how times are taken.
 *
 *   bench_cuda [gemm] [fused] [put] [staged] [groups] [moe] [trace]     default: all */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_contest.h"
#include "bench_program.h"
#include "kernels/kernels.h"

#define SKIPPED 77

/* ---- GEMM against cuBLAS ---- */

static struct contestant *enter_gemm(struct contest *c, const char *name, uint32_t ranks, struct problem problem,
                                     uint64_t group, bool flags, const char *options)
{
    struct contestant *x = contest_enter(c, name, problem);

    bench_gemm(&x->program, ranks, &x->problem, group, flags);
    contest_prepare(x, &bench_kernel, options);
    return x;
}

static void contest_gemm(struct contest *c, struct cublas *blas, struct problem problem)
{
    struct contestant *theirs;

    c->bench = "gemm";
    snprintf(c->shape, sizeof c->shape, "%llux%llux%llu", (unsigned long long)problem.m, (unsigned long long)problem.n,
             (unsigned long long)problem.k);
    c->flop = 2.0 * problem.m * problem.n * problem.k;
    theirs = contest_enter_cublas(c, "cublas", blas, problem, 1, NULL);
    enter_gemm(c, "program", 1, problem, 16, false, "");
    contest_compare(c, enter_gemm(c, "with flags", 1, problem, 16, true, ""), theirs);
    contest_compare(c, c->all[1], theirs);
    enter_gemm(c, "prefetch 4", 1, problem, 16, false, "prefetch=4");
    contest_hold(c);
}

static void bench_gemms(struct contest *c, struct cublas *blas)
{
    static const struct problem shapes[] = {
        {.m = 8192, .n = 8192, .k = 8192},  {.m = 16384, .n = 8192, .k = 4096}, {.m = 4096, .n = 4096, .k = 4096},
        {.m = 8192, .n = 28672, .k = 8192}, {.m = 8192, .n = 8192, .k = 1024},
    };

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        contest_gemm(c, blas, shapes[i]);
}

/* ---- fused kernels: four ranks on one GPU, a quarter of its SMs each ----
 *
 * Bounds: all the products as one GEMM of the whole GPU, by a program and by cuBLAS; and each
 * rank's product by itself on its quarter ("ranks' GEMMs"), which also pays for four sets of
 * operands in one cache. */

struct fused_case {
    const struct kernel *kernel;
    const char *params;
    struct problem problem, whole;
};

static void contest_fused(struct contest *c, struct cublas *blas, const struct fused_case *f)
{
    struct world world = {1, 4};

    c->bench = f->kernel->name;
    snprintf(c->shape, sizeof c->shape, "1x4 %llux%llux%llu", (unsigned long long)f->problem.m,
             (unsigned long long)f->problem.n, (unsigned long long)f->problem.k);
    c->flop = 2.0 * f->whole.m * f->whole.n * f->whole.k;
    enter_gemm(c, "one GEMM", 1, f->whole, 16, false, "");
    contest_enter_cublas(c, "cublas", blas, f->whole, 1, NULL);
    enter_gemm(c, "ranks' GEMMs", world_ranks(world), f->problem, 8, false, "");
    contest_enter_kernel(c, "fused", f->kernel, f->params, FORM_FUSED, world, f->problem);
    contest_enter_kernel(c, "unfused", f->kernel, f->params, FORM_UNFUSED, world, f->problem);
    contest_hold(c);
}

static void bench_fused(struct contest *c, struct cublas *blas)
{
    static const struct fused_case cases[] = {
        {&ag_gemm_kernel, "comm_sms=16 group=8", {.m = 8192, .n = 4096, .k = 8192}, {.m = 8192, .n = 16384, .k = 8192}},
        {&gemm_rs_kernel, "group=8", {.m = 8192, .n = 8192, .k = 4096}, {.m = 8192, .n = 32768, .k = 4096}},
        {&gemm_ar_kernel, "group=8", {.m = 8192, .n = 8192, .k = 4096}, {.m = 8192, .n = 32768, .k = 4096}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        contest_fused(c, blas, &cases[i]);
}

/* ---- puts ---- */

static float time_program(struct contest *c, struct program *p, const char *name, const char *options)
{
    struct contestant *x = contest_enter(c, name, (struct problem){.m = 1, .n = 1, .k = 1});
    float ms;

    x->program = *p;
    contest_prepare(x, &bench_kernel, options);
    for (int i = 0; i < WARMUPS; i++)
        contest_run_once(c, x);
    while (x->count < RUNS)
        x->ms[x->count++] = contest_run_once(c, x);
    ms = contest_median(x);
    contest_leave(c);
    return ms;
}

static float time_hops(struct contest *c, uint64_t hops, enum bench_hop kind, uint64_t bytes, const char *options)
{
    struct program p;

    bench_hops(&p, hops, kind, bytes);
    return time_program(c, &p, "hops", options) * 1000 / (float)hops;
}

static float time_puts(struct contest *c, uint64_t count, uint32_t workers)
{
    struct program p;

    bench_puts(&p, count, workers);
    return (float)count / time_program(c, &p, "puts", "fifo=1024") / 1000;
}

static void bench_put(struct contest *c)
{
    float local = time_hops(c, 1000, HOP_TASK, 0, ""), bare = time_hops(c, 1000, HOP_PUT, 0, "");
    float data = time_hops(c, 200, HOP_PUT, 16384, "");
    float slow = time_puts(c, 2000, 1), fast = time_puts(c, 60000, 16);

    printf("{\"bench\": \"put\", \"local_hop_us\": %.3f, \"put_hop_us\": %.3f, "
           "\"put_16KiB_hop_us\": %.3f, "
           "\"puts_per_us_1_worker\": %.3f, \"puts_per_us_16_workers\": %.3f, \"runs\": %d}\n",
           local, bare, data, slow, fast, RUNS);
    fprintf(stderr,
            "put      a hop by signal %.2f us, by bare put %.2f us, by a put of 16 KiB %.2f us; "
            "%.2f and %.2f M puts/s from 1 and 16 workers\n",
            local, bare, data, slow, fast);
}

/* The same over libfabric's TCP within the machine, by way of pinned memory at both ends. */
static void bench_staged_put(struct contest *c)
{
    const struct transport *t = transport_find("ofi");
    char why[256] = "built without libfabric";
    float bare, data, large;

    if (!t || transport_available(t, why, sizeof why) < 0) {
        fprintf(stderr, "put      staged: skipped: %s\n", why);
        return;
    }
    bare = time_hops(c, 200, HOP_PUT, 0, "transport=ofi");
    data = time_hops(c, 200, HOP_PUT, 16384, "transport=ofi");
    large = time_hops(c, 50, HOP_PUT, 1 << 20, "transport=ofi");
    printf("{\"bench\": \"put_staged\", \"transport\": \"ofi\", \"put_hop_us\": %.3f, "
           "\"put_16KiB_hop_us\": %.3f, \"put_1MiB_hop_us\": %.3f, \"runs\": %d}\n",
           bare, data, large, RUNS);
    fprintf(stderr,
            "put      staged over ofi: a hop by bare put %.2f us, by a put of 16 KiB %.2f us, of 1 MiB %.2f us\n", bare,
            data, large);
}

/* ---- what the records of a traced launch cost ---- */

static void leave_records(struct contestant *x)
{
    static struct trace nobody; /* is told nothing here */

    x->job.trace = &nobody;
    must(rig_create_trace(&x->rig) == ST_OK && rig_prepare_trace(&x->rig) == ST_OK, x->name, x->rig.why);
    x->rig.traced = true;
}

static void trace_gemm(struct contest *c, struct problem problem)
{
    snprintf(c->shape, sizeof c->shape, "%llux%llux%llu with flags", (unsigned long long)problem.m,
             (unsigned long long)problem.n, (unsigned long long)problem.k);
    c->flop = 2.0 * problem.m * problem.n * problem.k;
    enter_gemm(c, "untraced", 1, problem, 16, true, "");
    leave_records(enter_gemm(c, "traced", 1, problem, 16, true, ""));
    contest_hold(c);
}

static void trace_fused(struct contest *c, const struct kernel *k, const char *params, struct problem problem)
{
    const struct world world = {1, 4};

    snprintf(c->shape, sizeof c->shape, "%s 1x4 %llux%llux%llu", k->name, (unsigned long long)problem.m,
             (unsigned long long)problem.n, (unsigned long long)problem.k);
    c->flop = 8.0 * problem.m * problem.n * problem.k;
    contest_enter_kernel(c, "untraced", k, params, FORM_FUSED, world, problem);
    leave_records(contest_enter_kernel(c, "traced", k, params, FORM_FUSED, world, problem));
    contest_hold(c);
}

static void bench_trace(struct contest *c)
{
    c->bench = "trace";
    trace_gemm(c, (struct problem){.m = 4096, .n = 4096, .k = 4096});
    trace_gemm(c, (struct problem){.m = 8192, .n = 8192, .k = 1024});
    trace_fused(c, &ag_gemm_kernel, "comm_sms=16 group=8", (struct problem){.m = 8192, .n = 4096, .k = 8192});
    trace_fused(c, &gemm_rs_kernel, "group=8", (struct problem){.m = 8192, .n = 8192, .k = 4096});
}

static bool wanted(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc == 1;
}

int main(int argc, char **argv)
{
    struct contest c = {0};
    struct cublas blas = {0};
    char why[256];

    if (cuda_backend.available(why, sizeof why) != ST_OK) {
        fprintf(stderr, "bench_cuda: skipped: %s\n", why);
        return SKIPPED;
    }
    must_cuda(cudaEventCreate(&c.begin), "event");
    must_cuda(cudaEventCreate(&c.end), "event");
    if (wanted(argc, argv, "put"))
        bench_put(&c);
    if (wanted(argc, argv, "staged"))
        bench_staged_put(&c);
    if (wanted(argc, argv, "gemm") || wanted(argc, argv, "fused") || wanted(argc, argv, "groups"))
        must(cublas_open(&blas, why, sizeof why), "cublas", why);
    if (wanted(argc, argv, "gemm"))
        bench_gemms(&c, &blas);
    if (wanted(argc, argv, "fused"))
        bench_fused(&c, &blas);
    if (wanted(argc, argv, "groups"))
        bench_groups_all(&c, &blas);
    if (wanted(argc, argv, "moe"))
        bench_moe_all(&c);
    if (wanted(argc, argv, "trace"))
        bench_trace(&c);
    cublas_close(&blas);
    return 0;
}
