/* Grouped GEMMs against cuBLAS, and MoE dispatch + GEMM against its unfused form. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench_contest.h"
#include "bench_program.h"
#include "core/check.h"
#include "kernels/kernels.h"

enum { TILE_M = 128, TILE_N = 256, GROUPS_MAX = 64 };
enum { HEIGHT = 8 }; /* entries that are computed together, column by column */

/* ---- a grouped GEMM: a work list says which rows of A meet which group's rows of B ----
 *
 * problem.moe says what it is: `experts` groups of [inter, hidden], `tokens` rows each on average,
 * and how many each has in `top_k`: */
enum {
    EVEN,
    BY_INDEX, /* the same, but A is read by index, its rows shuffled */
    RAGGED,
    RAGGED_UP, /* as many, rounded up to whole tiles */
};

enum { BENCH_LIST = 3, BENCH_INDEX }; /* the buffers behind A, B and C */

static uint64_t rows_of(const struct moe_problem *p, uint64_t group)
{
    uint64_t rows = p->tokens / 2 + (group * 2654435761u >> 7) % p->tokens;

    if (p->top_k <= BY_INDEX)
        return p->tokens;
    return p->top_k == RAGGED ? rows : ceil_div(rows, TILE_M) * TILE_M;
}

static uint64_t rows_before(const struct moe_problem *p, uint64_t group)
{
    uint64_t rows = 0;

    for (uint64_t g = 0; g < group; g++)
        rows += rows_of(p, g);
    return rows;
}

static uint64_t entry_count(const struct moe_problem *p)
{
    uint64_t entries = 0;

    for (uint64_t g = 0; g < p->experts; g++)
        entries += ceil_div(rows_of(p, g), TILE_M);
    return entries;
}

static void write_index(uint64_t row, uint64_t rows, uint64_t of, int32_t *out)
{
    const uint64_t prime = 2654435761u;

    assert(of % prime != 0);
    for (uint64_t i = 0; i < rows; i++)
        out[i] = (int32_t)((row + i) * prime % of);
}

/* The list; the index list stands behind it. */
static void write_control(const struct problem *problem, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                          int32_t *out)
{
    const struct moe_problem *p = &problem->moe;

    (void)seed;
    (void)epoch;
    if (row >= entry_count(p)) {
        write_index(row - entry_count(p), rows, rows_before(p, p->experts), out);
        return;
    }
    assert(row == 0 && rows == entry_count(p));
    for (uint64_t g = 0; g < p->experts; g++)
        for (uint64_t at = 0; at < rows_of(p, g); at += TILE_M, out += 3) {
            out[0] = (int32_t)g;
            out[1] = (int32_t)(rows_before(p, g) + at);
            out[2] = (int32_t)min_u64(TILE_M, rows_of(p, g) - at);
        }
}

static uint64_t columns_of(const struct moe_problem *p)
{
    return ceil_div(p->inter, TILE_N);
}

static void group_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t i, struct task *t)
{
    const struct moe_problem *s = p->state;
    uint64_t first = i / (HEIGHT * columns_of(s)) * HEIGHT, rest = i - first * columns_of(s);
    uint64_t height = min_u64(HEIGHT, entry_count(s) - first);
    uint64_t entry = first + rest % height, col = rest / height * TILE_N;

    (void)queue;
    t->op = OP_GEMM;
    t->m = TILE_M;
    t->n = min_u64(TILE_N, s->inter - col);
    t->k = s->hidden;
    t->a = (struct operand){rank, BENCH_A, 0, t->k};
    t->b = (struct operand){rank, BENCH_B, col * t->k, t->k};
    t->select = (struct selection){SELECT_ENTRY, BENCH_LIST, entry, 0, s->inter * s->hidden};
    task_store_to(t, (struct operand){rank, BENCH_C, col, s->inter});
    t->by_index = s->top_k == BY_INDEX;
    t->index = (struct operand){rank, BENCH_INDEX, 0, 1};
    t->index_limit = rows_before(s, s->experts);
}

static uint64_t group_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    (void)rank;
    (void)queue;
    return entry_count(p->state) * columns_of(p->state);
}

static uint64_t no_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    (void)p;
    (void)rank;
    (void)flag;
    return 0;
}

static uint32_t group_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    const struct moe_problem *s = p->state;

    (void)rank;
    out[0] = (struct io_slice){IO_INPUT, BENCH_A, 0, rows_before(s, s->experts), s->hidden, TENSOR_A, 0, 0};
    out[1] = (struct io_slice){IO_INPUT, BENCH_B, 0, s->experts * s->inter, s->hidden, TENSOR_B, 0, 0};
    out[2] = (struct io_slice){IO_INPUT, BENCH_LIST, 0, entry_count(s), 3, TENSOR_ROUTING, 0, 0};
    out[3] =
        (struct io_slice){IO_INPUT, BENCH_INDEX, 0, rows_before(s, s->experts), 1, TENSOR_ROUTING, entry_count(s), 0};
    return s->top_k == BY_INDEX ? 4 : 3;
}

static void build_groups(struct program *p, struct moe_problem *s)
{
    static const struct program_ops ops = {
        .queue_length = group_length, .task = group_task, .flag_total = no_total, .io = group_io};
    uint64_t rows = rows_before(s, s->experts);

    *p = (struct program){.kernel = "groups", .variant = "bench", .world = {1, 1}, .ops = &ops, .state = s};
    program_add_buffer(p, (struct buffer){"A", DTYPE_BF16, rows, s->hidden, 1});
    program_add_buffer(p, (struct buffer){"B", DTYPE_BF16, s->experts * s->inter, s->hidden, 1});
    program_add_buffer(p, (struct buffer){"C", DTYPE_BF16, rows, s->inter, 1});
    program_add_buffer(p, (struct buffer){"list", DTYPE_I32, entry_count(s), 3, 1});
    program_add_buffer(p, (struct buffer){"index", DTYPE_I32, s->top_k == BY_INDEX ? rows : 0, 1, 1});
    program_add_queue(p, "tiles");
    program_crew_drains(p, program_add_crew(p, "all", 1024), 0);
}

static struct problem itself(const struct problem *problem, struct world world)
{
    (void)world;
    return *problem;
}

static const struct kernel groups_kernel = {.name = "groups", .global = itself, .control = write_control};

static struct contestant *enter_groups(struct contest *c, const char *name, struct problem problem, uint64_t rows_as)
{
    struct contestant *x = contest_enter(c, name, problem);

    x->problem.moe.top_k = rows_as;
    build_groups(&x->program, &x->problem.moe);
    contest_prepare(x, &groups_kernel, "");
    return x;
}

static struct problem groups_problem(uint64_t groups, uint64_t rows)
{
    return (struct problem){
        .m = rows, .n = 2048, .k = 7168, .moe = {.tokens = rows, .hidden = 7168, .inter = 2048, .experts = groups}};
}

static double flop_of(uint64_t rows, const struct problem *p)
{
    return 2.0 * (double)rows * (double)p->n * (double)p->k;
}

static void contest_even(struct contest *c, struct cublas *blas, uint64_t rows)
{
    static uint64_t counts[GROUPS_MAX];
    struct problem p = groups_problem(16, rows), all = p;
    struct contestant *batched, *ours;

    all.m = 16 * rows;
    for (int g = 0; g < 16; g++)
        counts[g] = rows;
    c->bench = "groups";
    snprintf(c->shape, sizeof c->shape, "16 x %llux2048x7168", (unsigned long long)rows);
    c->flop = flop_of(16 * rows, &p);
    batched = contest_enter_cublas(c, "cublas batched", blas, p, 16, NULL);
    contest_enter_cublas(c, "cublas looped", blas, all, 16, counts);
    ours = enter_groups(c, "program", p, EVEN);
    contest_compare(c, ours, batched);
    contest_hold(c);
}

static void contest_ragged(struct contest *c, struct cublas *blas, uint64_t rows)
{
    static uint64_t counts[GROUPS_MAX];
    struct problem p = groups_problem(16, rows), all;
    struct contestant *looped, *ours;

    p.moe.top_k = RAGGED;
    all = p;
    all.m = rows_before(&p.moe, 16);
    for (uint64_t g = 0; g < 16; g++)
        counts[g] = rows_of(&p.moe, g);
    c->bench = "groups";
    snprintf(c->shape, sizeof c->shape, "16 x ragged, %llu rows x2048x7168", (unsigned long long)all.m);
    c->flop = flop_of(all.m, &p);
    looped = contest_enter_cublas(c, "cublas looped", blas, all, 16, counts);
    ours = enter_groups(c, "program", p, RAGGED);
    enter_groups(c, "rounded up", p, RAGGED_UP);
    contest_compare(c, ours, looped);
    contest_hold(c);
}

void bench_groups_all(struct contest *c, struct cublas *blas)
{
    static const uint64_t rows[] = {128, 512, 1024, 4096};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        contest_even(c, blas, rows[i]);
    for (size_t i = 1; i < sizeof rows / sizeof *rows; i++)
        contest_ragged(c, blas, rows[i]);
}

/* ---- MoE dispatch + GEMM: four ranks on one GPU, a quarter of its SMs each; published sizes per
 * rank ---- */

/* One epoch of exact inputs, a sample of blocks compared; then noise again. */
static void check_once(struct contest *c, struct contestant *x)
{
    must(rig_begin(&x->rig, x->rig.epoch + 1, false) == ST_OK, x->name, x->rig.why);
    contest_run_once(c, x);
    must(rig_check_routes(&x->rig) == ST_OK, x->name, x->rig.why);
    must(rig_end(&x->rig, x->rig.epoch) == ST_OK, x->name, x->rig.why);
    fprintf(stderr, "%s: %s: %llu of %llu elements wrong %s\n", c->shape, x->name,
            (unsigned long long)x->rig.check.wrong, (unsigned long long)x->rig.check.checked, x->rig.check.first);
    for (uint64_t e = 1; e <= 2; e++)
        must(rig_begin(&x->rig, x->rig.epoch + e, true) == ST_OK, x->name, x->rig.why);
    must_cuda(cudaDeviceSynchronize(), x->name);
}

/* A node's tokens are all there when an epoch begins: one chunk. */
#define ALL_READY " group=8 chunk=128MiB"

/* Fused, three ways to come by the rows; where any are gathered everybody does that first. */
static void contest_moe(struct contest *c, uint64_t tokens)
{
    const struct kernel *k = &moe_dispatch_gemm_kernel;
    struct world world = {1, 4};
    struct problem p = {
        .moe = {.tokens = 4 * tokens, .hidden = 7168, .inter = 2048, .experts = 64, .top_k = 8, .capacity = 1.25}};
    struct problem groups = groups_problem(64, tokens * 4 * 8 / 64);

    c->bench = "moe_dispatch_gemm";
    snprintf(c->shape, sizeof c->shape, "1x4, %llu tokens a rank", (unsigned long long)tokens);
    c->flop = flop_of(tokens * 4 * 8, &groups);
    enter_groups(c, "grouped GEMM", groups, EVEN);
    enter_groups(c, "by index", groups, BY_INDEX);
    check_once(
        c, contest_enter_kernel(c, "fused, in place", k, "rows=in_place comm_sms=4" ALL_READY, FORM_FUSED, world, p));
    check_once(c, contest_enter_kernel(c, "fused, once", k, "rows=once comm_sms=16 lead=1000000" ALL_READY, FORM_FUSED,
                                       world, p));
    contest_enter_kernel(c, "fused, expanded", k, "rows=expanded comm_sms=16 lead=1000000" ALL_READY, FORM_FUSED, world,
                         p);
    check_once(c, contest_enter_kernel(c, "unfused", k, "rows=expanded" ALL_READY, FORM_UNFUSED, world, p));
    contest_hold(c);
}

void bench_moe_all(struct contest *c)
{
    static const uint64_t tokens[] = {512, 1024, 2048, 4096, 8192};

    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        contest_moe(c, tokens[i]);
}
