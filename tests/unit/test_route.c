/* OP_ROUTE, OP_GATHER_ROWS, OP_COMBINE_ROWS and selections, by hand on two nodes of two GPUs. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "backends/ops/route.h"
#include "core/bf16.h"
#include "core/route.h"

#include "../suite.h"

/* Eight tokens, two a rank; four experts, one a rank; two choices a token. */
enum { RANKS = 4, TOKENS = 8, TOP_K = 2, EXPERTS = 4, SLOT = 3, WIDTH = 4, ROOM = 8, LIST = 9 };
enum { TABLE, COUNTS, SEND_INDEX, INDEX, ENTRIES, BACK, SEND_BACK, PULLS, PULL_COUNT, HELD, ROWS, WEIGHTS, SUMS };

static struct program program;
static uint8_t *windows[RANKS];
static struct memory memory;
static struct route route_to, route_from;

static const int32_t table[TOKENS * TOP_K] = {
    0, 1,       /* rank 0's: stays on node 0 */
    2, 3,       /* goes to node 1 */
    0, 2,       /* rank 1's: both nodes */
    1, 0, 0, 3, /* rank 2's */
    2, 3, 0, 1, /* rank 3's */
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
    program_add_buffer(&program, (struct buffer){"index", DTYPE_I32, 2 * LIST, 1, 1});
    program_add_buffer(&program, (struct buffer){"list", DTYPE_I32, LIST, 3, 1});
    program_add_buffer(&program, (struct buffer){"back", DTYPE_I32, 2 * SLOT, TOP_K, 1});
    program_add_buffer(&program, (struct buffer){"send_back", DTYPE_I32, SLOT, 2, 1});
    program_add_buffer(&program, (struct buffer){"pulls", DTYPE_I32, TOKENS, 1, 1});
    program_add_buffer(&program, (struct buffer){"pull_count", DTYPE_I32, 1, 1, 1});
    program_add_buffer(&program, (struct buffer){"held", DTYPE_BF16, 2 * SLOT, WIDTH, 1});
    program_add_buffer(&program, (struct buffer){"rows", DTYPE_BF16, ROOM, WIDTH, 1});
    program_add_buffer(&program, (struct buffer){"weights", DTYPE_F32, 2, 3, 1});
    program_add_buffer(&program, (struct buffer){"sums", DTYPE_BF16, 2, WIDTH, 1});
    for (uint32_t i = 0; i < RANKS; i++) {
        windows[i] = calloc(1, program_window_bytes(&program));
        memcpy(control(i, TABLE), table, sizeof table);
    }
    memory = (struct memory){&program, windows};
    route_from = (struct route){.kind = ROUTE_RECEIVE,
                                .world = {2, 2},
                                .tokens = TOKENS,
                                .experts = EXPERTS,
                                .top_k = TOP_K,
                                .slot_rows = SLOT,
                                .capacity = ROOM,
                                .tile_rows = 2,
                                .drop = true,
                                .table = TABLE,
                                .counts = COUNTS,
                                .index = INDEX,
                                .list = ENTRIES,
                                .back = NO_BUFFER,
                                .pulls = NO_BUFFER,
                                .pull_count = NO_BUFFER};
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

/* Rank 0's expert 0 has tokens 0, 2, 3, 4, 6, 7 in three entries of two; rank 1's expert 1 has 0, 3, 6, and its
 * copy of the rows stands behind the ten of rank 0.  Rank 0 holds its own tokens 0 and 1, and 4 of rank 2. */
START_TEST(rows_are_found_again_on_the_way_back)
{
    static const int32_t want[] = {0, 10, -1, -1, -1, -1, 3, -1, -1, -1, -1, -1};

    route_from.aligned = true;
    route_from.back = BACK;
    ck_assert_uint_eq(route_rows_max(&route_from), 10);
    ck_assert_uint_eq(route(0, &route_from), 0);
    ck_assert_mem_eq(control(0, BACK), want, sizeof want);
    ck_assert_int_eq(control(0, COUNTS)[0], 2);
    ck_assert_int_eq(control(0, COUNTS)[1], 1);
}
END_TEST

/* Rank 1's entries, {0, 3} and {6}, each from a multiple of two rows on; what was dropped goes nowhere. */
START_TEST(aligned_entries_have_a_place_each)
{
    static const int32_t entries[] = {0, 0, 2, 0, 2, 1, 0, 0, 0};
    static const int32_t stack = 2 * SLOT;

    route_from.aligned = true;
    route_from.back = BACK;
    route_from.capacity = 3; /* of rank 0: tokens 0, 2, 3 */
    ck_assert_uint_eq(route(1, &route_from), 0);
    ck_assert_mem_eq(control(1, ENTRIES), entries, sizeof entries);
    ck_assert_int_eq(control(1, INDEX)[0], 0);
    ck_assert_int_eq(control(1, INDEX)[1], stack + 1);
    ck_assert_int_eq(control(1, INDEX)[2], stack + SLOT);
    ck_assert_int_eq(control(1, BACK)[TOP_K * SLOT], -1);        /* token 6: rank 0 has no room */
    ck_assert_int_eq(control(1, BACK)[TOP_K * SLOT + 1], 4 + 2); /* behind rank 0's two entries */
}
END_TEST

static void want_pulls(uint32_t rank, const int32_t *want, int32_t count)
{
    ck_assert_int_eq(*control(rank, PULL_COUNT), count);
    ck_assert_mem_eq(control(rank, PULLS), want, (size_t)count * sizeof *want);
}

/* Of eight experts rank 0 has 0 and 1.  Expert 0's entries are tokens {0, 2}, {3, 4}, {6, 7}, expert 1's {0, 3}, {6};
 * those of the own node's tokens come first, then those that end with 4, 6 and 7. */
START_TEST(a_row_is_pulled_once_when_it_is_first_mentioned)
{
    static const int32_t stack = 2 * SLOT;
    const int32_t pulls[] = {0, stack, stack + 1, SLOT, stack + SLOT, stack + SLOT + 1};
    static const int32_t index[] = {0, 1, 2, 3, 4, 5, 0, 2, 4};
    static const int32_t entries[] = {0, 0, 2, 1, 6, 2, 0, 2, 2, 1, 8, 1, 0, 4, 2, 0, 0, 0};

    route_from.experts = 8;
    route_from.capacity = 9;
    route_from.pulls = PULLS;
    route_from.pull_count = PULL_COUNT;
    ck_assert_uint_eq(route(0, &route_from), 0);
    ck_assert_mem_eq(control(0, ENTRIES), entries, sizeof entries);
    ck_assert_mem_eq(control(0, INDEX), index, sizeof index);
    want_pulls(0, pulls, 6);
    route(2, &route_from); /* has no expert at all */
    want_pulls(2, pulls, 0);
}
END_TEST

/* Four pairs are kept: tokens 0 and 2 of expert 0, 0 and 3 of expert 1. */
START_TEST(what_is_dropped_is_not_pulled)
{
    static const int32_t stack = 2 * SLOT;
    const int32_t pulls[] = {0, stack, stack + 1};
    static const int32_t index[] = {0, 1, 0, 2};

    route_from.experts = 8;
    route_from.capacity = 4;
    route_from.aligned = true;
    route_from.pulls = PULLS;
    route_from.pull_count = PULL_COUNT;
    ck_assert_uint_eq(route(0, &route_from), 5);
    ck_assert_mem_eq(control(0, INDEX), index, sizeof index);
    want_pulls(0, pulls, 3);
}
END_TEST

static uint32_t draw_table(uint32_t state)
{
    for (int i = 0; i < TOKENS; i++) {
        state = state * 1664525 + 1013904223; /* Numerical Recipes' generator */
        int32_t expert = (int32_t)(state >> 24) % EXPERTS, other = (expert + 1 + (int32_t)(state >> 20) % 3) % EXPERTS;

        for (uint32_t rank = 0; rank < RANKS; rank++) {
            control(rank, TABLE)[TOP_K * i] = expert;
            control(rank, TABLE)[TOP_K * i + 1] = other;
        }
    }
    return state;
}

/* The same list, the same rows through the list of pulls, which are counted up as the entries mention them. */
static void compare_pulls(uint32_t rank, const int32_t *index, const int32_t *entries)
{
    const int32_t *pulls = control(rank, PULLS), *places = control(rank, INDEX);
    int32_t seen = 0;

    ck_assert_mem_eq(control(rank, ENTRIES), entries, 3 * LIST * sizeof *entries);
    for (int e = 0; e < LIST; e++)
        for (int32_t i = entries[3 * e + 1]; i < entries[3 * e + 1] + entries[3 * e + 2]; i++) {
            ck_assert_int_le(places[i], seen);
            ck_assert_int_eq(pulls[places[i]], index[i]);
            for (int32_t k = 0; k < places[i]; k++)
                ck_assert_int_ne(pulls[k], index[i]);
            seen += places[i] == seen;
        }
    ck_assert_int_eq(*control(rank, PULL_COUNT), seen);
}

/* _i: bit 0 chooses aligned lists with a way back, bit 1 two experts a rank, bit 2 a capacity that drops some. */
START_TEST(pulls_are_the_index_without_repetitions)
{
    struct route once;
    uint32_t state = 1;

    route_from.aligned = _i & 1;
    route_from.back = _i & 1 ? BACK : NO_BUFFER;
    route_from.experts = _i & 2 ? 2 * EXPERTS : EXPERTS;
    route_from.capacity = _i & 4 ? 3 : 14;
    once = route_from;
    once.pulls = PULLS;
    once.pull_count = PULL_COUNT;
    for (int run = 0; run < 50; run++) {
        state = draw_table(state);
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            int32_t index[2 * LIST], entries[3 * LIST];
            uint64_t dropped = route(rank, &route_from);

            memcpy(index, control(rank, INDEX), sizeof index);
            memcpy(entries, control(rank, ENTRIES), sizeof entries);
            ck_assert_uint_eq(route(rank, &once), dropped);
            compare_pulls(rank, index, entries);
        }
    }
}
END_TEST

START_TEST(a_token_knows_where_its_sums_come_back)
{
    static const int32_t want[] = {0, -1, -1, SLOT};

    route_to.back = SEND_BACK;
    route(0, &route_to);
    ck_assert_mem_eq(control(0, SEND_BACK), want, sizeof want);
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
    struct task t = {.op = OP_GATHER_ROWS, .m = 2, .n = WIDTH, .index_limit = 2 * 2 * SLOT, .out_count = 1};

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

/* Rows 5 of rank 3 and 1 of rank 2 with weights 2 and 1/4; the term between them and all of row 1 are dropped.
 * _i: without weights. */
START_TEST(combine_sums_what_is_not_dropped)
{
    struct task t = {.op = OP_COMBINE_ROWS, .m = 2, .n = WIDTH, .index_limit = 2 * 2 * SLOT, .out_count = 1};
    static const int32_t index[] = {2 * SLOT + 5, -1, 1, -1, -1, -1};
    float *weights = (float *)(void *)(windows[2] + program_buffer_offset(&program, WEIGHTS, 1));

    t.a = (struct operand){RANK_NODE, HELD, 0, WIDTH};
    t.index = (struct operand){2, INDEX, 0, 3};
    t.combine = (struct combine){3, _i == 0, {2, WEIGHTS, 0, 3}};
    t.out[0] = (struct operand){2, SUMS, 0, WIDTH};
    memcpy(control(2, INDEX), index, sizeof index);
    memcpy(weights, (float[]){2, 1000, 0.25f, 1, 1, 1}, 6 * sizeof *weights);
    for (int i = 0; i < WIDTH; i++) {
        rows_of(3, HELD)[5 * WIDTH + i] = bf16_from_f32((float)i);
        rows_of(2, HELD)[1 * WIDTH + i] = bf16_from_f32(8);
    }
    tile_combine(&memory, 2, 1, &t);
    for (int i = 0; i < WIDTH; i++) {
        float sum = _i == 0 ? 2 * (float)i + 2 : (float)i + 8;

        ck_assert_uint_eq(rows_of(2, SUMS)[i], bf16_from_f32(sum));
        ck_assert_uint_eq(rows_of(2, SUMS)[WIDTH + i], 0);
    }
}
END_TEST

/* Entry {group 1, first 7, 2 rows}: what stands where it stands is cut and not moved, but for the group's b. */
START_TEST(a_group_moves_nothing_but_its_operand)
{
    struct task t = {.op = OP_GEMM, .m = 4, .n = WIDTH, .k = WIDTH, .out_count = 1};
    static const int32_t entry[] = {1, 7, 2};

    t.a = (struct operand){0, ROWS, 2 * WIDTH, WIDTH};
    t.b = (struct operand){0, HELD, 0, WIDTH};
    t.out[0] = (struct operand){0, ROWS, 3 * WIDTH, WIDTH};
    t.select = (struct selection){SELECT_GROUP, ENTRIES, 2, 0, 3 * WIDTH};
    memcpy(control(0, ENTRIES) + 6, entry, sizeof entry);
    tile_select(&memory, 0, 1, &t);
    ck_assert_uint_eq(t.m, 2);
    ck_assert_uint_eq(t.a.offset, 2 * WIDTH);
    ck_assert_uint_eq(t.out[0].offset, 3 * WIDTH);
    ck_assert_uint_eq(t.b.offset, 3 * WIDTH);
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

    tcase_add_checked_fixture(tc, open_windows, close_windows);
    tcase_add_test(tc, control_buffers_come_first);
    tcase_add_test(tc, a_token_is_sent_once_to_each_other_node);
    tcase_add_test(tc, rows_stand_in_order_of_arrival);
    tcase_add_test(tc, what_does_not_fit_is_counted);
    tcase_add_test(tc, rows_are_found_again_on_the_way_back);
    tcase_add_test(tc, aligned_entries_have_a_place_each);
    tcase_add_test(tc, a_row_is_pulled_once_when_it_is_first_mentioned);
    tcase_add_test(tc, what_is_dropped_is_not_pulled);
    tcase_add_loop_test(tc, pulls_are_the_index_without_repetitions, 0, 8);
    tcase_add_test(tc, a_token_knows_where_its_sums_come_back);
    tcase_add_test_raise_signal(tc, experts_that_do_not_exist_are_refused, SIGABRT);
    tcase_add_test(tc, gather_reads_the_node_by_index);
    tcase_add_test(tc, an_empty_entry_only_signals);
    tcase_add_loop_test(tc, combine_sums_what_is_not_dropped, 0, 2);
    tcase_add_test(tc, a_group_moves_nothing_but_its_operand);
    tcase_add_test(tc, counts_shorten_puts);
    tcase_add_test_raise_signal(tc, unwritten_counts_are_refused, SIGABRT);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
