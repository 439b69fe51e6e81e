/* Copies of one CTA after another over NVLink, against those measured on two H200s: both directions at once, 67 MB each way,
 * through the copy pipeline of a persistent kernel (results/reference/h200/copies-2gpu.csv). */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "core/problem.h"
#include "sim/engine.h"

#define TOTAL_BYTES (64u << 20)
#define TOLERANCE 0.10

struct row {
    char     method[8]; /* pull, push */
    uint32_t ctas;
    uint32_t size_kib;
    char     mode[16]; /* drained: each is complete before the next starts; pipelined */
    double   low, high; /* GB/s per direction */
};

static struct row rows[64];
static int        row_count;

static const struct row *now; /* what the program below does */

static uint64_t queue_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    (void)p, (void)rank, (void)queue;
    return TOTAL_BYTES / (now->size_kib * 1024ull);
}

static void task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *t)
{
    bool pull = strcmp(now->method, "pull") == 0;

    (void)p, (void)queue;
    t->op = OP_COPY;
    t->m = now->size_kib;
    t->n = 512; /* a KiB of bf16 */
    t->a = (struct operand){pull ? 1 - rank : rank, 0, index * t->m * t->n, t->n};
    task_store_to(t, (struct operand){pull ? rank : 1 - rank, 1, index * t->m * t->n, t->n});
}

static uint64_t flag_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    (void)p, (void)rank, (void)flag;
    return 0;
}

static const struct program_ops ops = {.queue_length = queue_length, .task = task, .flag_total = flag_total};

static void read_rows(void)
{
    FILE *f = fopen("results/reference/h200/copies-2gpu.csv", "r");
    char  line[200];

    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
    while (fgets(line, sizeof line, f)) {
        struct row *r = &rows[row_count++];

        ck_assert_int_eq(sscanf(line, "%7[^,],%u,%u,%15[^,],%lf,%lf", r->method, &r->ctas, &r->size_kib, r->mode,
                                &r->low, &r->high), 6);
    }
    fclose(f);
}

static double simulate(const struct row *r)
{
    static struct problem problem = {.m = 128, .n = 256, .k = 64};
    static struct kernel  kernel = {.name = "copies", .family = &problem_gemm};
    struct program        p = {.kernel = "copies", .world = {1, 2}, .ops = &ops};
    struct machine        m;
    struct run_result     result;
    struct job            job = {.program = &p, .world = {1, 2}, .kernel = &kernel, .problem = &problem, .machine = &m,
                                 .timing = {.mode = TIMING_ISOLATED, .iterations = 1}};
    struct sim_options    options = {.disorder = 1, .engine = ENGINE_FLUID};

    ck_assert_int_eq(machine_load("h200-nvlink2", &m), ST_OK);
    if (strcmp(r->mode, "drained") == 0)
        m.copy.pipelined_ps = m.copy.drained_ps;
    now = r;
    job.options = &options;
    program_add_buffer(&p, (struct buffer){"source", DTYPE_BF16, TOTAL_BYTES / 1024, 512, 1});
    program_add_buffer(&p, (struct buffer){"target", DTYPE_BF16, TOTAL_BYTES / 1024, 512, 1});
    program_crew_drains(&p, program_add_crew(&p, "copy", r->ctas), program_add_queue(&p, "copy"));
    ck_assert_int_eq(sim_backend.run(&job, &result), ST_OK);
    return TOTAL_BYTES / ((double)result.sample_ps[0] / 1000.0);
}

START_TEST(copies_take_what_was_measured)
{
    int wrong = 0;

    read_rows();
    for (int i = 0; i < row_count; i++) {
        const struct row *r = &rows[i];
        double            got = simulate(r), error = got < r->low ? got / r->low - 1 : got > r->high ? got / r->high - 1 : 0;

        if (error < -TOLERANCE || error > TOLERANCE || getenv("MKERNEL_SHOW_COPIES"))
            printf("%s, %u CTAs, %u KiB %s: %.0f GB/s, measured %.0f to %.0f: %+.0f %%\n", r->method, r->ctas,
                   r->size_kib, r->mode, got, r->low, r->high, 100 * error);
        wrong += error < -TOLERANCE || error > TOLERANCE;
    }
    ck_assert_int_gt(row_count, 10);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

int main(void)
{
    Suite   *suite = suite_create("copies");
    TCase   *t = tcase_create("table");
    SRunner *runner = srunner_create(suite);
    int      failed;

    tcase_add_test(t, copies_take_what_was_measured);
    suite_add_tcase(suite, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
