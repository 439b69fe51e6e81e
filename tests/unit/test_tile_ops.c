#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "backends/ops/tile_ops.h"
#include "core/bf16.h"

#include "../suite.h"

/* Two nodes of two ranks; buffers are small enough to compute by hand. */
enum { RANKS = 4, ROWS = 8, COLS = 12, BF16 = 0, F32 = 1, OTHER = 2 };

static struct program program;
static uint8_t *windows[RANKS];
static struct memory memory;
static struct scratch *scratch;

static uint32_t table_size(const struct program *p, uint32_t rank, uint32_t table)
{
    (void)p, (void)rank, (void)table;
    return 3;
}

static void segment(const struct program *p, uint32_t rank, uint32_t table, uint32_t index, struct segment *out)
{
    (void)p, (void)rank, (void)table;
    out->k = index + 1; /* 1, 2, 3 */
    out->a_offset = out->b_offset = index * 4;
}

static const struct program_ops ops = {.segment_table_size = table_size, .segment = segment};

static void open_windows(void)
{
    program = (struct program){.world = {2, 2}, .ops = &ops};
    program_add_buffer(&program, (struct buffer){"bf16", DTYPE_BF16, ROWS, COLS, 2});
    program_add_buffer(&program, (struct buffer){"f32", DTYPE_F32, ROWS, COLS, 1});
    program_add_buffer(&program, (struct buffer){"other", DTYPE_BF16, ROWS, COLS, 1});
    for (int i = 0; i < RANKS; i++)
        windows[i] = calloc(1, program_window_bytes(&program));
    memory = (struct memory){&program, windows};
    scratch = scratch_create();
}

static void close_windows(void)
{
    scratch_destroy(scratch);
    for (int i = 0; i < RANKS; i++)
        free(windows[i]);
}

static void *at(uint32_t rank, uint32_t buffer, uint64_t epoch, uint64_t i)
{
    return windows[rank] + program_buffer_offset(&program, buffer, epoch) +
           i * dtype_bytes(program.buffers[buffer].dtype);
}

static void set(uint32_t rank, uint32_t buffer, uint64_t epoch, uint64_t i, float value)
{
    if (program.buffers[buffer].dtype == DTYPE_BF16)
        *(uint16_t *)at(rank, buffer, epoch, i) = bf16_from_f32(value);
    else
        *(float *)at(rank, buffer, epoch, i) = value;
}

static float get(uint32_t rank, uint32_t buffer, uint64_t epoch, uint64_t i)
{
    if (program.buffers[buffer].dtype == DTYPE_BF16)
        return f32_from_bf16(*(uint16_t *)at(rank, buffer, epoch, i));
    return *(float *)at(rank, buffer, epoch, i);
}

static struct operand operand(uint32_t rank, uint32_t buffer, uint64_t offset)
{
    return (struct operand){.rank = rank, .buffer = buffer, .offset = offset, .ld = COLS};
}

static void gemm(uint32_t rank, uint64_t epoch, const struct task *t)
{
    tile_begin(scratch, t);
    for (uint32_t i = 0; i < program_step_count(t); i++)
        tile_step(scratch, &memory, rank, epoch, t, i);
    tile_finish(scratch, &memory, rank, epoch, t);
}

/* ---- bf16 ---- */

START_TEST(bf16_rounds_to_nearest_even)
{
    static const struct {
        uint32_t from;
        uint16_t to;
    } cases[] = {
        {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81}, {0x3f807fff, 0x3f80},
        {0xbf818000, 0xbf82}, {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80}, {0x00000000, 0x0000}, {0x80000000, 0x8000},
        {0x7fc00000, 0x7fc0}, {0x7f800001, 0x7fc0}, {0xffffffff, 0xffff}, {0x00008000, 0x0000}, {0x00018000, 0x0002},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_uint_eq(bf16_from_f32(f32_from_bits(cases[i].from)), cases[i].to);
}
END_TEST

START_TEST(integers_to_256_are_exact)
{
    for (int i = -256; i <= 256; i++)
        ck_assert_float_eq(f32_from_bf16(bf16_from_f32((float)i)), (float)i);
}
END_TEST

/* ---- GEMM ---- */

/* _i: types of the operands and of the result. */
START_TEST(gemm_multiplies_by_the_transpose)
{
    uint32_t in = _i & 1 ? F32 : BF16, out = _i & 2 ? F32 : OTHER;
    struct task t = {.op = OP_GEMM, .m = 3, .n = 2, .k = 4, .segment_table = NO_TABLE, .out_count = 1};

    t.a = operand(0, in, COLS + 1);
    t.b = operand(1, in, 4 * COLS);
    t.out[0] = operand(1, out, 0);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++)
            set(0, in, 3, (uint64_t)((1 + i) * COLS + 1 + k), (float)(i + k));
    for (int j = 0; j < 2; j++)
        for (int k = 0; k < 4; k++)
            set(1, in, 3, (uint64_t)((4 + j) * COLS + k), (float)(j * k - 1));
    gemm(0, 3, &t);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++) {
            float sum = 0;

            for (int k = 0; k < 4; k++)
                sum += (float)((i + k) * (j * k - 1));
            ck_assert_float_eq(get(1, out, 3, (uint64_t)(i * COLS + j)), sum);
        }
}
END_TEST

/* Segments 2, 0, 1 of the table: k = 3 + 1 + 2 at offsets 8, 0, 4. */
START_TEST(gemm_walks_segments)
{
    struct task t = {
        .op = OP_GEMM, .m = 1, .n = 1, .segment_table = 0, .segment_first = 2, .segment_count = 3, .out_count = 1};

    t.a = operand(0, BF16, 0);
    t.b = operand(0, OTHER, 0);
    t.out[0] = operand(0, F32, 0);
    for (uint64_t i = 0; i < COLS; i++) {
        set(0, BF16, 2, i, (float)(1 << i));
        set(0, OTHER, 2, i, 1);
    }
    gemm(0, 2, &t);
    ck_assert_float_eq(get(0, F32, 2, 0), 1 + (16 + 32) + (256 + 512 + 1024));
}
END_TEST

/* 1 + 2^-8 + 2^-8 is a bf16, but not if the first sum is rounded. */
START_TEST(gemm_rounds_once_behind_the_addends)
{
    struct task t = {.op = OP_GEMM,
                     .m = 1,
                     .n = 1,
                     .k = 1,
                     .segment_table = NO_TABLE,
                     .out_count = 2,
                     .addend_stride = 2,
                     .addend_count = 2};

    t.a = operand(2, BF16, 0);
    t.b = operand(3, BF16, 0);
    t.addend = operand(2, BF16, COLS);
    t.out[0] = operand(RANK_NODE, OTHER, 5);
    t.out[1] = operand(3, F32, 0);
    set(2, BF16, 1, 0, 1);
    set(3, BF16, 1, 0, 1);
    set(2, BF16, 1, COLS, 1.0f / 256);
    set(2, BF16, 1, COLS + 2, 1.0f / 256);
    gemm(2, 1, &t);
    ck_assert_float_eq(get(2, OTHER, 1, 5), 1 + 1.0f / 128);
    ck_assert_float_eq(get(3, OTHER, 1, 5), 1 + 1.0f / 128);
    ck_assert_float_eq(get(3, F32, 1, 0), 1 + 1.0f / 128);
    ck_assert_float_eq(get(0, OTHER, 1, 5), 0); /* another node */
}
END_TEST

/* Ten results a row: a group of eight gate and eight up rows of b, then one of two and two. */
START_TEST(swiglu_pairs_gate_and_up)
{
    static const float gates[10] = {0, 1, -1, 2, -2, 4, -4, 8, 3, -3};
    struct program wide = {.world = {1, 1}};
    struct task t = {
        .op = OP_GEMM, .m = 2, .n = 10, .k = 1, .segment_table = NO_TABLE, .epilogue = EPILOGUE_SWIGLU, .out_count = 1};
    float *a, *b, *out;

    program_add_buffer(&wide, (struct buffer){"a", DTYPE_F32, 2, 1, 1});
    program_add_buffer(&wide, (struct buffer){"b", DTYPE_F32, 20, 1, 1});
    program_add_buffer(&wide, (struct buffer){"out", DTYPE_F32, 2, 10, 1});
    windows[0] = realloc(windows[0], program_window_bytes(&wide));
    memory = (struct memory){&wide, windows};
    a = (float *)(void *)(windows[0] + program_buffer_offset(&wide, 0, 1));
    b = (float *)(void *)(windows[0] + program_buffer_offset(&wide, 1, 1));
    out = (float *)(void *)(windows[0] + program_buffer_offset(&wide, 2, 1));
    a[0] = 1, a[1] = -1;
    for (int j = 0; j < 10; j++) {
        b[j < 8 ? j : 16 + j - 8] = gates[j];
        b[j < 8 ? 8 + j : 18 + j - 8] = (float)(j + 1); /* up */
    }
    t.a = (struct operand){0, 0, 0, 1};
    t.b = (struct operand){0, 1, 0, 1};
    t.out[0] = (struct operand){0, 2, 0, 10};
    gemm(0, 1, &t);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 10; j++) {
            double gate = a[i] * gates[j], want = gate / (1 + exp(-gate)) * a[i] * (j + 1);

            ck_assert_double_eq_tol(out[10 * i + j], want, 1e-6 * (1 + fabs(want)));
        }
}
END_TEST

/* Rows 6 of rank 3, 1 of rank 2 and 6 of rank 3 again, of the node's stacked copies (_i: or of rank 3 alone), each
 * twice as wide as one block of the main loop is deep, so that blocks begin inside rows. */
START_TEST(gemm_finds_its_rows_by_index)
{
    enum { HELD, WEIGHTS, RESULT, INDEX, WIDE = 2 * 300, COPY = 7 };
    struct program wide = {.world = {2, 2}};
    struct task t = {
        .op = OP_GEMM, .m = 3, .n = 1, .k = WIDE, .segment_table = NO_TABLE, .out_count = 1, .by_index = true};
    const int32_t index[] = {_i ? 6 : COPY + 6, 1, _i ? 6 : COPY + 6};
    float *out;

    program_add_buffer(&wide, (struct buffer){"held", DTYPE_BF16, COPY, WIDE, 1});
    program_add_buffer(&wide, (struct buffer){"weights", DTYPE_BF16, 1, WIDE, 1});
    program_add_buffer(&wide, (struct buffer){"result", DTYPE_F32, 4, 1, 1});
    program_add_buffer(&wide, (struct buffer){"index", DTYPE_I32, 4, 1, 1});
    for (int i = 0; i < RANKS; i++) {
        windows[i] = realloc(windows[i], program_window_bytes(&wide));
        memset(windows[i], 0, program_window_bytes(&wide));
    }
    program = wide;
    for (uint64_t k = 0; k < WIDE; k++) {
        set(3, HELD, 1, 6 * WIDE + k, 1);
        set(_i ? 3 : 2, HELD, 1, WIDE + k, k % 2 ? 3 : 0);
        set(2, WEIGHTS, 1, k, k < WIDE / 2 ? 1 : -2);
    }
    memcpy(at(2, INDEX, 1, 1), index, sizeof index);
    t.a = (struct operand){_i ? 3 : RANK_NODE, HELD, 0, WIDE};
    t.b = (struct operand){2, WEIGHTS, 0, WIDE};
    t.index = (struct operand){2, INDEX, 1, 1};
    t.index_limit = _i ? COPY : 2 * COPY;
    t.out[0] = (struct operand){2, RESULT, 0, 1};
    gemm(2, 1, &t);
    out = at(2, RESULT, 1, 0);
    ck_assert_float_eq(out[0], -300);
    ck_assert_float_eq(out[1], 150 * 3 - 150 * 6);
    ck_assert_float_eq(out[2], -300);
}
END_TEST

START_TEST(empty_gemm_does_nothing)
{
    struct task t = {.op = OP_GEMM, .m = 0, .n = 4, .k = 4, .segment_table = NO_TABLE, .out_count = 1};

    t.out[0] = operand(0, OTHER, 0);
    gemm(0, 1, &t);
    t.m = 2;
    t.k = 0; /* a sum over nothing is 0 */
    set(0, OTHER, 1, COLS + 3, 5);
    gemm(0, 1, &t);
    ck_assert_float_eq(get(0, OTHER, 1, COLS + 3), 0);
}
END_TEST

/* ---- moving ---- */

START_TEST(copy_to_the_node_leaves_its_source)
{
    struct task t = {.op = OP_COPY, .m = 2, .n = 3, .out_count = 1};

    t.a = operand(1, BF16, 2);
    t.out[0] = operand(RANK_NODE, BF16, 2);
    for (uint64_t i = 0; i < 2 * COLS; i++)
        set(1, BF16, 5, i, (float)i);
    tile_move(scratch, &memory, 1, 5, &t);
    for (uint64_t i = 0; i < 2; i++)
        for (uint64_t j = 0; j < COLS; j++) {
            bool copied = j >= 2 && j < 5;

            ck_assert_float_eq(get(0, BF16, 5, i * COLS + j), copied ? (float)(i * COLS + j) : 0);
            ck_assert_float_eq(get(1, BF16, 5, i * COLS + j), (float)(i * COLS + j));
            ck_assert_float_eq(get(0, BF16, 4, i * COLS + j), 0); /* the other copy */
        }
}
END_TEST

START_TEST(copy_converts)
{
    struct task t = {.op = OP_COPY, .m = 1, .n = 2, .out_count = 2};

    t.a = operand(0, F32, 0);
    t.out[0] = operand(0, OTHER, 0);
    t.out[1] = operand(1, OTHER, 4);
    set(0, F32, 1, 0, 1 + 1.0f / 256);
    set(0, F32, 1, 1, 257);
    tile_move(scratch, &memory, 0, 1, &t);
    ck_assert_float_eq(get(0, OTHER, 1, 0), 1);
    ck_assert_float_eq(get(1, OTHER, 1, 5), 256);
}
END_TEST

START_TEST(reduce_adds_and_rounds_once)
{
    struct task t = {.op = OP_REDUCE, .m = 2, .n = 3, .addend_count = 3, .addend_stride = 2 * COLS, .out_count = 1};

    t.addend = operand(0, BF16, 0);
    t.out[0] = operand(1, OTHER, 0);
    for (uint64_t i = 0; i < 6 * COLS; i++)
        set(0, BF16, 1, i, i < 2 * COLS ? 1 : 1.0f / 256);
    tile_move(scratch, &memory, 0, 1, &t);
    ck_assert_float_eq(get(1, OTHER, 1, COLS + 2), 1 + 1.0f / 128);
    ck_assert_float_eq(get(1, OTHER, 1, COLS + 3), 0);
    t.addend_count = 0;
    tile_move(scratch, &memory, 0, 1, &t);
    ck_assert_float_eq(get(1, OTHER, 1, COLS + 2), 0);
}
END_TEST

START_TEST(put_crosses_nodes_contiguously)
{
    struct task t = {.op = OP_PUT, .m = 2, .n = 5, .out_count = 1};

    t.a = (struct operand){.rank = 1, .buffer = BF16, .offset = 1, .ld = 5};
    t.out[0] = (struct operand){.rank = 3, .buffer = OTHER, .offset = 7, .ld = 5};
    for (uint64_t i = 0; i < 2 * COLS; i++)
        set(1, BF16, 1, i, (float)(i + 1));
    tile_move(scratch, &memory, 1, 1, &t);
    for (uint64_t i = 0; i < 2 * COLS; i++)
        ck_assert_float_eq(get(3, OTHER, 1, i), i >= 7 && i < 17 ? (float)(i - 7 + 2) : 0);
    t.n = 0;
    tile_move(scratch, &memory, 1, 1, &t); /* a bare signal moves nothing */
}
END_TEST

START_TEST(poison_survives_copies)
{
    struct task t = {.op = OP_COPY, .m = 1, .n = 1, .out_count = 1};

    t.a = operand(0, BF16, 0);
    t.out[0] = operand(1, OTHER, 0);
    *(uint16_t *)at(0, BF16, 1, 0) = 0x7fed;
    tile_move(scratch, &memory, 0, 1, &t);
    ck_assert_uint_eq(*(uint16_t *)at(1, OTHER, 1, 0), 0x7fed);
}
END_TEST

/* ---- what must not pass ---- */

START_TEST(outside_the_buffer_is_refused)
{
    struct task t = {.op = OP_COPY, .m = 2, .n = 3, .out_count = 1};

    t.a = operand(0, BF16, 0);
    t.out[0] = operand(1, OTHER, (ROWS - 1) * COLS);
    tile_move(scratch, &memory, 0, 1, &t);
}
END_TEST

START_TEST(loads_from_another_node_are_refused)
{
    struct task t = {.op = OP_COPY, .m = 1, .n = 1, .out_count = 1};

    t.a = operand(2, BF16, 0);
    t.out[0] = operand(0, OTHER, 0);
    tile_move(scratch, &memory, 0, 1, &t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tile_ops");
    TCase *tc = tcase_create("tile_ops");

    tcase_add_checked_fixture(tc, open_windows, close_windows);
    tcase_add_test(tc, bf16_rounds_to_nearest_even);
    tcase_add_test(tc, integers_to_256_are_exact);
    tcase_add_loop_test(tc, gemm_multiplies_by_the_transpose, 0, 4);
    tcase_add_test(tc, gemm_walks_segments);
    tcase_add_test(tc, gemm_rounds_once_behind_the_addends);
    tcase_add_test(tc, swiglu_pairs_gate_and_up);
    tcase_add_loop_test(tc, gemm_finds_its_rows_by_index, 0, 2);
    tcase_add_test(tc, empty_gemm_does_nothing);
    tcase_add_test(tc, copy_to_the_node_leaves_its_source);
    tcase_add_test(tc, copy_converts);
    tcase_add_test(tc, reduce_adds_and_rounds_once);
    tcase_add_test(tc, put_crosses_nodes_contiguously);
    tcase_add_test(tc, poison_survives_copies);
    tcase_add_test_raise_signal(tc, outside_the_buffer_is_refused, SIGABRT);
    tcase_add_test_raise_signal(tc, loads_from_another_node_are_refused, SIGABRT);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
