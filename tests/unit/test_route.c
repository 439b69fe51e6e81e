/* OP_ROUTE, OP_GATHER_ROWS and selections, by hand on two nodes of two GPUs. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "backends/ops/route.h"
#include "core/bf16.h"
#include "core/route.h"

/* Eight tokens, two a rank; four experts, one a rank; two choices a token. */
enum { RANKS = 4, TOKENS = 8, TOP_K = 2, EXPERTS = 4, SLOT = 3, WIDTH = 4, ROOM = 8, LIST = 9 };
enum { TABLE, COUNTS, SEND_INDEX, INDEX, ENTRIES, HELD, ROWS };

static struct program program;
static uint8_t *windows[RANKS];
static struct memory memory;
static struct route route_to, route_from;

static const int32_t table[TOKENS * TOP_K] = {
    0, 1, /* rank 0's: stays on node 0 */
    2, 3, /* goes to node 1 */
    0, 2, /* rank 1's: both nodes */
    1, 0,
    0, 3, /* rank 2's */
    2, 3,
    0, 1, /* rank 3's */
    3, 0,
};

static int32_t *control(uint32_t rank, uint32_t buffer)
{
    return (int32_t *)(void *)(windows[rank] + program_buffer_offset(&program, buffer, 1));
}

static uint16_t *rows_of(uint32_t rank, uint32_t buffer)
{
    return (uint16_t *)(void *)(windows[rank] + program_buffer_offset(&program, buffer, 1));
}

static void open_windows(void)
{
    program = (struct program){.world = {2, 2}};
    program_add_buffer(&program, (struct buffer){"table", DTYPE_I32, TOKENS, TOP_K, 1});
    program_add_buffer(&program, (struct buffer){"counts", DTYPE_I32, 2, 1, 1});
    program_add_buffer(&program, (struct buffer){"send_index", DTYPE_I32, 2 * SLOT, 1, 1});
    program_add_buffer(&program, (struct buffer){"index", DTYPE_I32, ROOM, 1, 1});
    program_add_buffer(&program, (struct buffer){"list", DTYPE_I32, LIST, 3, 1});
    program_add_buffer(&program, (struct buffer){"held", DTYPE_BF16, 2 * SLOT, WIDTH, 1});
    program_add_buffer(&program, (struct buffer){"rows", DTYPE_BF16, ROOM, WIDTH, 1});
    for (uint32_t i = 0; i < RANKS; i++) {
        windows[i] = calloc(1, program_window_bytes(&program));
        memcpy(control(i, TABLE), table, sizeof table);
    }
    memory = (struct memory){&program, windows};
    route_from = (struct route){.kind = ROUTE_RECEIVE, .world = {2, 2}, .tokens = TOKENS,
                                .experts = EXPERTS, .top_k = TOP_K, .slot_rows = SLOT,
                                .capacity = ROOM, .tile_rows = 2, .drop = true, .table = TABLE,
                                .counts = COUNTS, .index = INDEX, .list = ENTRIES};
    route_to = route_from;
    route_to.kind = ROUTE_SEND;
    route_to.index = SEND_INDEX;
}

static void close_windows(void)
{
    for (uint32_t i = 0; i < RANKS; i++)
        free(windows[i]);
}

static uint64_t route(uint32_t rank, const struct route *r)
{
    struct task t = {.op = OP_ROUTE, .route = r};

    return tile_route(&memory, rank, 1, &t);
}

START_TEST(control_buffers_come_first)
{
    ck_assert_uint_eq(program_buffer_offset(&program, HELD, 1), program_control_bytes(&program));
    ck_assert_uint_lt(program_buffer_offset(&program, ENTRIES, 1), program_control_bytes(&program));
}
END_TEST

START_TEST(a_token_is_sent_once_to_each_other_node)
{
    ck_assert_uint_eq(route(0, &route_to), 0);
    ck_assert_int_eq(control(0, COUNTS)[0], 0); /* the own node */
    ck_assert_int_eq(control(0, COUNTS)[1], 1);
    ck_assert_int_eq(control(0, SEND_INDEX)[SLOT], 1);
    route(3, &route_to);
    ck_assert_int_eq(control(3, COUNTS)[0], 2);
    ck_assert_int_eq(control(3, SEND_INDEX)[0], 0);
    ck_assert_int_eq(control(3, SEND_INDEX)[1], 1);
}
END_TEST

/* Expert 0 on rank 0: its own node's tokens by place and GPU (0, 2, 3), then node 1's in the order in which they
 * were sent: places 0 of both GPUs (4, 6), then 1 (7). */
START_TEST(rows_stand_in_order_of_arrival)
{
    static const int32_t stack = 2 * SLOT;
    const int32_t want[] = {0, stack, stack + 1, SLOT, stack + SLOT, stack + SLOT + 1};
    static const int32_t entries[] = {0, 0, 2, 0, 2, 2, 0, 4, 2, 0, 0, 0};

    ck_assert_uint_eq(route(0, &route_from), 0);
    ck_assert_mem_eq(control(0, INDEX), want, sizeof want);
    ck_assert_mem_eq(control(0, ENTRIES), entries, sizeof entries);
}
END_TEST

START_TEST(what_does_not_fit_is_counted)
{
    route_from.capacity = 4; /* tokens 0, 2, 3, 4 */
    ck_assert_uint_eq(route(0, &route_from), 2);
    ck_assert_int_eq(control(0, INDEX)[3], SLOT);
    ck_assert_int_eq(control(0, ENTRIES)[3 * 2 + 2], 0);
}
END_TEST

START_TEST(experts_that_do_not_exist_are_refused)
{
    control(0, TABLE)[3] = EXPERTS;
    route(0, &route_from);
}
END_TEST

static struct task gather(void)
{
    struct task t = {.op = OP_GATHER_ROWS, .m = 2, .n = WIDTH, .k = 2 * 2 * SLOT, .out_count = 1};

    t.a = (struct operand){RANK_NODE, HELD, 0, WIDTH};
    t.index = (struct operand){2, INDEX, 0, 1};
    t.out[0] = (struct operand){2, ROWS, 0, WIDTH};
    t.select = (struct selection){SELECT_ENTRY, ENTRIES, 1, 1, 0};
    return t;
}

/* Rank 2 and its node's stacked buffers; entry {group 0, first 3, 2 rows}, of which one was skipped. */
START_TEST(gather_reads_the_node_by_index)
{
    struct task t = gather();
    int32_t entry[] = {0, 3, 2};

    memcpy(control(2, ENTRIES) + 3, entry, sizeof entry);
    control(2, INDEX)[4] = 2 * SLOT + 5; /* row 5 of rank 3 */
    for (int i = 0; i < WIDTH; i++)
        rows_of(3, HELD)[5 * WIDTH + i] = (uint16_t)(100 + i);
    tile_select(&memory, 2, 1, &t);
    ck_assert_uint_eq(t.m, 1);
    tile_gather(&memory, 2, 1, &t);
    for (int i = 0; i < WIDTH; i++)
        ck_assert_uint_eq(rows_of(2, ROWS)[4 * WIDTH + i], 100 + i);
}
END_TEST

START_TEST(an_empty_entry_only_signals)
{
    struct task t = gather();

    task_signal(&t, 2, 0, 1);
    tile_select(&memory, 2, 1, &t);
    ck_assert_int_eq(t.op, OP_NOP);
    ck_assert_uint_eq(t.signal_count, 1);
}
END_TEST

START_TEST(counts_shorten_puts)
{
    struct task t = {.op = OP_PUT, .m = 4, .n = WIDTH, .out_count = 1};

    t.select = (struct selection){SELECT_COUNT, COUNTS, 1, 4, 0};
    control(0, COUNTS)[1] = 6;
    tile_select(&memory, 0, 1, &t);
    ck_assert_uint_eq(t.m, 2);
    t.m = 4;
    control(0, COUNTS)[1] = 3;
    tile_select(&memory, 0, 1, &t);
    ck_assert(t.op == OP_PUT && t.m == 0); /* its signal is still to be carried */
}
END_TEST

START_TEST(unwritten_counts_are_refused)
{
    struct task t = {.op = OP_PUT, .m = 4, .n = WIDTH, .select = {SELECT_COUNT, COUNTS, 1, 0, 0}};

    control(0, COUNTS)[1] = INT32_MIN; /* poison */
    tile_select(&memory, 0, 1, &t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("route");
    TCase *tc = tcase_create("route");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, open_windows, close_windows);
    tcase_add_test(tc, control_buffers_come_first);
    tcase_add_test(tc, a_token_is_sent_once_to_each_other_node);
    tcase_add_test(tc, rows_stand_in_order_of_arrival);
    tcase_add_test(tc, what_does_not_fit_is_counted);
    tcase_add_test_raise_signal(tc, experts_that_do_not_exist_are_refused, SIGABRT);
    tcase_add_test(tc, gather_reads_the_node_by_index);
    tcase_add_test(tc, an_empty_entry_only_signals);
    tcase_add_test(tc, counts_shorten_puts);
    tcase_add_test_raise_signal(tc, unwritten_counts_are_refused, SIGABRT);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
