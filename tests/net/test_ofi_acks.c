/* Which puts count as delivered when only some ask for an acknowledgement. */
#include <check.h>
#include <stdlib.h>

#include "backends/net/ofi_acks.h"

#include "../suite.h"

#define DEPTH 8

static struct ofi_acks acks;

static void open_acks(uint32_t every)
{
    ck_assert(ofi_acks_open(&acks, 2, DEPTH));
    acks.every = every;
}

/* The slots that are delivered now, as digits; 0 means none, so tests begin with slot 1. */
static int delivered(void)
{
    net_slot slot;
    int digits = 0;

    while (ofi_acks_next(&acks, &slot))
        digits = digits * 10 + (int)slot;
    return digits;
}

START_TEST(one_acknowledgement_covers_all_before_it)
{
    open_acks(3);
    ck_assert(!ofi_acks_start(&acks, 0, 5));
    ck_assert(!ofi_acks_start(&acks, 0, 2));
    ck_assert(ofi_acks_start(&acks, 0, 7));
    ofi_acks_done(&acks, 5, false);
    ofi_acks_done(&acks, 2, false);
    ck_assert_int_eq(delivered(), 0); /* sent, no more */
    ofi_acks_done(&acks, 7, true);
    ck_assert_int_eq(delivered(), 527);
    ofi_acks_close(&acks);
}
END_TEST

START_TEST(what_is_under_way_holds_up_those_behind_it)
{
    open_acks(3);
    for (net_slot slot = 1; slot <= 3; slot++)
        ofi_acks_start(&acks, 0, slot);
    ofi_acks_done(&acks, 1, false);
    ofi_acks_done(&acks, 3, true); /* completions come in any order: 2 has not been told yet */
    ck_assert_int_eq(delivered(), 1);
    ofi_acks_done(&acks, 2, false);
    ck_assert_int_eq(delivered(), 23);
    ofi_acks_close(&acks);
}
END_TEST

START_TEST(the_rest_is_covered_by_a_question_behind_it)
{
    open_acks(3);
    ck_assert_uint_eq(ofi_acks_uncovered(&acks, 0), 0);
    ofi_acks_start(&acks, 0, 1);
    ofi_acks_done(&acks, 1, false);
    ck_assert_uint_eq(ofi_acks_uncovered(&acks, 0), 1);
    ofi_acks_asked(&acks, 0, 1);
    ck_assert_uint_eq(ofi_acks_uncovered(&acks, 0), 0);
    ofi_acks_start(&acks, 0, 2); /* behind the question */
    ofi_acks_done(&acks, 2, false);
    ofi_acks_covered(&acks, 0, 1);
    ck_assert_int_eq(delivered(), 1);
    ck_assert_uint_eq(ofi_acks_uncovered(&acks, 0), 2);
    ofi_acks_close(&acks);
}
END_TEST

START_TEST(one_peer_says_nothing_of_another)
{
    open_acks(2);
    ofi_acks_start(&acks, 0, 1);
    ofi_acks_start(&acks, 1, 2);
    ck_assert(ofi_acks_start(&acks, 1, 3));
    for (net_slot slot = 1; slot <= 3; slot++)
        ofi_acks_done(&acks, slot, slot == 3);
    ck_assert_int_eq(delivered(), 23);
    ck_assert_uint_eq(ofi_acks_uncovered(&acks, 0), 1);
    ofi_acks_close(&acks);
}
END_TEST

START_TEST(without_order_each_asks_for_itself)
{
    open_acks(1);
    ck_assert(ofi_acks_start(&acks, 0, 1));
    ck_assert(ofi_acks_start(&acks, 0, 2));
    ofi_acks_done(&acks, 2, true);
    ck_assert_int_eq(delivered(), 2);
    ofi_acks_done(&acks, 1, true);
    ck_assert_int_eq(delivered(), 1);
    ck_assert_uint_eq(ofi_acks_uncovered(&acks, 0), 0);
    ofi_acks_close(&acks);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("acknowledgements of ofi");
    TCase *tc = tcase_create("ofi_acks");

    suite_add_tcase(s, tc);
    tcase_add_test(tc, one_acknowledgement_covers_all_before_it);
    tcase_add_test(tc, what_is_under_way_holds_up_those_behind_it);
    tcase_add_test(tc, the_rest_is_covered_by_a_question_behind_it);
    tcase_add_test(tc, one_peer_says_nothing_of_another);
    tcase_add_test(tc, without_order_each_asks_for_itself);
    return suite_run(s);
}
