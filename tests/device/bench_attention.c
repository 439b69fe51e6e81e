/* Times of attention on the cuda backend.
 *
 *   bench_attention                              what steps, chains and the ring cost
 *   bench_attention serve HEADS SEQ DIM CAUSAL   for a script that runs somebody else's in turn: each
 *                                                line on stdin is a number of launches to be timed,
 *                                                answered by a line of milliseconds
 *
 * Launches of one turn are enqueued together behind a warm-up, so that no time of the host is in a
 * sample.  Contestants take turns, in rotated order, and have a rest before each, for the card is limited by
 * its power, and else somebody's speed would depend on who comes before; the median of all samples counts.
 * Inputs are noise of variance 1.  A line of JSON a contestant on stdout, a summary on stderr. */
#include <assert.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/cuda.h"
#include "backends/cuda/rig.h"
#include "bench_attention_program.h"
#include "core/machine/machine.h"
#include "core/parse/option.h"
#include "kernels/kernels.h"

#define SKIPPED 77
#define RUNS 4
#define TURNS 6
#define SAMPLES (RUNS * TURNS)
#define REST_US 200000
#define SPREAD 3.4641f /* variance 1 */

struct contestant {
    const char *name;
    struct program program;
    struct problem problem;
    struct job job;
    struct cuda_options options;
    struct rig rig;
    float ms[SAMPLES];
    uint32_t count;
};

static void must(bool ok, const char *what, const char *why)
{
    if (ok)
        return;
    fprintf(stderr, "bench_attention: %s: %s\n", what, why);
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

/* ---- contestants ---- */

static void write_noise(const struct contestant *x)
{
    for (uint32_t rank = 0; rank < x->rig.rank_count; rank++)
        for (uint32_t i = 0; i < x->program.buffer_count; i++) {
            const struct buffer *b = &x->program.buffers[i];
            struct gpu_input in = {.address =
                                       (uintptr_t)x->rig.ranks[rank].window + program_buffer_offset(&x->program, i, 0),
                                   .ld = b->cols,
                                   .rows = b->rows * b->depth,
                                   .cols = b->cols,
                                   .seed = 7 + rank,
                                   .tensor = i,
                                   .is_f32 = b->dtype == DTYPE_F32,
                                   .spread = SPREAD};

            must_cuda(gpu_write_input(&in, NULL), "inputs");
        }
    must_cuda(cudaDeviceSynchronize(), "inputs");
}

static void prepare(struct contestant *x, const struct kernel *kernel)
{
    option_defaults(cuda_backend.options, &x->options);
    x->options.prefetch = GPU_PREFETCH_MAX;
    x->job = (struct job){.program = &x->program,
                          .world = x->program.world,
                          .kernel = kernel,
                          .problem = &x->problem,
                          .options = &x->options,
                          .seed = 7};
    must(rig_create(&x->job, &x->rig) == ST_OK, x->name, x->rig.why);
    write_noise(x);
}

static struct contestant *enter(const char *name, struct bench_attention shape)
{
    struct contestant *x = calloc(1, sizeof *x);

    assert(x);
    x->name = name;
    bench_attention(&x->program, &shape);
    prepare(x, &bench_kernel);
    return x;
}

static struct contestant *enter_ring(const char *name, const char *params_text, enum form form, struct problem problem)
{
    const struct kernel *k = &ring_attention_kernel;
    struct contestant *x = calloc(1, sizeof *x);
    struct machine machine;
    struct complaint complaint = {.text = ""};
    void *params = calloc(1, k->params_size);
    char copy[256], *rest = copy, why[256];

    assert(x && params);
    x->name = name;
    x->problem = problem;
    must(machine_load("hgx-h200-cx7", &machine) == ST_OK, name, "no machine");
    option_defaults(k->options, params);
    snprintf(copy, sizeof copy, "%s", params_text);
    for (char *pair; (pair = strsep(&rest, " "));) {
        char *value = strchr(pair, '=');

        assert(value);
        *value++ = '\0';
        must(option_parse(option_find(k->options, pair), params, value, NULL, why, sizeof why) == ST_OK, pair, why);
    }
    must(k->emit(&x->problem, (struct world){1, 4}, &machine, form, params, &x->program, &complaint) == ST_OK, name,
         complaint.text);
    free(params);
    prepare(x, k);
    return x;
}

static void leave(struct contestant *x)
{
    rig_destroy(&x->rig);
    program_fini(&x->program);
    free(x);
}

/* ---- time ---- */

/* `runs` launches behind a warm-up. */
static void run(struct contestant *x, uint32_t runs, float *ms)
{
    cudaStream_t stream = x->rig.devices[0].stream;
    cudaEvent_t at[SAMPLES + 1];
    char report[4096];

    assert(runs <= SAMPLES);
    must(rig_enqueue(&x->rig) == ST_OK, x->name, x->rig.why);
    for (uint32_t i = 0; i <= runs; i++) {
        if (i > 0)
            must(rig_enqueue(&x->rig) == ST_OK, x->name, x->rig.why);
        must_cuda(cudaEventCreate(&at[i]), "event");
        must_cuda(cudaEventRecord(at[i], stream), "event");
    }
    if (rig_wait(&x->rig) != ST_OK) {
        rig_report_hang(&x->rig, report, sizeof report);
        must(false, x->name, report);
    }
    for (uint32_t i = 0; i < runs; i++)
        must_cuda(cudaEventElapsedTime(&ms[i], at[i], at[i + 1]), x->name);
    for (uint32_t i = 0; i <= runs; i++)
        cudaEventDestroy(at[i]);
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

static void print(const char *bench, const char *shape, const struct contestant *x, double flop, float base)
{
    float ms = median(x);

    printf("{\"bench\": \"%s\", \"shape\": \"%s\", \"contestant\": \"%s\", \"median_ms\": %.4f, "
           "\"tflops\": %.1f, \"samples_ms\": [",
           bench, shape, x->name, ms, flop / ms / 1e9);
    for (uint32_t i = 0; i < x->count; i++)
        printf("%s%.4f", i ? ", " : "", x->ms[i]);
    printf("]}\n");
    fprintf(stderr, "%-10s %-24s %-18s %9.4f ms %7.1f TFLOP/s  this/first %.3f\n", bench, shape, x->name, ms,
            flop / ms / 1e9, ms / base);
}

static void hold(const char *bench, const char *shape, double flop, struct contestant **all, uint32_t count)
{
    for (uint32_t turn = 0; turn < TURNS; turn++)
        for (uint32_t i = 0; i < count; i++) {
            struct contestant *x = all[(i + turn) % count];

            usleep(REST_US);
            run(x, RUNS, x->ms + x->count);
            x->count += RUNS;
        }
    for (uint32_t i = 0; i < count; i++)
        print(bench, shape, all[i], flop, median(all[0]));
    fflush(stdout);
    for (uint32_t i = 0; i < count; i++)
        leave(all[i]);
}

/* ---- what steps and chains cost ---- */

static void bench_walks(uint64_t heads, uint64_t seq, uint64_t dim, bool causal)
{
    struct bench_attention shape = {
        .heads = heads, .seq = seq, .queries = seq, .dim = dim, .causal = causal, .segments = 1, .ranks = 1};
    struct contestant *all[4];
    char text[80];

    snprintf(text, sizeof text, "%llux%llux%llu%s", (unsigned long long)heads, (unsigned long long)seq,
             (unsigned long long)dim, causal ? " causal" : "");
    all[0] = enter("whole", shape);
    shape.segments = 4;
    shape.walk = WALK_STEPPED;
    all[1] = enter("stepped 4", shape);
    shape.walk = WALK_CHAINED;
    all[2] = enter("chain of 4", shape);
    hold("walks", text, 4.0 * (double)(heads * seq) * (double)(seq * dim) * (causal ? 0.5 : 1), all, 3);
}

/* ---- the ring: four ranks on one GPU, a quarter of its SMs each ---- */

static void bench_ring(uint64_t seq)
{
    struct problem problem = {.attention = {.seq = seq, .batch = 4, .heads = 16, .kv_heads = 16, .head_dim = 128}};
    struct bench_attention bound = {.heads = 64, .seq = seq, .queries = seq / 4, .dim = 128, .segments = 1, .ranks = 4};
    struct contestant *all[6];
    char text[80];

    snprintf(text, sizeof text, "1x4 64x%llux128", (unsigned long long)seq);
    all[0] = enter("attention alone", bound);
    all[1] = enter_ring("ring, comm 8", "comm_sms=8 order=head", FORM_FUSED, problem);
    all[2] = enter_ring("ring, comm 8 2MiB", "comm_sms=8 order=head chunk=2MiB", FORM_FUSED, problem);
    all[3] = enter_ring("ring, comm 16", "comm_sms=16 order=head", FORM_FUSED, problem);
    all[4] = enter_ring("ring, split 4", "comm_sms=8 order=owner split=4", FORM_FUSED, problem);
    all[5] = enter_ring("unfused", "comm_sms=8", FORM_UNFUSED, problem);
    hold("ring", text, 4.0 * 64 * (double)(seq * seq) * 128, all, 6);
}

/* ---- by turns with somebody else ---- */

static int serve(char **argument)
{
    uint64_t seq = strtoull(argument[1], NULL, 10);
    struct bench_attention shape = {.heads = strtoull(argument[0], NULL, 10),
                                    .seq = seq,
                                    .queries = seq,
                                    .dim = strtoull(argument[2], NULL, 10),
                                    .causal = argument[3][0] == '1',
                                    .segments = 1,
                                    .ranks = 1};
    struct contestant *x = enter("attention", shape);
    char line[32];

    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        uint32_t runs = (uint32_t)strtoul(line, NULL, 10);

        must(runs > 0 && runs <= SAMPLES, "serve", "a number of launches is expected");
        run(x, runs, x->ms);
        for (uint32_t i = 0; i < runs; i++)
            printf("%.5f%c", x->ms[i], i + 1 < runs ? ' ' : '\n');
        fflush(stdout);
    }
    leave(x);
    return 0;
}

int main(int argc, char **argv)
{
    char why[256];

    if (cuda_backend.available(why, sizeof why) != ST_OK) {
        fprintf(stderr, "bench_attention: skipped: %s\n", why);
        return SKIPPED;
    }
    if (argc == 6 && strcmp(argv[1], "serve") == 0)
        return serve(argv + 2);
    must(argc == 1, "usage", "bench_attention [serve HEADS SEQ DIM CAUSAL]");
    bench_walks(64, 12288, 128, false);
    bench_walks(64, 12288, 128, true);
    bench_walks(64, 12288, 64, false);
    bench_ring(12288);
    return 0;
}
