/* Workers that change between heads of 128, heads of 64, GEMMs and copies, which all use the same shared
 * memory in ways of their own; scores that climb, so that what weights are relative to is raised; chains. */
#include "cuda_attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda.h"
#include "core/check.h"
#include "harness.h"
#include "kernels/reference.h"
#include "script.h"

enum { HEADS = 2, TILE = 128, GEMM_ROWS = 512, GEMM_COLS = 256, GEMM_K = 192, NEVER = 0 };

/* One tensor of results follows the other. */
enum { ROWS_OF_64 = 1 << 20, ROWS_OF_GEMM = 2 << 20 };

static const struct problem wide = {
    .m = GEMM_ROWS,
    .n = GEMM_COLS,
    .k = GEMM_K,
    .attention = {.seq = 300, .batch = 1, .heads = HEADS, .kv_heads = 1, .head_dim = 128, .stripes = 1}};

static struct problem narrow(const struct problem *global)
{
    struct problem p = *global;

    p.attention.head_dim = 64;
    return p;
}

static void input(const struct problem *global, uint64_t seed, uint64_t epoch, uint32_t tensor, uint64_t row,
                  uint64_t col, uint64_t count, float *out)
{
    struct problem other = narrow(global);

    for (uint64_t i = 0; tensor <= TENSOR_B && i < count; i++)
        out[i] = (float)tensor_value(seed, epoch, tensor, global->k, row, col + i);
    if (tensor > TENSOR_B && row >= ROWS_OF_64)
        reference_attention.input(&other, seed, epoch, tensor, row - ROWS_OF_64, col, count, out);
    else if (tensor > TENSOR_B)
        reference_attention.input(global, seed, epoch, tensor, row, col, count, out);
}

static void expect_product(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                           uint64_t col, uint64_t cols, struct expected *out)
{
    int16_t *exact = malloc(rows * cols * sizeof *exact);

    ck_assert_ptr_nonnull(exact);
    reference_gemm(global, seed, epoch, row, rows, col, cols, exact);
    for (uint64_t i = 0; i < rows * cols; i++)
        out[i] = (struct expected){.value = exact[i]};
    free(exact);
}

static void expected(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                     uint64_t col, uint64_t cols, struct expected *out)
{
    struct problem other = narrow(global);

    if (row >= ROWS_OF_GEMM)
        expect_product(global, seed, epoch, row - ROWS_OF_GEMM, rows, col, cols, out);
    else if (row >= ROWS_OF_64)
        reference_attention.expected(&other, seed, epoch, row - ROWS_OF_64, rows, col, cols, out);
    else
        reference_attention.expected(global, seed, epoch, row, rows, col, cols, out);
}

static uint64_t memory_bytes(const struct problem *global)
{
    return reference_attention.memory_bytes(global);
}

static const struct bounded_check mixed_check = {input, expected, memory_bytes};

static struct problem same_problem(const struct problem *problem, struct world world)
{
    (void)world;
    return *problem;
}

static const struct kernel mixed = {.name = "mixed", .global = same_problem, .bounded = &mixed_check};

/* ---- the program ---- */

struct head_buffers {
    uint32_t q, kv, o;
    uint64_t dim;
};

static struct head_buffers add_heads(struct program *p, uint64_t dim, uint64_t tensor_row)
{
    uint64_t seq = wide.attention.seq;
    struct head_buffers b = {.q = script_buffer(p, "q", HEADS * seq, dim, 1),
                             .kv = script_buffer(p, "kv", 2 * seq, dim, 1),
                             .o = script_buffer(p, "o", HEADS * seq, dim, 1),
                             .dim = dim};

    script_io(p, 0, (struct io_slice){IO_INPUT, b.q, 0, HEADS * seq, dim, TENSOR_Q, tensor_row, 0});
    script_io(p, 0, (struct io_slice){IO_INPUT, b.kv, 0, 2 * seq, dim, TENSOR_KV, tensor_row, 0});
    script_io(p, 0, (struct io_slice){IO_OUTPUT, b.o, 0, HEADS * seq, dim, TENSOR_O, tensor_row, 0});
    return b;
}

static struct task *attend(struct program *p, uint32_t queue, const struct head_buffers *b, uint64_t head, uint64_t row)
{
    uint64_t seq = wide.attention.seq;
    struct task *t = script_task(p, 0, queue, OP_ATTENTION, min_u64(TILE, seq - row), b->dim);

    t->k = seq;
    t->segment_table = NO_TABLE;
    t->a = script_rows(p, 0, b->kv, 0);
    t->b = script_rows(p, 0, b->kv, seq);
    t->attention.q = script_rows(p, 0, b->q, head * seq + row);
    task_store_to(t, script_rows(p, 0, b->o, head * seq + row));
    return t;
}

/* Every other tile is copied to its place. */
static void multiply(struct program *p, uint32_t queue, const uint32_t *buffers, uint64_t row)
{
    struct task *t = script_task(p, 0, queue, OP_GEMM, TILE, GEMM_COLS);
    bool copies = row / TILE % 2;
    uint32_t flag = (uint32_t)(row / TILE);

    t->k = GEMM_K;
    t->segment_table = NO_TABLE;
    t->a = script_rows(p, 0, buffers[0], row);
    t->b = script_rows(p, 0, buffers[1], 0);
    task_store_to(t, script_rows(p, 0, buffers[copies ? 3 : 2], row));
    if (!copies)
        return;
    task_signal(t, 0, flag, 1);
    t = script_task(p, 0, queue, OP_COPY, TILE, GEMM_COLS);
    task_wait(t, flag, 1, FLAG_TOTAL);
    t->a = script_rows(p, 0, buffers[3], row);
    task_store_to(t, script_rows(p, 0, buffers[2], row));
}

static void add_gemm(struct program *p, uint32_t buffers[4])
{
    buffers[0] = script_buffer(p, "a", GEMM_ROWS, GEMM_K, 1);
    buffers[1] = script_buffer(p, "b", GEMM_COLS, GEMM_K, 1);
    buffers[2] = script_buffer(p, "c", GEMM_ROWS, GEMM_COLS, 1);
    buffers[3] = script_buffer(p, "aside", GEMM_ROWS, GEMM_COLS, 1);
    script_input(p, 0, buffers[0], TENSOR_A, 0, 0);
    script_input(p, 0, buffers[1], TENSOR_B, 0, 0);
    script_io(p, 0, (struct io_slice){IO_OUTPUT, buffers[2], 0, GEMM_ROWS, GEMM_COLS, TENSOR_C, ROWS_OF_GEMM, 0});
    program_add_flags(p, "aside", GEMM_ROWS / TILE);
}

/* All by one worker. */
static void mix(struct program *p, bool has_128, bool has_64, bool has_gemm)
{
    struct head_buffers of_128, of_64;
    uint64_t gemm_row = has_gemm ? 0 : GEMM_ROWS;
    uint32_t queue = script_queue_and_crew(p, "main"), buffers[4];

    p->crews[0].workers = 1;
    if (has_128)
        of_128 = add_heads(p, 128, 0);
    if (has_64)
        of_64 = add_heads(p, 64, ROWS_OF_64);
    if (has_gemm)
        add_gemm(p, buffers);
    for (uint64_t head = 0; head < HEADS; head++)
        for (uint64_t row = 0; row < wide.attention.seq; row += TILE) {
            if (has_128)
                attend(p, queue, &of_128, head, row);
            if (gemm_row < GEMM_ROWS)
                multiply(p, queue, buffers, gemm_row);
            gemm_row += TILE;
            if (has_64)
                attend(p, queue, &of_64, head, row);
        }
}

static void mix_heads(struct program *p)
{
    mix(p, true, true, false);
}

static void mix_128(struct program *p)
{
    mix(p, true, false, true);
}

static void mix_64(struct program *p)
{
    mix(p, false, true, true);
}

static void run(void (*build)(struct program *p), struct problem problem, const char *options, struct run_result *r)
{
    struct program program = {0};

    script_init(&program, (struct world){1, 1});
    build(&program);
    harness_run(&(struct trial){.backend = &cuda_backend,
                                .kernel = &mixed,
                                .program = &program,
                                .problem = problem,
                                .timing = {.mode = TIMING_ISOLATED, .warmup = 1, .iterations = 3},
                                .options = options},
                r);
    program_fini(&program);
}

START_TEST(ops_take_turns)
{
    static const char *const options[] = {"prefetch=1 timeout=2s", "prefetch=2 timeout=2s", "prefetch=4 timeout=2s"};
    static void (*const mixtures[])(struct program *) = {mix_heads, mix_128, mix_64};
    struct run_result *r = calloc(1, sizeof *r);

    run(mixtures[_i % 3], wide, options[_i / 3], r);
    ck_assert_msg(r->status == ST_OK && r->elements_wrong == 0 && r->elements_checked > 0, "%s: %s", options[_i / 3],
                  r->report);
    free(r);
}
END_TEST

/* ---- scores that climb ---- */

/* Queries are 1; keys are whole numbers that grow by 1 every so many keys.  A block of 128 keys then adds 2^46 and
 * more to the weights, or with the steeper slope more than an f32 holds. */
static const uint64_t keys_per_step[] = {32, 2};
static uint64_t per_step;

static float climbing_key(uint64_t position)
{
    return (float)(position / per_step);
}

static void climbing_input(const struct problem *global, uint64_t seed, uint64_t epoch, uint32_t tensor, uint64_t row,
                           uint64_t col, uint64_t count, float *out)
{
    reference_attention.input(global, seed, epoch, tensor, row, col, count, out);
    if (tensor == TENSOR_Q || row < global->attention.seq)
        for (uint64_t i = 0; i < count; i++)
            out[i] = tensor == TENSOR_Q ? 1 : climbing_key(row);
}

/* The same for every query. */
static void climbing_row(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t col, uint64_t cols,
                         struct expected *out)
{
    const struct attention_problem *a = &global->attention;
    double root = sqrt((double)a->head_dim), sum = 0, *result = calloc(2 * cols, sizeof *result);
    float *values = malloc(cols * sizeof *values);

    ck_assert(result && values);
    for (uint64_t j = 0; j < a->seq; j++) {
        double weight = exp(root * ((double)climbing_key(j) - (double)climbing_key(a->seq - 1)));

        reference_attention.input(global, seed, epoch, TENSOR_KV, a->seq + j, col, cols, values);
        sum += weight;
        for (uint64_t i = 0; i < cols; i++) {
            result[2 * i] += weight * (double)values[i];
            result[2 * i + 1] += weight * fabs((double)values[i]);
        }
    }
    for (uint64_t i = 0; i < cols; i++)
        out[i] = (struct expected){(float)(result[2 * i] / sum), (float)(result[2 * i + 1] / sum / 100)};
    free(result);
    free(values);
}

static void climbing_expected(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                              uint64_t col, uint64_t cols, struct expected *out)
{
    (void)row;
    climbing_row(global, seed, epoch, col, cols, out);
    for (uint64_t i = 1; i < rows; i++)
        memcpy(out + i * cols, out, cols * sizeof *out);
}

static const struct bounded_check climbing_check = {climbing_input, climbing_expected, memory_bytes};
static const struct kernel climbing = {.name = "climbing", .global = same_problem, .bounded = &climbing_check};

static void build_climbing(struct program *p, uint64_t dim)
{
    struct head_buffers b = add_heads(p, dim, 0);
    uint32_t queue = script_queue_and_crew(p, "main");

    for (uint64_t head = 0; head < HEADS; head++)
        for (uint64_t row = 0; row < wide.attention.seq; row += TILE)
            attend(p, queue, &b, head, row);
}

START_TEST(climbing_scores_come_out_right)
{
    struct run_result *r = calloc(1, sizeof *r);
    struct problem problem = _i % 2 ? wide : narrow(&wide);
    struct program program = {0};

    per_step = keys_per_step[_i / 2];
    script_init(&program, (struct world){1, 1});
    build_climbing(&program, problem.attention.head_dim);
    harness_run(&(struct trial){.backend = &cuda_backend,
                                .kernel = &climbing,
                                .program = &program,
                                .problem = problem,
                                .timing = {.mode = TIMING_ISOLATED, .warmup = 1, .iterations = 2},
                                .options = "timeout=2s"},
                r);
    ck_assert_msg(r->status == ST_OK && r->elements_wrong == 0 && r->elements_checked > 0, "%s", r->report);
    program_fini(&program);
    free(r);
}
END_TEST

/* ---- chains ---- */

/* Each tile of queries in one task for each of these runs of keys.  The last tile of the first head is cut short
 * where rows of the next one follow, that of the second where the matrix ends. */
static const uint64_t key_runs[] = {128, 72, 100};
enum { LINKS = sizeof key_runs / sizeof *key_runs, TILES = 3 };

struct chain {
    struct head_buffers heads;
    uint32_t part, lse, queue;
};

static uint32_t add_f32(struct program *p, const char *name, uint64_t cols)
{
    return program_add_buffer(p, (struct buffer){name, DTYPE_F32, HEADS * wide.attention.seq, cols, 1});
}

static void link_chain(struct program *p, const struct chain *c, uint64_t head, uint64_t row, uint32_t link)
{
    uint64_t at = head * wide.attention.seq + row;
    uint32_t flag = (uint32_t)(head * TILES + row / TILE) * LINKS + link;
    struct task *t = attend(p, c->queue, &c->heads, head, row);

    t->segment_table = 0;
    t->segment_first = link;
    t->segment_count = 1;
    t->attention.lse = script_rows(p, 0, c->lse, at);
    if (link > 0) {
        t->addend = script_rows(p, 0, c->part, at);
        t->addend_count = 1;
        task_wait(t, flag - 1, 1, FLAG_TOTAL);
    }
    if (link + 1 == LINKS)
        return;
    t->out[0] = script_rows(p, 0, c->part, at);
    t->attention.leaves = true;
    task_signal(t, 0, flag, 1);
}

static void build_chains(struct program *p, uint64_t dim)
{
    uint64_t first = 0, seq = wide.attention.seq;
    struct chain c = {.heads = add_heads(p, dim, 0)};

    c.part = add_f32(p, "part", dim);
    c.lse = add_f32(p, "lse", 1);
    c.queue = script_queue_and_crew(p, "main");
    program_add_flags(p, "linked", (uint64_t)HEADS * TILES * LINKS);
    for (uint32_t link = 0; link < LINKS; link++) {
        script_segment(
            p,
            (struct segment){.k = key_runs[link], .a_offset = first * dim, .b_offset = first * dim, .position = first});
        first += key_runs[link];
        for (uint64_t head = 0; head < HEADS; head++)
            for (uint64_t row = 0; row < seq; row += TILE)
                link_chain(p, &c, head, row, link);
    }
}

static void chain_128(struct program *p)
{
    build_chains(p, 128);
}

static void chain_64(struct program *p)
{
    build_chains(p, 64);
}

/* Half of the keys never come: the second segment waits for a flag that nobody raises. */
static void build_waiting(struct program *p)
{
    struct head_buffers b = add_heads(p, 128, 0);
    uint32_t queue = script_queue_and_crew(p, "main");
    uint64_t half = wide.attention.seq / 2;

    program_add_flags(p, "never", 1);
    script_segment(p, (struct segment){.k = half});
    script_segment(p, (struct segment){.k = half,
                                       .a_offset = half * 128,
                                       .b_offset = half * 128,
                                       .position = half,
                                       .wait = {.flag = NEVER, .count = 1, .value = 1}});
    for (uint64_t head = 0; head < HEADS; head++) {
        struct task *t = attend(p, queue, &b, head, 0);

        t->segment_table = 0;
        t->segment_count = 2;
    }
}

START_TEST(chains_come_out_right)
{
    struct run_result *r = calloc(1, sizeof *r);

    run(_i % 2 ? chain_128 : chain_64, _i % 2 ? wide : narrow(&wide), _i / 2 ? "prefetch=1 timeout=2s" : "timeout=2s",
        r);
    ck_assert_msg(r->status == ST_OK && r->elements_wrong == 0 && r->elements_checked > 0, "%s", r->report);
    free(r);
}
END_TEST

START_TEST(missing_keys_are_reported)
{
    struct run_result *r = calloc(1, sizeof *r);

    run(build_waiting, wide, "timeout=1s", r);
    ck_assert_msg(r->status == ST_HANG && strstr(r->report, "never[0]"), "%s: %s", status_text(r->status), r->report);
    free(r);
}
END_TEST

TCase *cuda_attention_tests(void)
{
    TCase *tc = tcase_create("attention");
    bool few = getenv("MKERNEL_TEST_FEW") != NULL; /* under a slow checker */

    tcase_add_loop_test(tc, ops_take_turns, 0, few ? 3 : 9);
    tcase_add_loop_test(tc, climbing_scores_come_out_right, 0, few ? 2 : 4);
    tcase_add_loop_test(tc, chains_come_out_right, 0, few ? 2 : 4);
    tcase_add_test(tc, missing_keys_are_reported);
    return tc;
}
