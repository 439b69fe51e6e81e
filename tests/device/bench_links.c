/* What `mkernel calibrate` fits a machine's links, copies and flags to, measured by the cuda backend's own programs
 * between the first two GPUs, and NCCL's collectives between all of them.
 *
 *   bench_links FOLDER [OPTION=VALUE ...]
 *
 * FOLDER is made: copies.csv, quantities.csv and, where NCCL is and each rank has a GPU, nccl.csv, in the forms of
 * docs/calibration.md.  Options are the backend's: shares=2 goes through all of it on one GPU, where it says nothing
 * about links.  Times are those of the slowest device, without the host's launches; the median of 15 epochs behind
 * three. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench_contest.h"
#include "bench_links.h"
#include "bench_program.h"
#include "core/measured/measured.h"
#include "core/statistics/stats.h"

#define SKIPPED 77

static char options[128]; /* for all that needs two devices */

/* Of an epoch, in ps.  Takes the program over. */
static struct stats time_epochs(struct program *p, const char *with)
{
    struct contest c = {0};
    struct contestant *x = contest_enter(&c, p->kernel, (struct problem){.m = 1, .n = 1, .k = 1});
    uint64_t ps[WARMUPS + LINKS_SAMPLES];

    x->program = *p;
    contest_prepare(x, &bench_kernel, with);
    for (int i = 0; i < WARMUPS + LINKS_SAMPLES; i++)
        must(rig_run_epochs(&x->rig, 1, &ps[i]) == ST_OK, p->kernel, x->rig.why);
    contest_leave(&c);
    return stats_of(ps + WARMUPS, LINKS_SAMPLES);
}

/* ---- copies ---- */

static struct stats time_copies(struct copy_run copy)
{
    struct program p = {0};

    copy_run_emit(&copy, &p);
    return time_epochs(&p, options);
}

/* GB/s of bytes that took so long. */
static double rate(double bytes, uint64_t ps)
{
    return bytes / (double)ps * 1e3;
}

/* The interpreter ends a copy before it begins the next one. */
static void bench_copies(FILE *out)
{
    static const uint32_t ctas[] = {4, 8, 16};
    static const uint64_t kib[] = {64, 256, 2048};

    fprintf(out, "method,ctas,size_kib,mode,low_gb_per_s,high_gb_per_s\n");
    for (int pull = 0; pull < 2; pull++)
        for (size_t c = 0; c < sizeof ctas / sizeof *ctas; c++)
            for (size_t k = 0; k < sizeof kib / sizeof *kib; k++) {
                struct stats t = time_copies((struct copy_run){pull, true, ctas[c], kib[k]});

                fprintf(out, "%s,%u,%llu,drained,%.1f,%.1f\n", pull ? "pull" : "push", ctas[c],
                        (unsigned long long)kib[k], rate(COPY_RUN_BYTES, t.max), rate(COPY_RUN_BYTES, t.min));
            }
}

/* ---- single quantities ---- */

static void put_row(FILE *out, const char *quantity, const char *bytes, double low, double median, double high,
                    const char *how)
{
    fprintf(out, "%s,%s,%.4g,%s,\"%s; median of %d, %.4g to %.4g\"\n", quantity, bytes, median,
            quantity_find(quantity)->unit, how, LINKS_SAMPLES, low, high);
}

/* One of `count` that took so long together. */
static void put_time(FILE *out, const char *quantity, uint64_t bytes, struct stats t, double count, const char *how)
{
    char text[24] = "";

    if (bytes)
        snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
    put_row(out, quantity, text, (double)t.min / count / 1e6, (double)t.median / count / 1e6,
            (double)t.max / count / 1e6, how);
}

static void put_rate(FILE *out, const char *quantity, double bytes, struct stats t, const char *how)
{
    put_row(out, quantity, "", rate(bytes, t.max), rate(bytes, t.median), rate(bytes, t.min), how);
}

#define HOPS 1000

static void bench_hop_times(FILE *out)
{
    struct program p = {0};

    bench_nothing(&p, HOPS);
    put_time(out, "empty task", 0, time_epochs(&p, "devices=1"), HOPS, "tasks without work, of one worker");
    bench_hops(&p, HOPS, HOP_TASK, 0);
    put_time(out, "task hop", 0, time_epochs(&p, "devices=1"), HOPS, "tasks without work by turns");
    bench_hops(&p, HOPS, HOP_TASK, 0);
    put_time(out, "peer task hop", 0, time_epochs(&p, options), HOPS, "the same, on two devices");
    bench_hops(&p, HOPS, HOP_TILE, 0);
    put_time(out, "tile hop", 0, time_epochs(&p, "devices=1"), HOPS, "GEMM tiles of one step by turns");
    bench_hops(&p, HOPS, HOP_FAR_TILE, 0);
    put_time(out, "peer tile hop", BENCH_TILE_BYTES, time_epochs(&p, options), HOPS,
             "the same, stored to the other of two devices");
}

static void bench_rates(FILE *out)
{
    static const struct {
        struct copy_run copy;
        const char *how;
    } both[] = {{{false, true, 32, 2048}, "push by 32 CTAs, copies of 2 MiB"},
                {{false, true, 128, 512}, "push by 128 CTAs, copies of 512 KiB"},
                {{true, true, 32, 2048}, "pull by 32 CTAs, copies of 2 MiB"},
                {{true, true, 128, 512}, "pull by 128 CTAs, copies of 512 KiB"}};
    const uint64_t rows = 64;
    struct program p = {0};

    for (size_t i = 0; i < sizeof both / sizeof *both; i++)
        put_rate(out, "both ways", COPY_RUN_BYTES, time_copies(both[i].copy), both[i].how);
    bench_sums(&p, rows);
    put_rate(out, "reducing CTA", (double)rows * BENCH_SUM_COLS * 2 * (BENCH_SUM_SOURCES + 1),
             time_epochs(&p, "devices=1"), "sums of four sources by one worker");
}

#define ENGINE_COPIES 16

/* By a copy engine, from device to device; on one GPU within it. */
static struct stats time_engine(const struct device *from, const struct device *to, uint64_t bytes)
{
    uint64_t ps[WARMUPS + LINKS_SAMPLES];
    void *source, *target;

    must_cuda(cudaSetDevice(to->index), "device");
    must_cuda(cudaMalloc(&target, bytes), "target");
    must_cuda(cudaSetDevice(from->index), "device");
    must_cuda(cudaMalloc(&source, bytes), "source");
    for (int i = 0; i < WARMUPS + LINKS_SAMPLES; i++) {
        float ms;

        must_cuda(cudaEventRecord(from->begin, from->stream), "begin");
        for (int k = 0; k < ENGINE_COPIES; k++)
            must_cuda(cudaMemcpyPeerAsync(target, to->index, source, from->index, bytes, from->stream), "copy");
        must_cuda(cudaEventRecord(from->end, from->stream), "end");
        must_cuda(cudaStreamSynchronize(from->stream), "copy");
        must_cuda(cudaEventElapsedTime(&ms, from->begin, from->end), "copy");
        ps[i] = (uint64_t)(ms * 1e9);
    }
    cudaFree(source);
    must_cuda(cudaSetDevice(to->index), "device");
    cudaFree(target);
    return stats_of(ps + WARMUPS, LINKS_SAMPLES);
}

static void bench_engine(FILE *out)
{
    static const uint64_t bytes[] = {65536, 1 << 20, 16 << 20, 256 << 20};
    struct contest c = {0};
    struct contestant *x = contest_enter(&c, "engine", (struct problem){.m = 1, .n = 1, .k = 1});

    bench_hops(&x->program, 2, HOP_TASK, 0); /* for its devices */
    contest_prepare(x, &bench_kernel, options);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        put_time(out, "engine copy", bytes[i], time_engine(&x->rig.devices[0], &x->rig.devices[1], bytes[i]),
                 ENGINE_COPIES, "one behind the other on one stream");
    contest_leave(&c);
}

static void bench_quantities(FILE *out)
{
    fprintf(out, "quantity,bytes,value,unit,source\n");
    bench_hop_times(out);
    bench_rates(out);
    bench_engine(out);
}

/* ---- all ---- */

static FILE *create(const char *folder, const char *name)
{
    char path[4096];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "wx");
    must(f != NULL, path, strerror(errno));
    return f;
}

static void finish(FILE *f, const char *name)
{
    must(!ferror(f) && fclose(f) == 0, name, "could not be written");
    fprintf(stderr, "bench_links: %s\n", name);
}

int main(int argc, char **argv)
{
    char why[256] = "it takes two GPUs, or shares=2 to try it on one";
    uint32_t gpus;
    FILE *f;

    must(argc >= 2, "usage", "bench_links FOLDER [OPTION=VALUE ...]");
    for (int i = 2; i < argc; i++)
        snprintf(options + strlen(options), sizeof options - strlen(options), "%s%s", i > 2 ? " " : "", argv[i]);
    if (cuda_backend.available(why, sizeof why) != ST_OK ||
        ((gpus = devices_usable(why, sizeof why)) < 2 && argc == 2)) {
        fprintf(stderr, "bench_links: skipped: %s\n", why);
        return SKIPPED;
    }
    if (mkdir(argv[1], 0777) != 0)
        must(false, argv[1], strerror(errno));
    f = create(argv[1], "copies.csv");
    bench_copies(f);
    finish(f, "copies.csv");
    f = create(argv[1], "quantities.csv");
    bench_quantities(f);
    finish(f, "quantities.csv");
    if (gpus < 2)
        return 0;
    f = create(argv[1], "nccl.csv");
    bench_links_nccl(f, gpus);
    finish(f, "nccl.csv");
    return 0;
}
