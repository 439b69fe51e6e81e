#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/bf16.h"
#include "core/check.h"
#include "kernels/reference.h"

#include "../suite.h"

/* ---- the generator ---- */

START_TEST(rows_are_the_values)
{
    int8_t row[37];

    tensor_row(5, 3, TENSOR_B, 4096, 11, 6, sizeof row, row);
    for (uint64_t i = 0; i < sizeof row; i++)
        ck_assert_int_eq(row[i], tensor_value(5, 3, TENSOR_B, 4096, 11, 6 + i));
}
END_TEST

START_TEST(values_follow_every_argument)
{
    int8_t base[256], other[256];

    tensor_row(1, 1, TENSOR_A, 64, 1, 0, 256, base);
    for (int i = 0; i < 5; i++) {
        tensor_row(i == 0 ? 2 : 1, i == 1 ? 2 : 1, i == 2 ? TENSOR_B : TENSOR_A, 64, i == 3 ? 2 : 1, i == 4 ? 4 : 0,
                   256, other);
        ck_assert_msg(memcmp(base, other, sizeof base) != 0, "argument %d changes nothing", i);
    }
}
END_TEST

/* Shares of non-zero and of positive values, in 1/1000. */
START_TEST(density_gives_64_products)
{
    static const struct {
        uint64_t depth;
        long nonzero;
    } cases[] = {{1, 1000}, {64, 1000}, {65, 992}, {256, 500}, {1024, 250}, {16384, 62}};
    static int8_t row[100000];
    long nonzero = 0, positive = 0;

    tensor_row(9, 1, TENSOR_A, cases[_i].depth, 0, 0, sizeof row, row);
    for (uint64_t i = 0; i < sizeof row; i++) {
        ck_assert_int_le(abs(row[i]), 1);
        nonzero += row[i] != 0;
        positive += row[i] > 0;
    }
    ck_assert_int_le(labs(nonzero / 100 - cases[_i].nonzero), 5);
    ck_assert_int_le(labs(positive * 1000 / nonzero - 500), 12);
}
END_TEST

/* Products of A[128, 64] and B[256, 64] at one K block of one tile; one that contributes nothing
 * would hide from the check. */
static uint64_t contributions(uint64_t depth, uint64_t row, uint64_t col, uint64_t k)
{
    static int8_t a[128][64], b[256][64];
    uint64_t sum = 0;

    for (uint64_t i = 0; i < 128; i++)
        tensor_row(7, 1, TENSOR_A, depth, row + i, k, 64, a[i]);
    for (uint64_t j = 0; j < 256; j++)
        tensor_row(7, 1, TENSOR_B, depth, col + j, k, 64, b[j]);
    for (uint64_t x = 0; x < 64; x++) {
        uint64_t in_a = 0, in_b = 0;

        for (uint64_t i = 0; i < 128; i++)
            in_a += a[i][x] != 0;
        for (uint64_t j = 0; j < 256; j++)
            in_b += b[j][x] != 0;
        sum += in_a * in_b;
    }
    return sum;
}

/* Depths: k of one rank, or of all ranks of 1 x 1 to 8 x 8 worlds at k = 1024. */
START_TEST(every_k_block_counts_in_every_tile)
{
    static const uint64_t depths[] = {64, 1024, 8192, 65536};
    uint64_t depth = depths[_i];

    for (uint64_t row = 0; row < 1024; row += 512)
        for (uint64_t col = 0; col < 1024; col += 512)
            for (uint64_t k = 0; k < depth; k += 64)
                ck_assert_uint_gt(contributions(depth, row, col, k), 500);
}
END_TEST

/* ---- the reference ---- */

START_TEST(reference_is_the_product)
{
    enum { ROWS = 7, COLS = 9 };
    const struct problem g = {.m = 40, .n = 50, .k = 333};
    int16_t out[ROWS * COLS];

    reference_gemm(&g, 3, 2, 20, ROWS, 30, COLS, out);
    for (uint64_t i = 0; i < ROWS; i++)
        for (uint64_t j = 0; j < COLS; j++) {
            int sum = 0;

            for (uint64_t k = 0; k < g.k; k++)
                sum += tensor_value(3, 2, TENSOR_A, g.k, 20 + i, k) * tensor_value(3, 2, TENSOR_B, g.k, 30 + j, k);
            ck_assert_int_eq(out[i * COLS + j], sum);
        }
}
END_TEST

/* ---- a window ---- */

enum { ROWS = 4, COLS = 6 };

static uint32_t two_buffers_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    (void)p;
    out[0] = (struct io_slice){
        .role = IO_INPUT, .buffer = 0, .rows = ROWS, .cols = COLS, .tensor = TENSOR_A, .tensor_row = rank * ROWS};
    out[1] = (struct io_slice){.role = IO_OUTPUT,
                               .buffer = 1,
                               .row = 1,
                               .rows = ROWS,
                               .cols = COLS,
                               .tensor = TENSOR_C,
                               .tensor_row = rank * ROWS};
    return 2;
}

static void copy_of_a(const struct problem *g, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows, uint64_t col,
                      uint64_t cols, int16_t *out)
{
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < cols; j++)
            out[i * cols + j] = (int16_t)tensor_value(seed, epoch, TENSOR_A, g->k, row + i, col + j);
}

static struct problem same_problem(const struct problem *problem, struct world world)
{
    (void)world;
    return *problem;
}

static const struct program_ops two_buffers_ops = {.io = two_buffers_io};
static const struct kernel two_buffers_kernel = {.global = same_problem, .reference = copy_of_a};
static const struct problem two_buffers_problem = {.m = 2 * ROWS, .n = COLS, .k = COLS};
static struct program two_buffers;
static struct job two_buffers_job = {
    .program = &two_buffers, .kernel = &two_buffers_kernel, .problem = &two_buffers_problem, .seed = 4};
static void *window;

/* bf16 in, f32 out with one row before and one behind the result, two copies each. */
static void open_window(void)
{
    two_buffers = (struct program){.world = {1, 2}, .ops = &two_buffers_ops};
    program_add_buffer(&two_buffers, (struct buffer){"in", DTYPE_BF16, ROWS, COLS, 2});
    program_add_buffer(&two_buffers, (struct buffer){"out", DTYPE_F32, ROWS + 2, COLS, 2});
    window = calloc(1, program_window_bytes(&two_buffers));
    check_poison(&two_buffers_job, window);
}

static void close_window(void)
{
    free(window);
}

static uint16_t *input(uint64_t epoch)
{
    return (uint16_t *)((char *)window + program_buffer_offset(&two_buffers, 0, epoch));
}

static float *output(uint64_t epoch)
{
    return (float *)((char *)window + program_buffer_offset(&two_buffers, 1, epoch)) + COLS;
}

static void compute(uint64_t epoch)
{
    check_write_inputs(&two_buffers_job, 1, epoch, window);
    for (int i = 0; i < ROWS * COLS; i++)
        output(epoch)[i] = f32_from_bf16(input(epoch)[i]);
}

START_TEST(right_output_passes_and_is_poisoned)
{
    struct check_report report = {0};

    compute(1);
    ck_assert_float_eq(output(1)[5], tensor_value(4, 1, TENSOR_A, COLS, ROWS, 5));
    check_outputs(&two_buffers_job, 1, 1, window, &report);
    ck_assert_uint_eq(report.checked, ROWS * COLS);
    ck_assert_uint_eq(report.wrong, 0);
    check_outputs(&two_buffers_job, 1, 1, window, &report); /* again: everything is poison now */
    ck_assert_uint_eq(report.wrong, ROWS * COLS);
    ck_assert_str_eq(strstr(report.first, ": ") + 2, strstr(report.first, "out[1, 0] was never written"));
}
END_TEST

START_TEST(one_wrong_element_is_found)
{
    struct check_report report = {0};

    compute(2);
    output(2)[2 * COLS + 3] = 17;
    check_outputs(&two_buffers_job, 1, 2, window, &report);
    ck_assert_uint_eq(report.wrong, 1);
    ck_assert_ptr_nonnull(strstr(report.first, "rank 1, epoch 2: out[3, 3] is 17 and should be "));
}
END_TEST

START_TEST(last_epochs_output_is_wrong)
{
    struct check_report report = {0};

    compute(1);
    check_outputs(&two_buffers_job, 1, 3, window, &report); /* the same copy: depth 2 */
    ck_assert_uint_gt(report.wrong, 0);
}
END_TEST

START_TEST(memory_is_bounded)
{
    struct problem huge = {.m = 8, .n = 8, .k = UINT64_MAX / 2};
    struct job job = two_buffers_job;

    ck_assert_uint_lt(check_memory_bytes(&job), 64 << 10);
    ck_assert_uint_ge(check_memory_bytes(&job), ROWS * COLS * sizeof(int16_t));
    job.problem = &huge;
    ck_assert_uint_eq(check_memory_bytes(&job), UINT64_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("check");
    TCase *values = tcase_create("values"), *windows = tcase_create("windows");

    tcase_set_timeout(values, 120);
    tcase_add_test(values, rows_are_the_values);
    tcase_add_test(values, values_follow_every_argument);
    tcase_add_loop_test(values, density_gives_64_products, 0, 6);
    tcase_add_loop_test(values, every_k_block_counts_in_every_tile, 0, 4);
    tcase_add_test(values, reference_is_the_product);
    tcase_add_checked_fixture(windows, open_window, close_window);
    tcase_add_test(windows, right_output_passes_and_is_poisoned);
    tcase_add_test(windows, one_wrong_element_is_found);
    tcase_add_test(windows, last_epochs_output_is_wrong);
    tcase_add_test(windows, memory_is_bounded);
    suite_add_tcase(suite, values);
    suite_add_tcase(suite, windows);
    return suite_run(suite);
}
