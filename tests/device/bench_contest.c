#include "bench_contest.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_program.h"
#include "core/machine/machine.h"
#include "core/parse/option.h"

#define PAUSE_US 200000

/* ---- contestants ---- */

void must(bool ok, const char *what, const char *why)
{
    if (ok)
        return;
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    exit(1);
}

void must_cuda(cudaError_t error, const char *what)
{
    must(error == cudaSuccess, what, cudaGetErrorString(error));
}

static struct problem same_problem(const struct problem *problem, struct world world)
{
    (void)world;
    return *problem;
}

const struct kernel bench_kernel = {.name = "bench", .global = same_problem};

struct contestant *contest_enter(struct contest *c, const char *name, struct problem problem)
{
    struct contestant *x = calloc(1, sizeof *x);

    assert(x && c->count < CONTESTANTS_MAX);
    x->name = name;
    x->problem = problem;
    c->all[c->count++] = x;
    return x;
}

/* Builds the rig of x->program; inputs are noise. */
void contest_prepare(struct contestant *x, const struct kernel *kernel, const char *options)
{
    char copy[128], *rest = copy, why[256];

    option_defaults(cuda_backend.options, &x->options);
    snprintf(copy, sizeof copy, "%s", options);
    for (char *pair; (pair = strsep(&rest, " "));) {
        char *value = strchr(pair, '=');

        if (!value)
            continue;
        *value++ = '\0';
        must(option_parse(option_find(cuda_backend.options, pair), &x->options, value, NULL, why, sizeof why) == ST_OK,
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

struct contestant *contest_enter_kernel(struct contest *c, const char *name, const struct kernel *k,
                                        const char *params_text, enum form form, struct world world,
                                        struct problem problem)
{
    struct contestant *x = contest_enter(c, name, problem);
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
        must(option_parse(option_find(k->options, pair), params, value, NULL, why, sizeof why) == ST_OK, pair, why);
    }
    must(k->emit(&x->problem, world, &machine, form, params, &x->program, &complaint) == ST_OK, name, complaint.text);
    free(params);
    contest_prepare(x, k, "");
    return x;
}

struct contestant *contest_enter_cublas(struct contest *c, const char *name, struct cublas *blas,
                                        struct problem problem, uint64_t groups, const uint64_t *rows)
{
    struct contestant *x = contest_enter(c, name, problem);
    struct gpu_input in = {.ld = problem.k, .cols = problem.k, .seed = 7, .spread = 1};
    uint64_t all_rows = rows ? problem.m : groups * problem.m;

    x->blas = blas;
    x->groups = groups;
    x->rows = rows;
    must_cuda(cudaMalloc(&x->a, all_rows * problem.k * 2), "A");
    must_cuda(cudaMalloc(&x->b, groups * problem.n * problem.k * 2), "B");
    must_cuda(cudaMalloc(&x->c, all_rows * problem.n * 2), "C");
    in.address = (uintptr_t)x->a;
    in.rows = all_rows;
    must_cuda(gpu_write_input(&in, NULL), "A");
    in.address = (uintptr_t)x->b;
    in.rows = groups * problem.n;
    in.tensor = 1;
    must_cuda(gpu_write_input(&in, NULL), "B");
    must_cuda(cudaDeviceSynchronize(), "inputs");
    return x;
}

void contest_leave(struct contest *c)
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

/* Group by group, each with its own number of rows. */
static bool loop_cublas(struct contestant *x, cudaStream_t stream)
{
    const struct problem *p = &x->problem;
    char *a = x->a, *b = x->b, *c = x->c;
    bool ok = true;

    for (uint64_t g = 0; g < x->groups && ok; g++) {
        ok = cublas_multiply(x->blas, stream, x->rows[g], p->n, p->k, a, b, c);
        a += x->rows[g] * p->k * 2;
        b += p->n * p->k * 2;
        c += x->rows[g] * p->n * 2;
    }
    return ok;
}

static bool run_cublas(struct contestant *x, cudaStream_t stream)
{
    const struct problem *p = &x->problem;

    if (x->rows)
        return loop_cublas(x, stream);
    if (x->groups > 1)
        return cublas_multiply_batched(x->blas, stream, x->groups, p->m, p->n, p->k, x->a, x->b, x->c);
    return cublas_multiply(x->blas, stream, p->m, p->n, p->k, x->a, x->b, x->c);
}

float contest_run_once(struct contest *c, struct contestant *x)
{
    cudaStream_t stream = x->blas ? NULL : x->rig.devices[0].stream;
    float ms;

    must_cuda(cudaEventRecord(c->begin, stream), "begin");
    if (x->blas)
        must(run_cublas(x, stream), "cublas", "refused");
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
        contest_run_once(c, x);
    for (int i = 0; i < RUNS; i++)
        x->ms[x->count++] = contest_run_once(c, x);
}

static int compare_ms(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

float contest_median(const struct contestant *x)
{
    float sorted[SAMPLES];

    memcpy(sorted, x->ms, sizeof sorted);
    qsort(sorted, x->count, sizeof *sorted, compare_ms);
    return sorted[x->count / 2];
}

static void print(const struct contest *c, const struct contestant *x, float base)
{
    float ms = contest_median(x);

    printf("{\"bench\": \"%s\", \"shape\": \"%s\", \"contestant\": \"%s\", \"median_ms\": %.4f, "
           "\"tflops\": %.1f, \"samples_ms\": [",
           c->bench, c->shape, x->name, ms, c->flop / ms / 1e9);
    for (uint32_t i = 0; i < x->count; i++)
        printf("%s%.4f", i ? ", " : "", x->ms[i]);
    printf("]}\n");
    fprintf(stderr, "%-8s %-28s %-12s %9.4f ms %7.1f TFLOP/s  first/this %.3f\n", c->bench, c->shape, x->name, ms,
            c->flop / ms / 1e9, base / ms);
}

static const void *buffer_of(const struct contestant *x, uint32_t buffer)
{
    return x->rig.ranks[0].window + program_buffer_offset(&x->program, buffer, 0);
}

void contest_compare(struct contest *c, struct contestant *ours, struct contestant *theirs)
{
    const struct problem *p = &theirs->problem;
    uint64_t rows = theirs->rows ? p->m : theirs->groups * p->m, bytes = rows * p->n * 2;
    char *x = malloc(bytes), *y = malloc(bytes);

    assert(x && y);
    must_cuda(cudaMemcpy(theirs->a, buffer_of(ours, BENCH_A), rows * p->k * 2, cudaMemcpyDeviceToDevice), "A");
    must_cuda(
        cudaMemcpy(theirs->b, buffer_of(ours, BENCH_B), theirs->groups * p->n * p->k * 2, cudaMemcpyDeviceToDevice),
        "B");
    contest_run_once(c, ours);
    contest_run_once(c, theirs);
    must_cuda(cudaMemcpy(x, buffer_of(ours, BENCH_C), bytes, cudaMemcpyDeviceToHost), "C");
    must_cuda(cudaMemcpy(y, theirs->c, bytes, cudaMemcpyDeviceToHost), "C");
    fprintf(stderr, "%s: %s: %s as %s has it, bit for bit\n", c->shape, ours->name,
            memcmp(x, y, bytes) == 0 ? "the product is" : "THE PRODUCT IS NOT", theirs->name);
    free(x);
    free(y);
}

void contest_hold(struct contest *c)
{
    for (uint32_t turn = 0; turn < TURNS; turn++)
        for (uint32_t i = 0; i < c->count; i++)
            probe(c, c->all[(i + turn) % c->count]);
    for (uint32_t i = 0; i < c->count; i++)
        print(c, c->all[i], contest_median(c->all[0]));
    fflush(stdout);
    contest_leave(c);
}
