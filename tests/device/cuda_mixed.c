/* Attention among dynamic work, in one launch: the program of a layer of experts (routes, gathers, grouped
 * products, combines) in whose queues every other task is an attention, with heads of 128 and of 64 in turn. */
#include "cuda_mixed.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda.h"
#include "core/check.h"
#include "harness.h"
#include "kernels/kernels.h"
#include "kernels/reference.h"

#define LAYER moe_dispatch_ffn_combine_kernel

/* Of a queue: one head of each width, a tile of queries a task. */
enum { SEQ = 200, TILE = 128, TILES = 2, WIDTHS = 2, ATTENTIONS = WIDTHS * TILES };

/* Results of attention stand behind those of the layer. */
enum { ROWS_OF_WIDTH = 1 << 20 };

/* One buffer holds keys and values, then the queries of each queue, then the results of each queue. */
struct width {
    uint32_t buffer;
    uint64_t dim;
};

struct mixture {
    struct program layer;
    struct width widths[WIDTHS];
};

/* ---- what stands where, and what is expected ---- */

static const uint64_t dims[WIDTHS] = {128, 64};

static struct problem problem_of_width(const struct problem *global, uint64_t row)
{
    struct problem p = *global;

    p.attention.head_dim = dims[row / ROWS_OF_WIDTH - 1];
    return p;
}

static void input(const struct problem *global, uint64_t seed, uint64_t epoch, uint32_t tensor, uint64_t row,
                  uint64_t col, uint64_t count, float *out)
{
    struct problem width;

    if (tensor != TENSOR_Q && tensor != TENSOR_KV) {
        LAYER.bounded->input(global, seed, epoch, tensor, row, col, count, out);
        return;
    }
    width = problem_of_width(global, row);
    reference_attention.input(&width, seed, epoch, tensor, row % ROWS_OF_WIDTH, col, count, out);
}

static void expected(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                     uint64_t col, uint64_t cols, struct expected *out)
{
    struct problem width;

    if (row < ROWS_OF_WIDTH) {
        LAYER.bounded->expected(global, seed, epoch, row, rows, col, cols, out);
        return;
    }
    width = problem_of_width(global, row);
    reference_attention.expected(&width, seed, epoch, row % ROWS_OF_WIDTH, rows, col, cols, out);
}

static uint64_t memory_bytes(const struct problem *global)
{
    return LAYER.bounded->memory_bytes(global) + reference_attention.memory_bytes(global);
}

static struct problem global_problem(const struct problem *problem, struct world world)
{
    struct problem p = LAYER.global(problem, world);

    p.attention = problem->attention;
    return p;
}

static const struct bounded_check check = {input, expected, memory_bytes};

/* ---- the program ---- */

static const struct mixture *mixture_of(const struct program *p)
{
    return p->state;
}

static uint64_t length(const struct program *p, uint32_t rank, uint32_t queue)
{
    return program_queue_length(&mixture_of(p)->layer, rank, queue) + ATTENTIONS;
}

static struct operand rows_of(const struct width *w, uint32_t rank, uint64_t row)
{
    return (struct operand){rank, w->buffer, row * w->dim, w->dim};
}

static uint64_t first_query(void)
{
    return 2 * SEQ;
}

static uint64_t first_result(const struct mixture *m)
{
    return first_query() + (uint64_t)m->layer.queue_count * SEQ;
}

/* All ranks have the same queries, and results of their own. */
static void attend(const struct mixture *m, uint32_t rank, uint32_t queue, uint64_t number, struct task *t)
{
    const struct width *w = &m->widths[number % WIDTHS];
    uint64_t tile = number / WIDTHS, row = (uint64_t)queue * SEQ + tile * TILE;

    t->op = OP_ATTENTION;
    t->m = min_u64(TILE, SEQ - tile * TILE);
    t->n = w->dim;
    t->k = SEQ;
    t->segment_table = NO_TABLE;
    t->a = rows_of(w, rank, 0);
    t->b = rows_of(w, rank, SEQ);
    t->attention.q = rows_of(w, rank, first_query() + row);
    task_store_to(t, rows_of(w, rank, first_result(m) + row));
}

static void task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t i, struct task *t)
{
    const struct mixture *m = mixture_of(p);
    uint64_t others = program_queue_length(&m->layer, rank, queue), pairs = min_u64(others, ATTENTIONS);

    if (i < 2 * pairs && i % 2 == 0)
        program_task(&m->layer, rank, queue, i / 2, t);
    else if (i < 2 * pairs)
        attend(m, rank, queue, i / 2, t);
    else if (pairs < others)
        program_task(&m->layer, rank, queue, i - pairs, t);
    else
        attend(m, rank, queue, i - pairs, t);
}

static uint64_t flag_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    return program_flag_total(&mixture_of(p)->layer, rank, flag);
}

static uint32_t io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    const struct mixture *m = mixture_of(p);
    uint32_t count = program_io(&m->layer, rank, out);
    uint64_t rows = first_result(m) - first_query();

    for (uint64_t i = 0; i < WIDTHS; i++) {
        const struct width *w = &m->widths[i];
        uint64_t from = (i + 1) * ROWS_OF_WIDTH;

        out[count++] = (struct io_slice){IO_INPUT, w->buffer, 0, 2 * SEQ, w->dim, TENSOR_KV, from, 0};
        out[count++] = (struct io_slice){IO_INPUT, w->buffer, first_query(), rows, w->dim, TENSOR_Q, from, 0};
        out[count++] = (struct io_slice){IO_OUTPUT, w->buffer, first_result(m), rows, w->dim, TENSOR_O, from, 0};
    }
    ck_assert_uint_le(count, PROGRAM_IO_MAX);
    return count;
}

static void fini(struct program *p)
{
    program_fini(&((struct mixture *)p->state)->layer);
    free(p->state);
}

static const struct program_ops ops = {
    .queue_length = length, .task = task, .flag_total = flag_total, .io = io, .fini = fini};

static void build(struct program *p, const struct problem *problem, struct world world, const char *params)
{
    struct mixture *m = calloc(1, sizeof *m);

    harness_emit(&LAYER, problem, world, FORM_FUSED, params, &m->layer);
    *p = m->layer;
    p->ops = &ops;
    p->state = m;
    for (int i = 0; i < WIDTHS; i++) {
        struct buffer heads = {"heads", DTYPE_BF16, 2 * first_result(m) - first_query(), dims[i], 1};

        m->widths[i] = (struct width){program_add_buffer(p, heads), dims[i]};
    }
}

/* ---- runs ---- */

/* The last one is the smallest: under a slow checker it has to do. */
static const struct {
    struct world world;
    struct moe_problem moe;
    const char *params, *options;
} cases[] = {
    {{1, 1},
     {.tokens = 300, .hidden = 192, .inter = 320, .experts = 6, .top_k = 4, .routing = MOE_UNIFORM, .capacity = 1e3},
     "",
     "prefetch=4 timeout=2s"},
    {{1, 2},
     {.tokens = 400, .hidden = 64, .inter = 256, .experts = 10, .top_k = 3, .routing = MOE_SKEWED, .capacity = 1e3},
     "comm_sms=16",
     "prefetch=2 timeout=2s"},
    {{2, 2},
     {.tokens = 300, .hidden = 256, .inter = 128, .experts = 8, .top_k = 2, .routing = MOE_HALF, .capacity = 1e3},
     "comm_sms=16",
     "prefetch=3 fifo=1 timeout=2s"},
    {{1, 1},
     {.tokens = 50, .hidden = 33, .inter = 17, .experts = 16, .top_k = 1, .routing = MOE_HOT, .capacity = 1e3},
     "tile_m=16 tile_n=32 gather_rows=8 combine_rows=5",
     "prefetch=1 timeout=2s"},
};

START_TEST(attention_mixes_with_dynamic_work)
{
    struct kernel kernel = LAYER;
    struct run_result *r = calloc(1, sizeof *r);
    struct program program = {0};
    struct problem problem = {.moe = cases[_i].moe};

    kernel.global = global_problem;
    kernel.bounded = &check;
    build(&program, &problem, cases[_i].world, cases[_i].params);
    problem.attention = (struct attention_problem){
        .seq = SEQ, .batch = 1, .heads = program.queue_count, .kv_heads = 1, .head_dim = 128, .stripes = 1};
    harness_run(&(struct trial){.backend = &cuda_backend,
                                .kernel = &kernel,
                                .program = &program,
                                .problem = problem,
                                .timing = {.mode = TIMING_ISOLATED, .warmup = 1, .iterations = 3},
                                .options = cases[_i].options},
                r);
    ck_assert_msg(r->status == ST_OK && r->elements_wrong == 0 && r->elements_checked > 0, "case %d: %s\n%s", _i,
                  status_text(r->status), r->report);
    program_fini(&program);
    free(r);
}
END_TEST

TCase *cuda_mixed_tests(void)
{
    TCase *tc = tcase_create("mixed");
    int count = (int)(sizeof cases / sizeof *cases);

    tcase_add_loop_test(tc, attention_mixes_with_dynamic_work, getenv("MKERNEL_TEST_FEW") ? count - 1 : 0, count);
    return tc;
}
