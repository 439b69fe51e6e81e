#include <check.h>

#include "core/program.h"

#include "../suite.h"

static uint64_t length(const struct program *p, uint32_t rank, uint32_t queue)
{
    (void)p;
    return rank + queue;
}

static uint64_t total(const struct program *p, uint32_t rank, uint32_t flag)
{
    (void)p, (void)rank;
    return flag + 1;
}

static void fill(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *t)
{
    (void)p, (void)queue, (void)index;
    t->op = OP_GEMM;
    t->k = 100;
    if (rank == 0)
        return;
    t->segment_table = 0;
    t->segment_first = 2;
    t->segment_count = 3;
    t->a.offset = t->b.offset = 1000;
}

static uint32_t table_size(const struct program *p, uint32_t rank, uint32_t table)
{
    (void)p, (void)rank, (void)table;
    return 4;
}

static void segment(const struct program *p, uint32_t rank, uint32_t table, uint32_t index, struct segment *out)
{
    (void)p, (void)rank, (void)table;
    out->k = 10 + index;
    out->a_offset = index;
    out->b_offset = 2 * index;
}

static const struct program_ops ops = {
    .queue_length = length, .flag_total = total, .task = fill, .segment_table_size = table_size, .segment = segment};
static struct program p;

static void open_program(void)
{
    p = (struct program){.world = {2, 3}, .ops = &ops};
}

START_TEST(buffers_stand_one_behind_the_other)
{
    uint32_t a = program_add_buffer(&p, (struct buffer){"a", DTYPE_BF16, 3, 5, 1});
    uint32_t b = program_add_buffer(&p, (struct buffer){"b", DTYPE_F32, 64, 2, 3});
    uint32_t empty = program_add_buffer(&p, (struct buffer){"empty", DTYPE_F32, 0, 2, 2});

    ck_assert_uint_eq(program_buffer_offset(&p, a, 7), 0);
    ck_assert_uint_eq(program_buffer_offset(&p, b, 0), 256);
    ck_assert_uint_eq(program_buffer_offset(&p, b, 1), 256 + 512);
    ck_assert_uint_eq(program_buffer_offset(&p, b, 5), 256 + 2 * 512);
    ck_assert_uint_eq(program_buffer_offset(&p, b, 6), 256);
    ck_assert_uint_eq(program_buffer_offset(&p, empty, 1), 256 + 3 * 512);
    ck_assert_uint_eq(program_window_bytes(&p), 256 + 3 * 512);
    ck_assert_uint_eq(buffer_elements(&p.buffers[b]), 128);
}
END_TEST

START_TEST(flags_are_found_by_number)
{
    uint32_t ready = program_add_flags(&p, "ready", 4), done = program_add_flags(&p, "done", 2);

    ck_assert_uint_eq(ready, 0);
    ck_assert_uint_eq(done, 4);
    ck_assert_str_eq(program_flag_group(&p, 3)->name, "ready");
    ck_assert_str_eq(program_flag_group(&p, 4)->name, "done");
    ck_assert_ptr_null(program_flag_group(&p, 6));
}
END_TEST

START_TEST(wait_targets_count_epochs)
{
    static const struct {
        struct wait wait;
        uint64_t epoch, target;
    } cases[] = {
        {{.flag = 2, .count = 1, .value = 1}, 1, 1},
        {{.flag = 2, .count = 1, .value = 1}, 4, 3 * 3 + 1},
        {{.flag = 2, .count = 1, .value = FLAG_TOTAL}, 4, 4 * 3},
        {{.flag = 2, .count = 1, .value = FLAG_TOTAL, .lag = 1}, 1, 0},
        {{.flag = 2, .count = 1, .value = FLAG_TOTAL, .lag = 1}, 2, 3},
        {{.flag = 2, .count = 1, .value = 2, .lag = 2}, 2, 0},
        {{.flag = 2, .count = 1, .value = 2, .lag = 2}, 5, 2 * 3 + 2},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_uint_eq(program_wait_target(&p, 0, &cases[i].wait, 0, cases[i].epoch), cases[i].target);
    ck_assert_uint_eq(program_wait_target(&p, 0, &cases[2].wait, 5, 2), 2 * 8); /* flag 7 */
}
END_TEST

START_TEST(steps_wrap_around_the_table)
{
    struct task t;
    struct segment s;
    struct operand a, b;

    program_task(&p, 1, 0, 0, &t);
    ck_assert_uint_eq(program_step_count(&t), 3);
    program_step(&p, 1, &t, 2, &s, &a, &b); /* segment (2 + 2) % 4 */
    ck_assert_uint_eq(s.k, 10);
    program_step(&p, 1, &t, 1, &s, &a, &b);
    ck_assert_uint_eq(s.k, 13);
    ck_assert_uint_eq(a.offset, 1003);
    ck_assert_uint_eq(b.offset, 1006);
}
END_TEST

START_TEST(without_a_table_there_is_one_step)
{
    struct task t;
    struct segment s;
    struct operand a, b;

    program_task(&p, 0, 0, 0, &t);
    ck_assert_uint_eq(program_step_count(&t), 1);
    program_step(&p, 0, &t, 0, &s, &a, &b);
    ck_assert_uint_eq(s.k, 100);
    ck_assert_uint_eq(s.wait.count, 0);
}
END_TEST

START_TEST(targets_name_a_rank_or_a_node)
{
    uint32_t first;

    ck_assert_uint_eq(program_target_ranks(&p, 4, 1, &first), 1);
    ck_assert_uint_eq(first, 1);
    ck_assert_uint_eq(program_target_ranks(&p, 4, RANK_EACH, &first), 3);
    ck_assert_uint_eq(program_target_ranks(&p, 4, RANK_NODE, &first), 3);
    ck_assert_uint_eq(first, 3);
}
END_TEST

START_TEST(tasks_are_counted_over_ranks)
{
    program_add_queue(&p, "a");
    program_add_queue(&p, "b");
    ck_assert_uint_eq(program_task_count(&p), 2 * (0 + 1 + 2 + 3 + 4 + 5) + 6);
}
END_TEST

START_TEST(crews_list_queues_in_order)
{
    uint32_t a = program_add_queue(&p, "a"), b = program_add_queue(&p, "b");
    uint32_t crew = program_add_crew(&p, "crew", 7);

    program_crew_drains(&p, crew, b);
    program_crew_drains(&p, crew, a);
    ck_assert_uint_eq(p.crews[crew].queue_count, 2);
    ck_assert_uint_eq(p.crews[crew].queues[0], b);
    ck_assert_uint_eq(p.crews[crew].queues[1], a);
}
END_TEST

START_TEST(an_empty_wait_is_none)
{
    struct task t = {0};

    task_wait(&t, 3, 0, 1);
    ck_assert_uint_eq(t.wait_count, 0);
    task_wait_late(&t, 3, 2, FLAG_TOTAL);
    ck_assert_uint_eq(t.wait_count, 1);
    ck_assert_int_eq(t.waits[0].phase, WAIT_LATE);
}
END_TEST

/* Entry {group 1, first 7, 5 rows} from its row 2 on.  _i: the place in its list. */
START_TEST(a_list_moves_the_index_of_a_gemm_by_index)
{
    struct task t = {.op = OP_GEMM, .m = 4, .n = 2, .k = 8, .by_index = true, .out_count = 1};
    bool moves = _i == 0;

    t.select = (struct selection){moves ? SELECT_ENTRY : SELECT_GROUP, 0, 0, 2, 16};
    t.a = (struct operand){0, 0, 24, 8};
    t.index = (struct operand){0, 1, 3, 1};
    t.out[0] = (struct operand){0, 2, 1, 10};
    ck_assert(task_indexes(&t));
    ck_assert_uint_eq(program_index_terms(&t), 1);
    ck_assert_uint_eq(program_index_cols(&t), 8);
    program_select(&t, 1, 7, 5);
    ck_assert_uint_eq(t.m, 3);
    ck_assert_uint_eq(t.a.offset, 24);
    ck_assert_uint_eq(t.b.offset, 16);
    ck_assert_uint_eq(t.index.offset, moves ? 3 + 9 : 3);
    ck_assert_uint_eq(t.out[0].offset, moves ? 1 + 9 * 10 : 1);
    program_select(&t, 0, 0, 0);
    ck_assert(!task_indexes(&t)); /* nothing is left of it */
}
END_TEST

START_TEST(fini_takes_a_zeroed_program)
{
    struct program zero = {0};

    program_fini(&zero);
    ck_assert_str_eq(op_name(OP_GEMM), "gemm");
    ck_assert_str_eq(op_name(OP_PUT), "put");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("program");
    TCase *tc = tcase_create("program");

    tcase_add_checked_fixture(tc, open_program, NULL);
    tcase_add_test(tc, buffers_stand_one_behind_the_other);
    tcase_add_test(tc, flags_are_found_by_number);
    tcase_add_test(tc, wait_targets_count_epochs);
    tcase_add_test(tc, steps_wrap_around_the_table);
    tcase_add_test(tc, without_a_table_there_is_one_step);
    tcase_add_test(tc, targets_name_a_rank_or_a_node);
    tcase_add_test(tc, tasks_are_counted_over_ranks);
    tcase_add_test(tc, crews_list_queues_in_order);
    tcase_add_test(tc, an_empty_wait_is_none);
    tcase_add_loop_test(tc, a_list_moves_the_index_of_a_gemm_by_index, 0, 2);
    tcase_add_test(tc, fini_takes_a_zeroed_program);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
