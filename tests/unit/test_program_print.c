/* Tasks as people read them. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/program_print.h"

#include "../suite.h"

static void segment(const struct program *p, uint32_t rank, uint32_t table, uint32_t index, struct segment *out)
{
    (void)p, (void)rank, (void)table;
    *out = (struct segment){.k = 64, .a_offset = 64 * index, .b_offset = 64 * index};
    if (index > 0)
        out->wait = (struct wait){.flag = index, .count = 1, .value = FLAG_TOTAL};
}

static uint32_t segment_table_size(const struct program *p, uint32_t rank, uint32_t table)
{
    (void)p, (void)rank, (void)table;
    return 8;
}

static const struct program_ops ops = {.segment = segment, .segment_table_size = segment_table_size};

enum { A, B, C, INBOX };

static struct program make_program(void)
{
    struct program p = {.world = {2, 4}, .ops = &ops};

    program_add_buffer(&p, (struct buffer){"A", DTYPE_BF16, 256, 512, 1});
    program_add_buffer(&p, (struct buffer){"B", DTYPE_BF16, 256, 512, 1});
    program_add_buffer(&p, (struct buffer){"C", DTYPE_BF16, 256, 256, 1});
    program_add_buffer(&p, (struct buffer){"inbox", DTYPE_F32, 1, 65536, 1});
    program_add_flags(&p, "ready", 8);
    program_add_flags(&p, "arrived", 4);
    return p;
}

static const char *print(const struct program *p, const struct task *t)
{
    static char text[PROGRAM_TASK_TEXT_BYTES];

    program_print_task(p, 1, 0, 7, t, text, sizeof text);
    return text;
}

START_TEST(a_gemm_names_its_operands_waits_and_signals)
{
    struct program p = make_program();
    struct task t = {.op = OP_GEMM, .m = 128, .n = 256, .k = 512, .segment_table = NO_TABLE};

    t.a = (struct operand){1, A, 128 * 512, 512};
    t.b = (struct operand){1, B, 0, 512};
    task_store_to(&t, (struct operand){5, INBOX, 32768, 256});
    task_wait(&t, 3, 2, FLAG_TOTAL);
    task_wait_late(&t, 8, 1, 2);
    task_signal(&t, 5, 9, 1);
    ck_assert_str_eq(print(&p, &t), "gemm #7  rank 5 inbox[@32768, 128 x 256] = A[128..255, 0..511] x B[0..255, 0..511]"
                                    "  wait ready[3..4] >= total  wait arrived[0] >= 2, late"
                                    "  signal rank 5 arrived[1] += 1");
    program_fini(&p);
}
END_TEST

START_TEST(a_stepped_gemm_names_the_waits_between_its_steps)
{
    struct program p = make_program();
    struct task t = {.op = OP_GEMM, .m = 128, .n = 256, .segment_table = 0, .segment_count = 8};

    t.a = (struct operand){1, A, 0, 512};
    t.b = (struct operand){1, B, 0, 512};
    task_store_to(&t, (struct operand){1, C, 0, 256});
    ck_assert_str_eq(print(&p, &t), "gemm #7  C[0..127, 0..255] = A[0..127, 0..63] x B[0..255, 0..63] in 8 steps"
                                    " (waits before 1: ready[1] >= total; 2: ready[2] >= total; 3: ready[3] >= total;"
                                    " 4: ready[4] >= total; and 3 more)");
    program_fini(&p);
}
END_TEST

START_TEST(an_attention_shows_queries_keys_and_what_it_hands_on)
{
    struct program p = make_program();
    struct task t = {.op = OP_ATTENTION, .m = 16, .n = 256, .k = 64, .segment_table = NO_TABLE};

    t.a = (struct operand){1, B, 0, 512};
    t.b = (struct operand){1, B, 64 * 512, 512};
    t.attention = (struct attention){.q = {1, C, 0, 256}, .position = 32, .causal = true};
    task_store_to(&t, (struct operand){1, C, 16 * 256, 256});
    ck_assert_str_eq(print(&p, &t), "attention #7  C[16..31, 0..255] = C[0..15, 0..255] at 32 causal"
                                    " x B[0..47, 0..255], B[64..111, 0..255]"); /* 48 of 64 keys are seen */
    t.attention.leaves = true;
    t.attention.lse = (struct operand){1, INBOX, 0, 1};
    t.addend = (struct operand){1, C, 16 * 256, 256};
    t.addend_count = 1;
    ck_assert_ptr_nonnull(strstr(print(&p, &t), "takes up C[16..31, 0..255] leaves inbox[@0, 16 x 1]"));
    program_fini(&p);
}
END_TEST

START_TEST(node_lag_and_addends_are_shown)
{
    struct program p = make_program();
    struct task t = {.op = OP_REDUCE, .m = 1, .n = 256};

    t.addend = (struct operand){1, INBOX, 0, 256};
    t.addend_stride = 512;
    t.addend_count = 3;
    task_store_to(&t, (struct operand){RANK_NODE, C, 256, 256});
    t.waits[t.wait_count++] = (struct wait){.flag = 0, .count = 1, .value = 1, .lag = 2};
    task_signal(&t, RANK_NODE, 8, 1);
    ck_assert_str_eq(print(&p, &t), "reduce #7  node C[1, 0..255] = sum of 3 x inbox[0, 0..255] every 512"
                                    "  wait ready[0] >= 1, lag 2  signal node arrived[0] += 1");
    t.out[0].rank = RANK_EACH;
    ck_assert_ptr_nonnull(strstr(print(&p, &t), "reduce #7  each C[1, 0..255] ="));
    program_fini(&p);
}
END_TEST

START_TEST(a_put_without_data_is_a_signal)
{
    struct program p = make_program();
    struct task t = {.op = OP_PUT};

    task_store_to(&t, (struct operand){5, C, 0, 256});
    task_signal(&t, 5, 0, 1);
    ck_assert_str_eq(print(&p, &t), "put #7  (signal only)  signal rank 5 ready[0] += 1");
    program_fini(&p);
}
END_TEST

START_TEST(what_does_not_fit_says_so)
{
    struct program p = make_program();
    struct task t = {.op = OP_NOP};
    char text[16];

    task_signal(&t, 5, 0, 1);
    program_print_task(&p, 1, 0, 7, &t, text, sizeof text);
    ck_assert_str_eq(text, "nop #7  sign...");
    program_fini(&p);
}
END_TEST

START_TEST(dynamic_work_names_where_it_looks)
{
    struct program p = make_program();
    uint32_t list = program_add_buffer(&p, (struct buffer){"list", DTYPE_I32, 8, 3, 1});
    uint32_t index = program_add_buffer(&p, (struct buffer){"index", DTYPE_I32, 256, 1, 1});
    uint32_t counts = program_add_buffer(&p, (struct buffer){"counts", DTYPE_I32, 2, 1, 1});
    struct task t = {.op = OP_GATHER_ROWS, .m = 8, .n = 512, .index_limit = 4 * 256, .segment_table = NO_TABLE};

    t.a = (struct operand){RANK_NODE, A, 0, 512};
    t.index = (struct operand){1, index, 0, 1};
    t.indexed = (struct indexed_wait){0, 8, 128};
    t.select = (struct selection){SELECT_ENTRY, list, 3, 16, 0};
    task_store_to(&t, (struct operand){1, B, 0, 512});
    ck_assert_str_eq(print(&p, &t),
                     "gather_rows #7  B[0..7, 0..511] = node A[0..255, 0..511] by index[0..7, 0]  (each row "
                     "waits for its flag of ready[0..7], 128 rows a flag)  moved to entry list[3] from its "
                     "row 16 on");
    t = (struct task){.op = OP_PUT, .m = 8, .n = 512, .segment_table = NO_TABLE};
    t.a = (struct operand){1, A, 0, 512};
    t.select = (struct selection){SELECT_COUNT, counts, 1, 0, 0};
    task_store_to(&t, (struct operand){5, A, 0, 512});
    ck_assert_str_eq(print(&p, &t), "put #7  rank 5 A[0..7, 0..511] = A[0..7, 0..511]  as many rows as counts[1]");
    program_fini(&p);
}
END_TEST

START_TEST(a_gemm_by_index_names_its_list)
{
    struct program p = make_program();
    uint32_t list = program_add_buffer(&p, (struct buffer){"list", DTYPE_I32, 8, 3, 1});
    uint32_t index = program_add_buffer(&p, (struct buffer){"index", DTYPE_I32, 256, 1, 1});
    struct task t = {.op = OP_GEMM, .m = 16, .n = 32, .k = 512, .segment_table = NO_TABLE, .by_index = true};

    t.a = (struct operand){1, A, 0, 512};
    t.b = (struct operand){1, B, 0, 512};
    t.index = (struct operand){1, index, 0, 1};
    t.index_limit = 100;
    t.indexed = (struct indexed_wait){0, 4, 32};
    t.select = (struct selection){SELECT_ENTRY, list, 2, 0, 64 * 512};
    task_store_to(&t, (struct operand){1, B, 0, 512});
    ck_assert_str_eq(print(&p, &t),
                     "gemm #7  B[0..15, 0..31] = A[0..99, 0..511] by index[0..15, 0] x B[0..31, 0..511]  "
                     "(each row waits for its flag of ready[0..3], 32 rows a flag)  moved to entry list[2]");
    t.a.rank = RANK_NODE;
    t.indexed.count = 0;
    ck_assert_str_eq(print(&p, &t), "gemm #7  B[0..15, 0..31] = node A[0..255, 0..511] by index[0..15, 0] x "
                                    "B[0..31, 0..511]  moved to entry list[2]");
    program_fini(&p);
}
END_TEST

START_TEST(experts_name_their_group_and_their_epilogue)
{
    struct program p = make_program();
    uint32_t list = program_add_buffer(&p, (struct buffer){"list", DTYPE_I32, 8, 3, 1});
    uint32_t rows = program_add_buffer(&p, (struct buffer){"rows", DTYPE_BF16, 64, 512, 1});
    struct task t = {.op = OP_GEMM, .m = 16, .n = 32, .k = 512, .segment_table = NO_TABLE};

    t.a = (struct operand){1, A, 16 * 512, 512};
    t.b = (struct operand){1, B, 0, 512};
    t.epilogue = EPILOGUE_SWIGLU;
    t.select = (struct selection){SELECT_GROUP, list, 1, 0, 64 * 512};
    task_store_to(&t, (struct operand){1, rows, 0, 512});
    ck_assert_str_eq(print(&p, &t), "gemm #7  rows[0..15, 0..31] = A[16..31, 0..511] x B[0..63, 0..511] gate and up  "
                                    "for entry list[1]");
    program_fini(&p);
}
END_TEST

START_TEST(sums_name_their_rows_and_weights)
{
    struct program p = make_program();
    uint32_t back = program_add_buffer(&p, (struct buffer){"back", DTYPE_I32, 64, 4, 1});
    uint32_t weights = program_add_buffer(&p, (struct buffer){"weights", DTYPE_F32, 64, 4, 1});
    struct task t = {.op = OP_COMBINE_ROWS, .m = 8, .n = 512, .index_limit = 4 * 256, .segment_table = NO_TABLE};

    t.a = (struct operand){RANK_NODE, A, 0, 512};
    t.index = (struct operand){1, back, 32, 4};
    t.combine = (struct combine){4, true, {1, weights, 32, 4}};
    task_store_to(&t, (struct operand){1, B, 0, 512});
    ck_assert_str_eq(print(&p, &t), "combine_rows #7  B[0..7, 0..511] = node A[0..255, 0..511] by back[8..15, 0..3] "
                                    "weighted by weights[8..15, 0..3]");
    program_fini(&p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("program_print");
    TCase *tc = tcase_create("program_print");

    tcase_add_test(tc, a_gemm_names_its_operands_waits_and_signals);
    tcase_add_test(tc, a_stepped_gemm_names_the_waits_between_its_steps);
    tcase_add_test(tc, an_attention_shows_queries_keys_and_what_it_hands_on);
    tcase_add_test(tc, node_lag_and_addends_are_shown);
    tcase_add_test(tc, a_put_without_data_is_a_signal);
    tcase_add_test(tc, dynamic_work_names_where_it_looks);
    tcase_add_test(tc, a_gemm_by_index_names_its_list);
    tcase_add_test(tc, experts_name_their_group_and_their_epilogue);
    tcase_add_test(tc, sums_name_their_rows_and_weights);
    tcase_add_test(tc, what_does_not_fit_says_so);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
