/* Times of the cuda backend on one GPU, against cuBLAS and the unfused forms.  A line of JSON a
 * contestant on stdout, all samples in it; a summary on stderr.
 *
 *   bench_cuda [gemm] [fused] [put]     default: all
 *
 * The card is limited by its power: whoever runs after a pause is faster.  So each contestant gets
 * a pause, warms up, and is timed run by run with device events; contestants take turns, in rotated
 * order, and the median of all samples counts.  Inputs are dense noise.  Host launch cost is
 * excluded for all alike. */
#include <assert.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/cublas.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/rig.h"
#include "bench_program.h"
#include "core/machine.h"
#include "core/option.h"
#include "kernels/kernels.h"

#define SKIPPED 77
#define PAUSE_US 400000
#define WARMUPS 3
#define RUNS 12
#define TURNS 3
#define SAMPLES (RUNS * TURNS)
#define CONTESTANTS_MAX 8

/* ---- contestants ---- */

struct contestant {
    const char *name;
    struct program program;
    struct problem problem; /* of the program, or of the product cuBLAS computes */
    struct job job;
    struct cuda_options options;
    struct rig rig;
    struct cublas *blas; /* else the rig runs */
    void *a, *b, *c;
    float ms[SAMPLES];
    uint32_t count;
};

struct contest {
    const char *bench;
    char shape[80];
    double flop;
    struct contestant *all[CONTESTANTS_MAX];
    uint32_t count;
    cudaEvent_t begin, end;
};

static void must(bool ok, const char *what, const char *why)
{
    if (ok)
        return;
    fprintf(stderr, "bench_cuda: %s: %s\n", what, why);
    exit(1);
}

static void must_cuda(cudaError_t error, const char *what)
{
    must(error == cudaSuccess, what, cudaGetErrorString(error));
}

static struct problem same_problem(const struct problem *problem, struct world world)
{
    (void)world;
    return *problem;
}

static const struct kernel bench_kernel = {.name = "bench", .global = same_problem};

static struct contestant *enter(struct contest *c, const char *name, struct problem problem)
{
    struct contestant *x = calloc(1, sizeof *x);

    assert(x && c->count < CONTESTANTS_MAX);
    x->name = name;
    x->problem = problem;
    c->all[c->count++] = x;
    return x;
}

/* Builds the rig of x->program; inputs are noise. */
static void prepare(struct contestant *x, const struct kernel *kernel, const char *options)
{
    char copy[128], *rest = copy, why[256];

    option_defaults(cuda_backend.options, &x->options);
    snprintf(copy, sizeof copy, "%s", options);
    for (char *pair; (pair = strsep(&rest, " "));) {
        char *value = strchr(pair, '=');

        if (!value)
            continue;
        *value++ = '\0';
        must(option_parse(option_find(cuda_backend.options, pair), &x->options, value, NULL, why,
                          sizeof why) == ST_OK,
             pair, why);
    }
    x->job = (struct job){.program = &x->program,
                          .world = x->program.world,
                          .kernel = kernel,
                          .problem = &x->problem,
                          .options = &x->options,
                          .seed = 7};
    must(rig_create(&x->job, &x->rig) == ST_OK, x->name, x->rig.why);
    for (uint64_t e = 0; e < 2; e++)
        must(rig_begin(&x->rig, e, true) == ST_OK, x->name, x->rig.why);
    must_cuda(cudaDeviceSynchronize(), x->name);
}

static struct contestant *enter_kernel(struct contest *c, const char *name, const struct kernel *k,
                                       const char *params_text, enum form form, struct world world,
                                       struct problem problem)
{
    struct contestant *x = enter(c, name, problem);
    static struct machine machine;
    struct complaint complaint = {.text = ""};
    void *params = calloc(1, k->params_size);
    char copy[256], *rest = copy, why[256];

    assert(params);
    must(machine.name[0] || machine_load("hgx-h200-cx7", &machine) == ST_OK, name, "no machine");
    option_defaults(k->options, params);
    snprintf(copy, sizeof copy, "%s", params_text);
    for (char *pair; (pair = strsep(&rest, " "));) {
        char *value = strchr(pair, '=');

        if (!value)
            continue;
        *value++ = '\0';
        must(option_parse(option_find(k->options, pair), params, value, NULL, why, sizeof why) ==
                 ST_OK,
             pair, why);
    }
    must(k->emit(&x->problem, world, &machine, form, params, &x->program, &complaint) == ST_OK,
         name, complaint.text);
    free(params);
    prepare(x, k, "");
    return x;
}

static struct contestant *enter_gemm(struct contest *c, const char *name, uint32_t ranks,
                                     struct problem problem, uint64_t group, bool flags,
                                     const char *options)
{
    struct contestant *x = enter(c, name, problem);

    bench_gemm(&x->program, ranks, &x->problem, group, flags);
    prepare(x, &bench_kernel, options);
    return x;
}

/* On operands of its own, unless they are set before it runs. */
static struct contestant *enter_cublas(struct contest *c, struct cublas *blas,
                                       struct problem problem)
{
    struct contestant *x = enter(c, "cublas", problem);
    struct gpu_input in = {.ld = problem.k, .rows = problem.m, .cols = problem.k, .seed = 7, .spread = 1};

    x->blas = blas;
    must_cuda(cudaMalloc(&x->a, problem.m * problem.k * 2), "A");
    must_cuda(cudaMalloc(&x->b, problem.n * problem.k * 2), "B");
    must_cuda(cudaMalloc(&x->c, problem.m * problem.n * 2), "C");
    in.address = (uintptr_t)x->a;
    must_cuda(gpu_write_input(&in, NULL), "A");
    in.address = (uintptr_t)x->b;
    in.rows = problem.n;
    in.tensor = 1;
    must_cuda(gpu_write_input(&in, NULL), "B");
    must_cuda(cudaDeviceSynchronize(), "inputs");
    return x;
}

static void leave(struct contest *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        struct contestant *x = c->all[i];

        if (!x->blas) {
            rig_destroy(&x->rig);
            program_fini(&x->program);
        }
        cudaFree(x->a);
        cudaFree(x->b);
        cudaFree(x->c);
        free(x);
    }
    c->count = 0;
}

/* ---- time ---- */

static float run_once(struct contest *c, struct contestant *x)
{
    cudaStream_t stream = x->blas ? NULL : x->rig.devices[0].stream;
    float ms;

    must_cuda(cudaEventRecord(c->begin, stream), "begin");
    if (x->blas)
        must(cublas_multiply(x->blas, stream, x->problem.m, x->problem.n, x->problem.k, x->a, x->b,
                             x->c),
             "cublas", "refused");
    else
        must(rig_enqueue(&x->rig) == ST_OK, x->name, x->rig.why);
    must_cuda(cudaEventRecord(c->end, stream), "end");
    if (!x->blas && rig_wait(&x->rig) != ST_OK) {
        char report[4096];

        rig_report_hang(&x->rig, report, sizeof report);
        must(false, x->name, report);
    }
    must_cuda(cudaEventSynchronize(c->end), x->name);
    must_cuda(cudaEventElapsedTime(&ms, c->begin, c->end), x->name);
    return ms;
}

static void probe(struct contest *c, struct contestant *x)
{
    usleep(PAUSE_US);
    for (int i = 0; i < WARMUPS; i++)
        run_once(c, x);
    for (int i = 0; i < RUNS; i++)
        x->ms[x->count++] = run_once(c, x);
}

static int compare_ms(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static float median(const struct contestant *x)
{
    float sorted[SAMPLES];

    memcpy(sorted, x->ms, sizeof sorted);
    qsort(sorted, x->count, sizeof *sorted, compare_ms);
    return sorted[x->count / 2];
}

static void print(const struct contest *c, const struct contestant *x, float base)
{
    float ms = median(x);

    printf("{\"bench\": \"%s\", \"shape\": \"%s\", \"contestant\": \"%s\", \"median_ms\": %.4f, "
           "\"tflops\": %.1f, \"samples_ms\": [",
           c->bench, c->shape, x->name, ms, c->flop / ms / 1e9);
    for (uint32_t i = 0; i < x->count; i++)
        printf("%s%.4f", i ? ", " : "", x->ms[i]);
    printf("]}\n");
    fprintf(stderr, "%-8s %-28s %-12s %9.4f ms %7.1f TFLOP/s  first/this %.3f\n", c->bench,
            c->shape, x->name, ms, c->flop / ms / 1e9, base / ms);
}

static void hold(struct contest *c)
{
    for (uint32_t turn = 0; turn < TURNS; turn++)
        for (uint32_t i = 0; i < c->count; i++)
            probe(c, c->all[(i + turn) % c->count]);
    for (uint32_t i = 0; i < c->count; i++)
        print(c, c->all[i], median(c->all[0]));
    fflush(stdout);
    leave(c);
}

/* ---- GEMM against cuBLAS ---- */

static const void *buffer_of(const struct contestant *x, uint32_t buffer)
{
    return x->rig.ranks[0].window + program_buffer_offset(&x->program, buffer, 0);
}

/* On the same operands: every bit. */
static void compare_products(struct contest *c, struct contestant *ours, struct contestant *theirs)
{
    uint64_t bytes = ours->problem.m * ours->problem.n * 2;
    char *x = malloc(bytes), *y = malloc(bytes);

    assert(x && y);
    must_cuda(cudaMemcpy(theirs->a, buffer_of(ours, BENCH_A), ours->problem.m * ours->problem.k * 2,
                         cudaMemcpyDeviceToDevice),
              "A");
    must_cuda(cudaMemcpy(theirs->b, buffer_of(ours, BENCH_B), ours->problem.n * ours->problem.k * 2,
                         cudaMemcpyDeviceToDevice),
              "B");
    run_once(c, ours);
    run_once(c, theirs);
    must_cuda(cudaMemcpy(x, buffer_of(ours, BENCH_C), bytes, cudaMemcpyDeviceToHost), "C");
    must_cuda(cudaMemcpy(y, theirs->c, bytes, cudaMemcpyDeviceToHost), "C");
    fprintf(stderr, "%s: %s as cuBLAS has it, bit for bit\n", c->shape,
            memcmp(x, y, bytes) == 0 ? "the product is" : "THE PRODUCT IS NOT");
    free(x);
    free(y);
}

static void contest_gemm(struct contest *c, struct cublas *blas, struct problem problem)
{
    struct contestant *theirs;

    c->bench = "gemm";
    snprintf(c->shape, sizeof c->shape, "%llux%llux%llu", (unsigned long long)problem.m,
             (unsigned long long)problem.n, (unsigned long long)problem.k);
    c->flop = 2.0 * problem.m * problem.n * problem.k;
    theirs = enter_cublas(c, blas, problem);
    enter_gemm(c, "program", 1, problem, 16, false, "");
    compare_products(c, enter_gemm(c, "with flags", 1, problem, 16, true, ""), theirs);
    compare_products(c, c->all[1], theirs);
    enter_gemm(c, "prefetch 4", 1, problem, 16, false, "prefetch=4");
    hold(c);
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
    enter_cublas(c, blas, f->whole);
    enter_gemm(c, "ranks' GEMMs", world_ranks(world), f->problem, 8, false, "");
    enter_kernel(c, "fused", f->kernel, f->params, FORM_FUSED, world, f->problem);
    enter_kernel(c, "unfused", f->kernel, f->params, FORM_UNFUSED, world, f->problem);
    hold(c);
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

static float time_program(struct contest *c, struct program *p, const char *name,
                          const char *options)
{
    struct contestant *x = enter(c, name, (struct problem){.m = 1, .n = 1, .k = 1});
    float ms;

    x->program = *p;
    prepare(x, &bench_kernel, options);
    for (int i = 0; i < WARMUPS; i++)
        run_once(c, x);
    while (x->count < RUNS)
        x->ms[x->count++] = run_once(c, x);
    ms = median(x);
    leave(c);
    return ms;
}

static float time_hops(struct contest *c, uint64_t hops, bool puts, uint64_t bytes)
{
    struct program p;

    bench_hops(&p, hops, puts, bytes);
    return time_program(c, &p, "hops", "") * 1000 / (float)hops;
}

static float time_puts(struct contest *c, uint64_t count, uint32_t workers)
{
    struct program p;

    bench_puts(&p, count, workers);
    return (float)count / time_program(c, &p, "puts", "fifo=1024") / 1000;
}

static void bench_put(struct contest *c)
{
    float local = time_hops(c, 1000, false, 0), bare = time_hops(c, 1000, true, 0);
    float data = time_hops(c, 200, true, 16384);
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
    if (wanted(argc, argv, "gemm") || wanted(argc, argv, "fused"))
        must(cublas_open(&blas, why, sizeof why), "cublas", why);
    if (wanted(argc, argv, "gemm"))
        bench_gemms(&c, &blas);
    if (wanted(argc, argv, "fused"))
        bench_fused(&c, &blas);
    cublas_close(&blas);
    return 0;
}
