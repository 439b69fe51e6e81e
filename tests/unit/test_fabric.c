/* NVLink and NIC ports: what transfers of a small cluster take.  Each test is a process of its own.
 */
#include <check.h>

#include "sim/fabric.h"

#include "../suite.h"

#define IDS_MAX 64

static struct {
    struct fabric *fabric;
    uint64_t at_ps[IDS_MAX];
    uint64_t order[IDS_MAX];
    uint64_t count;
} seen;

static struct machine machine = {
    .nvlink = {.rate = 400e9, .latency_ps = 700000, .multicast = true, .reduce = true},
    .nic = {.per_gpu = 1, .rate = 50e9, .latency_ps = 3000000, .message_ps = 200000, .kind = NIC_RC},
};

static void note(void *arg, uint64_t id, uint64_t unused)
{
    (void)arg;
    (void)unused;
    seen.order[seen.count++] = id;
    seen.at_ps[id] = engine_now_ps(fabric_engine(seen.fabric));
}

static void open_part(struct world w, uint32_t nodes, enum engine_api api)
{
    ck_assert_int_eq(fabric_create(&machine, w, nodes, api, &seen.fabric), ST_OK);
}

static void open_fabric(uint32_t nodes, uint32_t gpus_per_node)
{
    open_part((struct world){nodes, gpus_per_node}, nodes, ENGINE_AUTO);
}

static void run(void)
{
    engine_run(fabric_engine(seen.fabric));
}

static void put(uint32_t src, uint32_t dst, uint64_t bytes, uint64_t id)
{
    fabric_put(seen.fabric, src, dst, bytes, note, NULL, id, 0);
}

START_TEST(a_store_takes_latency_and_link_or_cta_rate)
{
    open_fabric(1, 4);
    fabric_nvlink(seen.fabric, 0, 1, 1000000, 0, note, NULL, 0, 0);
    fabric_nvlink(seen.fabric, 2, 3, 1000000, 50e9, note, NULL, 1, 0);
    run();
    ck_assert_uint_eq(seen.at_ps[0], 2500000 + 700000);
    ck_assert_uint_eq(seen.at_ps[1], 20000000 + 700000);
}
END_TEST

/* All multicast at once: every in link takes the bytes of all. */
START_TEST(multicasts_fill_the_in_links)
{
    open_fabric(1, 4);
    for (uint32_t rank = 0; rank < 4; rank++)
        fabric_multicast(seen.fabric, rank, 1000000, 0, note, NULL, rank, 0);
    run();
    for (uint32_t rank = 0; rank < 4; rank++)
        ck_assert_uint_eq(seen.at_ps[rank], 10000000 + 700000);
}
END_TEST

/* The same backwards. */
START_TEST(sums_by_the_switch_fill_the_out_links)
{
    open_fabric(1, 4);
    for (uint32_t rank = 0; rank < 4; rank++)
        fabric_reduce(seen.fabric, rank, 1000000, 0, note, NULL, rank, 0);
    run();
    for (uint32_t rank = 0; rank < 4; rank++)
        ck_assert_uint_eq(seen.at_ps[rank], 10000000 + 700000);
}
END_TEST

START_TEST(nodes_do_not_share_a_switch)
{
    open_fabric(2, 2);
    fabric_multicast(seen.fabric, 0, 1000000, 0, note, NULL, 0, 0);
    fabric_multicast(seen.fabric, 2, 1000000, 0, note, NULL, 1, 0);
    run();
    ck_assert_uint_eq(seen.at_ps[0], 2500000 + 700000);
    ck_assert_uint_eq(seen.at_ps[1], 2500000 + 700000);
}
END_TEST

START_TEST(a_lone_message_takes_latency_and_rate)
{
    open_fabric(2, 1);
    put(0, 1, 1000000, 0);
    put(1, 0, 0, 1);
    run();
    ck_assert_uint_eq(seen.at_ps[0], 20000000 + 3000000);
    ck_assert_uint_eq(seen.at_ps[1], 3000000);
}
END_TEST

START_TEST(small_messages_follow_at_the_message_time)
{
    open_fabric(2, 1);
    for (uint32_t i = 0; i < 10; i++)
        put(0, 1, 8, i);
    run();
    for (uint32_t i = 0; i < 10; i++)
        ck_assert_uint_eq(seen.at_ps[i], 200000 * i + 160 + 3000000);
}
END_TEST

START_TEST(large_messages_follow_at_the_link_rate)
{
    open_fabric(2, 1);
    for (uint32_t i = 0; i < 10; i++)
        put(0, 1, 1000000, i);
    run();
    for (uint32_t i = 0; i < 10; i++)
        ck_assert_uint_eq(seen.at_ps[i], 20000000 * (i + 1) + 3000000);
}
END_TEST

static void big_then_small(enum nic_kind kind)
{
    machine.nic.kind = kind;
    open_fabric(2, 1);
    put(0, 1, 1000000, 0);
    put(0, 1, 8, 1);
    run();
    ck_assert_uint_eq(seen.count, 2);
}

START_TEST(rc_keeps_the_order_of_a_destination)
{
    big_then_small(NIC_RC);
    ck_assert_uint_eq(seen.order[0], 0);
    ck_assert_uint_eq(seen.at_ps[1], 20000000 + 160 + 3000000);
}
END_TEST

START_TEST(srd_does_not)
{
    big_then_small(NIC_SRD);
    ck_assert_uint_eq(seen.order[0], 1);
    ck_assert_uint_eq(seen.at_ps[1], 200000 + 320 + 3000000);
    ck_assert_uint_eq(seen.at_ps[0], 20000000 + 160 + 3000000);
}
END_TEST

/* A full queue to one destination does not hold up another, and destinations take turns. */
START_TEST(destinations_take_turns)
{
    machine.nic.message_ps = 0;
    open_fabric(3, 1);
    for (uint32_t i = 0; i < 4; i++)
        put(0, 1, 1000000, i);
    put(0, 2, 1000000, 4);
    run();
    ck_assert_uint_eq(seen.at_ps[0], 40000000 + 3000000);
    ck_assert_uint_eq(seen.at_ps[4], 40000000 + 3000000);
    ck_assert_uint_eq(seen.at_ps[3], 100000000 + 3000000);
}
END_TEST

START_TEST(two_messages_are_in_flight_at_once)
{
    machine.nic.message_ps = 0;
    open_fabric(9, 1);
    for (uint32_t i = 0; i < 8; i++)
        put(0, i + 1, 1000000, i);
    run();
    for (uint32_t i = 0; i < 8; i++)
        ck_assert_uint_eq(seen.at_ps[i], 40000000 * (i / 2 + 1) + 3000000);
}
END_TEST

START_TEST(a_gpu_uses_its_nics_in_turn)
{
    machine.nic.per_gpu = 2;
    open_fabric(2, 2);
    for (uint32_t i = 0; i < 4; i++)
        put(1, 3, 1000000, i);
    run();
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(seen.at_ps[i], 20000000 * (i / 2 + 1) + 3000000);
}
END_TEST

START_TEST(receivers_are_shared)
{
    open_fabric(3, 1);
    put(0, 2, 1000000, 0);
    put(1, 2, 1000000, 1);
    run();
    ck_assert_uint_eq(seen.at_ps[0], 40000000 + 3000000);
    ck_assert_uint_eq(seen.at_ps[1], 40000000 + 3000000);
}
END_TEST

START_TEST(links_report_their_use)
{
    struct link_result links[RESULT_LINKS_MAX];

    open_fabric(2, 2);
    put(0, 2, 1000000, 0); /* 20 us + 3 us */
    fabric_multicast(seen.fabric, 1, 4000000, 0, note, NULL, 1, 0);
    run();
    ck_assert_uint_eq(fabric_links(seen.fabric, links), 4);
    ck_assert_str_eq(links[0].name, "nvlink out");
    ck_assert_uint_eq(links[0].bytes, 4000000);
    ck_assert_str_eq(links[1].name, "nvlink in");
    ck_assert_uint_eq(links[1].bytes, 8000000);
    ck_assert_double_eq_tol(links[1].max_busy, 10.0 / 23.0, 1e-9);
    ck_assert_double_eq_tol(links[1].mean_busy, 5.0 / 23.0, 1e-9);
    ck_assert_str_eq(links[2].name, "nic out");
    ck_assert_double_eq_tol(links[2].max_busy, 20.0 / 23.0, 1e-9);
    ck_assert_double_eq_tol(links[2].mean_busy, 5.0 / 23.0, 1e-9);
    ck_assert_str_eq(links[3].name, "nic in");
    ck_assert_uint_eq(links[3].bytes, 1000000);
    fabric_destroy(seen.fabric);
}
END_TEST

static const struct world worlds[] = {{1, 1}, {1, 8}, {4, 1}, {2, 4}};
static const uint32_t classes[] = {0, 2, 2, 4};

START_TEST(a_world_has_only_the_links_it_can_use)
{
    struct link_result links[RESULT_LINKS_MAX];

    open_fabric(worlds[_i].nodes, worlds[_i].gpus_per_node);
    engine_after(fabric_engine(seen.fabric), 5, note, NULL, 0, 0);
    run();
    ck_assert_uint_eq(seen.at_ps[0], 5);
    ck_assert_uint_eq(fabric_links(seen.fabric, links), classes[_i]);
    fabric_destroy(seen.fabric);
}
END_TEST

/* Every node sends along its rails and across them; node 0's in link has what the nodes before it send. */
static void put_everywhere(struct world w, uint32_t nodes)
{
    fabric_destroy(seen.fabric);
    open_part(w, nodes, ENGINE_FLUID);
    for (uint32_t node = 0; node < nodes; node++) {
        uint32_t next = (node + 1) % w.nodes, after = (node + 2) % w.nodes;

        put(world_rank(w, node, 0), world_rank(w, next, 0), 1000000, 3 * node);
        put(world_rank(w, node, 0), world_rank(w, after, 0), 3000000, 3 * node + 1);
        put(world_rank(w, node, 1), world_rank(w, next, 0), 2000000, 3 * node + 2);
    }
    run();
}

START_TEST(one_node_stands_for_all)
{
    struct world w = {3, 2};
    uint64_t whole_ps[3];

    put_everywhere(w, w.nodes);
    for (int i = 0; i < 3; i++)
        whole_ps[i] = seen.at_ps[i];
    put_everywhere(w, 1);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(seen.at_ps[i], whole_ps[i]);
    ck_assert_uint_gt(whole_ps[2], 2 * 2000000 / 50 * 1000); /* it shared the way in */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fabric");
    TCase *tc = tcase_create("fabric");

    tcase_add_test(tc, a_store_takes_latency_and_link_or_cta_rate);
    tcase_add_test(tc, multicasts_fill_the_in_links);
    tcase_add_test(tc, sums_by_the_switch_fill_the_out_links);
    tcase_add_test(tc, nodes_do_not_share_a_switch);
    tcase_add_test(tc, a_lone_message_takes_latency_and_rate);
    tcase_add_test(tc, small_messages_follow_at_the_message_time);
    tcase_add_test(tc, large_messages_follow_at_the_link_rate);
    tcase_add_test(tc, rc_keeps_the_order_of_a_destination);
    tcase_add_test(tc, srd_does_not);
    tcase_add_test(tc, destinations_take_turns);
    tcase_add_test(tc, two_messages_are_in_flight_at_once);
    tcase_add_test(tc, a_gpu_uses_its_nics_in_turn);
    tcase_add_test(tc, receivers_are_shared);
    tcase_add_test(tc, links_report_their_use);
    tcase_add_loop_test(tc, a_world_has_only_the_links_it_can_use, 0, 4);
    tcase_add_test(tc, one_node_stands_for_all);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
