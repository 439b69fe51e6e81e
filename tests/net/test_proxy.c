/* The proxy over the loopback transport: every command arrives once, whatever the queue's depth and the order. */
#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "backends/net/proxy.h"
#include "backends/net/proxy_numa.h"
#include "core/clock.h"

#include "../suite.h"

#define PUTS 500
#define BYTES 64

/* A rank whose queue holds PUTS commands, put i to flag i of the other one. */
struct source {
    uint32_t next;
    _Atomic uint32_t limit;  /* commands that are there already */
    uint8_t completed[PUTS]; /* how often */
    _Atomic uint32_t completions;
    bool looked_before_completing, arrived[PUTS];
    uint64_t arrivals;
    struct source *peer;
    uint64_t flags[PUTS];
    uint8_t window[PUTS * BYTES];
    struct endpoint *endpoint;
};

static bool take(void *owner, struct put *out)
{
    struct source *s = owner;
    uint32_t i = s->next;

    if (i == atomic_load(&s->limit))
        return false;
    *out =
        (struct put){.peer = 1, .flag = i, .value = i + 1, .from = i * BYTES, .to = i * BYTES, .bytes = BYTES, .id = i};
    s->next++;
    return true;
}

static void complete(void *owner, uint64_t id)
{
    struct source *s = owner;

    s->completed[id]++;
    s->looked_before_completing &= s->peer->arrived[id];
    atomic_fetch_add(&s->completions, 1);
}

static bool look(void *owner)
{
    struct source *s = owner;
    bool any = false;

    for (uint32_t i = 0; i < PUTS; i++)
        if (!s->arrived[i] && __atomic_load_n(&s->flags[i], __ATOMIC_ACQUIRE)) {
            s->arrived[i] = any = true;
            s->arrivals++;
        }
    return any;
}

static const struct proxy_source source_ops = {.take = take, .complete = complete, .look = look};

struct pair {
    struct source ranks[2];
    struct proxy *proxy;
    uint8_t options[256];
};

static struct pair *pair_open(uint32_t depth, const char *delay_max)
{
    const struct transport *t = transport_find("loopback");
    struct pair *p = calloc(1, sizeof *p);
    struct proxy_lane_config lanes[2];
    char why[256];

    ck_assert_uint_le(t->options_size, sizeof p->options);
    option_defaults(t->options, p->options);
    ck_assert_int_eq(option_parse(option_find(t->options, "delay_max"), p->options, delay_max, NULL, why, sizeof why),
                     ST_OK);
    ck_assert_int_eq(option_parse(option_find(t->options, "reorder"), p->options, "true", NULL, why, sizeof why),
                     ST_OK);
    for (uint32_t i = 0; i < 2; i++) {
        struct source *s = &p->ranks[i];
        struct endpoint_config c = {.index = i,
                                    .peers = 2,
                                    .name = "a rank",
                                    .window = {.base = s->window, .bytes = sizeof s->window},
                                    .flags = {.base = s->flags, .bytes = sizeof s->flags},
                                    .depth = depth,
                                    .timeout_ps = 10000000000000,
                                    .options = p->options};

        s->peer = &p->ranks[1 - i];
        s->looked_before_completing = true;
        ck_assert_int_eq(endpoint_open(t, &c, &s->endpoint, why, sizeof why), ST_OK);
        lanes[i] = (struct proxy_lane_config){s->endpoint, &source_ops, s};
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct endpoint_address a;

        ck_assert_int_eq(endpoint_address(p->ranks[1 - i].endpoint, i, &a), ST_OK);
        ck_assert_int_eq(endpoint_connect(p->ranks[i].endpoint, 1 - i, &a), ST_OK);
    }
    for (uint32_t i = 0; i < PUTS * BYTES; i++)
        p->ranks[0].window[i] = (uint8_t)(i / BYTES * 7 + i);
    p->proxy = proxy_start(
        &(struct proxy_config){.lanes = lanes, .lane_count = 2, .depth = depth, .numa_node = 0, .alone = true});
    ck_assert_ptr_nonnull(p->proxy);
    return p;
}

static void pair_close(struct pair *p)
{
    for (uint32_t i = 0; i < 2; i++)
        endpoint_close(p->ranks[i].endpoint);
    free(p);
}

static const struct row {
    uint32_t depth;
    const char *delay_max;
} rows[] = {{1, "0ns"}, {3, "20us"}, {64, "0ns"}, {64, "100us"}, {1000, "1us"}};

/* Half of the commands are there at once, the others come when the first ones are through. */
START_TEST(every_command_arrives_once)
{
    const struct row *row = &rows[_i];
    struct pair *p = pair_open(row->depth, row->delay_max);
    struct source *from = &p->ranks[0], *to = &p->ranks[1];
    struct proxy_counters c;
    uint32_t lane;

    atomic_store(&from->limit, PUTS / 2);
    while (atomic_load(&from->completions) < PUTS / 2)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    ck_assert_uint_ge(proxy_completed(p->proxy), 1);
    atomic_store(&from->limit, PUTS);
    ck_assert_int_eq(proxy_failed(p->proxy, &lane), ST_OK);
    proxy_stop(p->proxy, false, &c);
    for (uint32_t i = 0; i < PUTS; i++) {
        ck_assert_uint_eq(from->completed[i], 1);
        ck_assert_uint_eq(to->flags[i], i + 1);
    }
    ck_assert_mem_eq(to->window, from->window, sizeof to->window);
    ck_assert_msg(from->looked_before_completing, "a put was complete before its flag had been looked at");
    ck_assert_uint_eq(to->arrivals, PUTS);
    ck_assert_uint_eq(c.puts, PUTS);
    ck_assert_uint_eq(c.bytes, PUTS * BYTES);
    ck_assert_uint_eq(c.latency.count, PUTS);
    ck_assert_uint_ge(c.depth_max, 1);
    ck_assert_uint_le(c.depth_max, row->depth);
    ck_assert_uint_ge(c.depth_sum, PUTS);
    ck_assert_uint_le(c.depth_sum, PUTS * (uint64_t)row->depth);
    pair_close(p);
}
END_TEST

/* A peer that is gone ends the thread, which says whose lane it was; stopping it is still in order. */
START_TEST(an_error_of_the_transport_ends_it)
{
    struct pair *p = pair_open(4, "0ns");
    uint64_t begin_ns = clock_now_ns();
    uint32_t lane = 9;

    proxy_stop(p->proxy, false, NULL);
    endpoint_close(p->ranks[1].endpoint);
    p->ranks[1].endpoint = NULL;
    p->proxy = proxy_start(
        &(struct proxy_config){.lanes = &(struct proxy_lane_config){p->ranks[0].endpoint, &source_ops, &p->ranks[0]},
                               .lane_count = 1,
                               .depth = 4,
                               .numa_node = -1});
    ck_assert_ptr_nonnull(p->proxy);
    atomic_store(&p->ranks[0].limit, 10);
    while (proxy_failed(p->proxy, &lane) >= 0 && clock_now_ns() - begin_ns < 5000000000u)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    ck_assert_int_eq(proxy_failed(p->proxy, &lane), ST_IO);
    ck_assert_uint_eq(lane, 0);
    ck_assert_str_ne(endpoint_error(p->ranks[0].endpoint), "");
    proxy_stop(p->proxy, false, NULL);
    pair_close(p);
}
END_TEST

START_TEST(at_once_waits_for_nothing)
{
    struct pair *p = pair_open(4, "60s");
    uint64_t begin_ns = clock_now_ns();

    atomic_store(&p->ranks[0].limit, 100);
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    proxy_stop(p->proxy, true, NULL);
    ck_assert_uint_lt(clock_now_ns() - begin_ns, 5000000000u);
    pair_close(p);
}
END_TEST

START_TEST(what_is_not_known_of_numa_changes_nothing)
{
    ck_assert_int_eq(proxy_numa_of_pci("ffff:ff:1f.7"), -1);
    proxy_numa_keep_to(-1);
    proxy_numa_keep_to(4711);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("proxy");
    TCase *tc = tcase_create("proxy");

    suite_add_tcase(s, tc);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, every_command_arrives_once, 0, sizeof rows / sizeof *rows);
    tcase_add_test(tc, an_error_of_the_transport_ends_it);
    tcase_add_test(tc, at_once_waits_for_nothing);
    tcase_add_test(tc, what_is_not_known_of_numa_changes_nothing);
    return suite_run(s);
}
