/* The event engine.  Each test runs in a process of its own (Check forks), as each engine needs
 * one. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "maxmin_oracle.h"
#include "sim/engine.h"

#include "../suite.h"

#define ENDS_MAX 200000

static struct {
    struct engine *engine;
    uint64_t count;
    uint64_t id[ENDS_MAX], time_ps[ENDS_MAX]; /* in the order of the callbacks */
    uint64_t by_id[ENDS_MAX];
} seen;

#define APIS 3

static const enum engine_api apis[APIS] = {ENGINE_KERNEL, ENGINE_S4U, ENGINE_FLUID};

static void note(void *arg, uint64_t id, uint64_t unused)
{
    (void)arg;
    (void)unused;
    ck_assert(seen.count < ENDS_MAX && id < ENDS_MAX);
    seen.id[seen.count] = id;
    seen.time_ps[seen.count++] = engine_now_ps(seen.engine);
    seen.by_id[id] = engine_now_ps(seen.engine);
}

static struct engine *open_engine(enum engine_api api, const struct engine_port *ports, uint32_t count)
{
    struct engine_config config = {.api = api, .ports = ports, .port_count = count};

    ck_assert_int_eq(engine_create(&config, &seen.engine), ST_OK);
    return seen.engine;
}

static void flow(uint32_t src, uint32_t dst, uint64_t bytes, double rate_bound, uint64_t id)
{
    engine_flow(seen.engine, src, dst, bytes, rate_bound, note, NULL, id, 0);
}

/* ---- durations ---- */

struct duration_row {
    double rate, rate_bound;
    uint64_t latency_ps, bytes, expected_ps;
};

/* Worked out by hand: bytes / rate, halves upwards, + latency. */
static const struct duration_row durations[] = {
    {450e9, 0, 0, 2097152, 4660338},
    {450e9, 0, 1000000, 2097152, 5660338},
    {400e9, 0, 0, 1, 3},
    {400e9, 0, 0, 7, 18},
    {400e9, 0, 500000, 2097153, 5742883},
    {50e9, 0, 3500000, 8, 3500160},
    {50e9, 0, 3500000, 1ull << 40, 21990236055520},
    {450e9, 0, 700000, 0, 700000},
    {450e9, 50e9, 0, 2097152, 41943040},
    {450e9, 600e9, 0, 2097152, 4660338},
    {1e9, 0, 0, 3, 3000},
};

struct duration_probe {
    const struct duration_row *row;
    uint64_t started_ps;
};

static void start_row(void *arg, uint64_t id, uint64_t unused)
{
    struct duration_probe *p = arg;

    (void)unused;
    p->started_ps = engine_now_ps(seen.engine);
    flow(0, 1, p->row->bytes, p->row->rate_bound, id);
}

static void check_duration(enum engine_api api, const struct duration_row *row, uint64_t start_ps)
{
    const struct engine_port ports[] = {{row->rate, row->latency_ps / 2}, {row->rate, row->latency_ps}};
    struct duration_probe probe = {.row = row};

    open_engine(api, ports, 2);
    engine_after(seen.engine, start_ps, start_row, &probe, 0, 0);
    engine_run(seen.engine);
    ck_assert_uint_eq(probe.started_ps, start_ps);
    ck_assert_uint_eq(seen.by_id[0] - start_ps, row->expected_ps);
    engine_destroy(seen.engine);
}

START_TEST(a_lone_flow_takes_bytes_over_rate_and_latency)
{
    const struct duration_row *row = &durations[_i / APIS];

    check_duration(apis[_i % APIS], row, 0);
}
END_TEST

/* Without SimGrid: one engine after the other, and two flows that do not notice each other. */
START_TEST(flows_alone_share_nothing)
{
    const struct engine_port ports[] = {{100e9, 1000000}, {50e9, 2000000}, {100e9, 0}};

    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        seen.count = 0;
        check_duration(ENGINE_ALONE, &durations[i], 0);
    }
    seen.count = 0;
    open_engine(ENGINE_ALONE, ports, 3);
    flow(0, 1, 1000000, 0, 0);
    flow(2, 1, 1000000, 0, 1);
    engine_run(seen.engine);
    ck_assert_uint_eq(seen.by_id[0], 22000000); /* the slower port's pace, the larger latency */
    ck_assert_uint_eq(seen.by_id[1], 22000000);
    engine_destroy(seen.engine);
}
END_TEST

START_TEST(a_flow_takes_as_long_later)
{
    const struct duration_row *row = &durations[_i / APIS];

    check_duration(apis[_i % APIS], row, 123456789012);
}
END_TEST

#define CHAIN_LENGTH 20000

static void chain_next(void *arg, uint64_t done, uint64_t unused)
{
    (void)arg;
    (void)unused;
    if (done < CHAIN_LENGTH)
        engine_flow(seen.engine, 0, 1, 2097152, 0, chain_next, NULL, done + 1, 0);
}

START_TEST(the_clock_does_not_drift)
{
    const struct engine_port ports[] = {{400e9, 1000000}, {400e9, 0}};

    open_engine(apis[_i], ports, 2);
    chain_next(NULL, 0, 0);
    engine_run(seen.engine);
    ck_assert_uint_eq(engine_now_ps(seen.engine), (uint64_t)CHAIN_LENGTH * (5242880 + 1000000));
}
END_TEST

/* Days of simulated time: picoseconds no longer fit SimGrid's clock, but everything still happens.
 */
START_TEST(far_times_are_reached)
{
    const struct engine_port ports[] = {{400e9, 0}, {400e9, 0}};
    const uint64_t day_ps = 86400ull * 1000000000000ull;

    open_engine(apis[_i], ports, 2);
    for (uint64_t day = 1; day <= 20; day++)
        engine_after(seen.engine, day * day_ps + day, chain_next, NULL, CHAIN_LENGTH - 2, 0);
    engine_after(seen.engine, 21 * day_ps, note, NULL, 0, 0);
    engine_run(seen.engine);
    ck_assert_uint_eq(seen.by_id[0], 21 * day_ps);
    ck_assert_uint_eq(engine_flow_count(seen.engine), 40);
}
END_TEST

START_TEST(absurd_times_end)
{
    const struct engine_port ports[] = {{1, 0}, {1, 0}};

    open_engine(apis[_i], ports, 2);
    flow(0, 1, 1ull << 62, 0, 0);
    flow(1, 0, 1, 1e-12, 1);
    engine_run(seen.engine);
    ck_assert_uint_eq(seen.count, 2);
}
END_TEST

/* ---- sharing ---- */

START_TEST(two_flows_share_a_link)
{
    const struct engine_port ports[] = {{100e9, 0}, {100e9, 0}, {100e9, 0}};

    open_engine(apis[_i], ports, 3);
    flow(0, 1, 1000000, 0, 0); /* half the out link for 20 us */
    flow(0, 2, 3000000, 0, 1); /* then all of it for 20 us more */
    engine_run(seen.engine);
    ck_assert_uint_eq(seen.by_id[0], 20000000);
    ck_assert_uint_eq(seen.by_id[1], 40000000);
    ck_assert_uint_eq(engine_port_bytes_out(seen.engine, 0), 4000000);
    ck_assert_uint_eq(engine_port_bytes_in(seen.engine, 0), 0);
    ck_assert_uint_eq(engine_port_bytes_in(seen.engine, 2), 3000000);
}
END_TEST

START_TEST(directions_do_not_share)
{
    const struct engine_port ports[] = {{100e9, 0}, {100e9, 0}};

    open_engine(apis[_i], ports, 2);
    flow(0, 1, 1000000, 0, 0);
    flow(1, 0, 1000000, 0, 1);
    engine_run(seen.engine);
    ck_assert_uint_eq(seen.by_id[0], 10000000);
    ck_assert_uint_eq(seen.by_id[1], 10000000);
}
END_TEST

START_TEST(latency_does_not_change_shares)
{
    const struct engine_port ports[] = {{100e9, 1000000}, {100e9, 9000000}, {100e9, 1000000}};

    open_engine(apis[_i], ports, 3);
    flow(0, 2, 1000000, 0, 0);
    flow(1, 2, 1000000, 0, 1);
    engine_run(seen.engine);
    ck_assert_uint_eq(seen.by_id[0], 21000000);
    ck_assert_uint_eq(seen.by_id[1], 29000000);
}
END_TEST

START_TEST(a_bounded_flow_leaves_the_rest_to_others)
{
    const struct engine_port ports[] = {{100e9, 0}, {100e9, 0}, {100e9, 0}};

    open_engine(ENGINE_KERNEL, ports, 3);
    flow(0, 2, 1000000, 20e9, 0);
    flow(1, 2, 4000000, 0, 1);
    engine_run(seen.engine);
    ck_assert_uint_eq(seen.by_id[0], 50000000);
    ck_assert_uint_eq(seen.by_id[1], 50000000);
}
END_TEST

START_TEST(with_s4u_a_bound_only_delays_the_end)
{
    const struct engine_port ports[] = {{100e9, 0}, {100e9, 0}, {100e9, 0}};

    open_engine(ENGINE_S4U, ports, 3);
    flow(0, 2, 1000000, 20e9, 0);
    flow(1, 2, 4000000, 0, 1);
    engine_run(seen.engine);
    ck_assert_uint_eq(seen.by_id[0], 50000000);
    ck_assert_uint_eq(seen.by_id[1], 50000000); /* 20 us at half the rate, 30 us at the whole */
}
END_TEST

START_TEST(a_flow_to_no_port_takes_the_out_link_only)
{
    const struct engine_port ports[] = {{100e9, 1000000}, {100e9, 0}};

    open_engine(apis[_i], ports, 2);
    flow(0, ENGINE_NO_PORT, 1000000, 0, 0);
    flow(1, 0, 1000000, 0, 1);
    engine_run(seen.engine);
    ck_assert_uint_eq(seen.by_id[0], 11000000);
    ck_assert_uint_eq(seen.by_id[1], 11000000);
}
END_TEST

START_TEST(a_multicast_goes_at_the_pace_of_the_slowest)
{
    const struct engine_port ports[] = {
        {100e9, 0},
        {100e9, 1000000},
        {100e9, 2000000},
        {100e9, 0},
    };
    const struct engine_group group = {.first_port = 0, .port_count = 3};
    struct engine_config config = {
        .api = apis[_i],
        .ports = ports,
        .port_count = 4,
        .groups = &group,
        .group_count = 1,
    };

    ck_assert_int_eq(engine_create(&config, &seen.engine), ST_OK);
    flow(0, engine_group_port(seen.engine, 0), 1000000, 0, 0);
    flow(3, 2, 1000000, 0, 1); /* shares the in link of port 2 */
    engine_run(seen.engine);
    ck_assert_uint_eq(seen.by_id[0], 22000000);
    ck_assert_uint_eq(seen.by_id[1], 22000000);
    ck_assert_uint_eq(engine_port_bytes_out(seen.engine, 0), 1000000);
    ck_assert_uint_eq(engine_port_bytes_in(seen.engine, 0), 1000000);
    ck_assert_uint_eq(engine_port_bytes_in(seen.engine, 2), 2000000);
}
END_TEST

START_TEST(a_sum_takes_the_out_links_of_all)
{
    const struct engine_port ports[] = {{100e9, 0}, {100e9, 1000000}, {100e9, 0}, {100e9, 0}};
    const struct engine_group group = {.first_port = 0, .port_count = 3};
    struct engine_config config = {
        .api = apis[_i], .ports = ports, .port_count = 4, .groups = &group, .group_count = 1};

    ck_assert_int_eq(engine_create(&config, &seen.engine), ST_OK);
    flow(engine_group_port(seen.engine, 0), 0, 1000000, 0, 0);
    flow(2, 3, 1000000, 0, 1); /* shares the out link of port 2 */
    engine_run(seen.engine);
    ck_assert_uint_eq(seen.by_id[0], 21000000);
    ck_assert_uint_eq(seen.by_id[1], 20000000);
    ck_assert_uint_eq(engine_port_bytes_out(seen.engine, 0), 1000000);
    ck_assert_uint_eq(engine_port_bytes_out(seen.engine, 2), 2000000);
    ck_assert_uint_eq(engine_port_bytes_in(seen.engine, 0), 1000000);
    ck_assert_uint_eq(engine_port_bytes_in(seen.engine, 1), 0);
}
END_TEST

/* ---- order ---- */

START_TEST(equal_times_go_flows_first_then_by_insertion)
{
    const struct engine_port ports[] = {
        {100e9, 0}, {100e9, 0}, {100e9, 0}, {100e9, 0}, {100e9, 5000000}, {100e9, 0},
    };
    const uint64_t expected[] = {2, 3, 5, 7, 0, 1, 4, 6};

    open_engine(apis[_i], ports, 6);
    engine_after(seen.engine, 10000000, note, NULL, 0, 0);
    engine_after(seen.engine, 10000000, note, NULL, 1, 0);
    flow(0, 1, 1000000, 0, 2);
    flow(2, 3, 1000000, 0, 3);
    engine_after(seen.engine, 10000000, note, NULL, 4, 0);
    flow(1, 0, 1000000, 0, 5);
    engine_after(seen.engine, 10000000, note, NULL, 6, 0);
    flow(4, 5, 500000, 0, 7); /* 5 us + 5 us of latency */
    engine_run(seen.engine);
    ck_assert_uint_eq(seen.count, 8);
    for (int i = 0; i < 8; i++) {
        ck_assert_uint_eq(seen.id[i], expected[i]);
        ck_assert_uint_eq(seen.time_ps[i], 10000000);
    }
}
END_TEST

struct timer {
    uint64_t time_ps, id;
};

static int timer_compare(const void *a, const void *b)
{
    const struct timer *x = a, *y = b;

    if (x->time_ps != y->time_ps)
        return x->time_ps < y->time_ps ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#define TIMER_COUNT 100000

START_TEST(many_timers_fire_as_sorted)
{
    static struct timer timers[TIMER_COUNT];
    const struct engine_port port = {1e9, 0};
    uint64_t random = 4242;

    open_engine(apis[_i], &port, 1);
    for (uint64_t i = 0; i < TIMER_COUNT; i++) {
        uint64_t range = i % 2 == 0 ? 1000 : 5000000; /* many ties, many near misses */
        timers[i] = (struct timer){.time_ps = random_next(&random) % range, .id = i};
        engine_after(seen.engine, timers[i].time_ps, note, NULL, i, 0);
    }
    engine_run(seen.engine);
    qsort(timers, TIMER_COUNT, sizeof timers[0], timer_compare);
    ck_assert_uint_eq(seen.count, TIMER_COUNT);
    for (uint64_t i = 0; i < TIMER_COUNT; i++) {
        ck_assert_uint_eq(seen.id[i], timers[i].id);
        ck_assert_uint_eq(seen.time_ps[i], timers[i].time_ps);
    }
}
END_TEST

/* ---- random traffic ---- */

#define PORT_COUNT 12
#define FLOW_COUNT 400

struct traffic {
    uint32_t src, dst;
    uint64_t start_ps, bytes;
    double rate_bound;
};

static struct traffic traffic[FLOW_COUNT];
static struct engine_port traffic_ports[PORT_COUNT];

/* Two kinds of ports; half of the flows start together, a third is bounded, if so wished. */
static void make_traffic(uint64_t seed, bool bounds)
{
    uint64_t random = seed * 2654435761u + 88172645463325252u;

    for (uint32_t i = 0; i < PORT_COUNT; i++)
        traffic_ports[i] = (struct engine_port){i % 3 == 0 ? 50e9 : 450e9, 100000 * i};
    for (uint32_t i = 0; i < FLOW_COUNT; i++) {
        struct traffic *t = &traffic[i];
        t->src = (uint32_t)(random_next(&random) >> 20) % PORT_COUNT;
        t->dst = (t->src + 1 + (uint32_t)(random_next(&random) >> 20) % (PORT_COUNT - 1)) % PORT_COUNT;
        t->start_ps = i % 2 == 0 ? 0 : (random_next(&random) >> 20) % 500000000;
        t->bytes = 1 + (random_next(&random) >> 20) % 4000000;
        t->rate_bound = bounds && i % 3 == 0 ? (double)(1 + (random_next(&random) >> 20) % 60) * 1e9 : 0;
    }
}

static void start_traffic(void *arg, uint64_t id, uint64_t unused)
{
    const struct traffic *t = &traffic[id];

    (void)arg;
    (void)unused;
    flow(t->src, t->dst, t->bytes, t->rate_bound, id);
}

static void run_traffic(enum engine_api api)
{
    memset(&seen, 0, sizeof seen);
    open_engine(api, traffic_ports, PORT_COUNT);
    for (uint64_t i = 0; i < FLOW_COUNT; i++)
        engine_after(seen.engine, traffic[i].start_ps, start_traffic, NULL, i, 0);
    engine_run(seen.engine);
    ck_assert_uint_eq(seen.count, FLOW_COUNT);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Each engine event may be off by a picosecond, and what it shifts shifts others. */
START_TEST(random_traffic_takes_what_the_oracle_says)
{
    static struct oracle_flow flows[FLOW_COUNT];
    double rates[2 * PORT_COUNT];

    make_traffic((uint64_t)_i / 2, true);
    run_traffic(_i % 2 ? ENGINE_KERNEL : ENGINE_FLUID);
    for (uint32_t i = 0; i < PORT_COUNT; i++)
        rates[2 * i] = rates[2 * i + 1] = traffic_ports[i].rate;
    for (uint32_t i = 0; i < FLOW_COUNT; i++) {
        const struct traffic *t = &traffic[i];
        flows[i] = (struct oracle_flow){.start = (double)t->start_ps * 1e-12,
                                        .bytes = (double)t->bytes,
                                        .rate_bound = t->rate_bound,
                                        .link_count = 2,
                                        .links = {2 * t->src, 2 * t->dst + 1}};
    }
    oracle_run(rates, 2 * PORT_COUNT, flows, FLOW_COUNT);
    for (uint32_t i = 0; i < FLOW_COUNT; i++) {
        uint64_t latency_ps = 100000ull * (traffic[i].src > traffic[i].dst ? traffic[i].src : traffic[i].dst);
        uint64_t expected_ps = (uint64_t)(flows[i].end * 1e12 + 0.5) + latency_ps;
        ck_assert_msg(distance(seen.by_id[i], expected_ps) <= 20, "seed %d flow %u: %lu ps, oracle %lu", _i, i,
                      seen.by_id[i], expected_ps);
    }
}
END_TEST

/* Runs the traffic in a child and brings its trace back. */
static void child_trace(enum engine_api api, uint64_t *times_out, uint64_t *order_out)
{
    size_t size = FLOW_COUNT * sizeof(uint64_t);
    int ends[2], wait_status;

    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        run_traffic(api);
        bool sent = write(ends[1], seen.by_id, size) == (ssize_t)size && write(ends[1], seen.id, size) == (ssize_t)size;
        _exit(sent ? 0 : 1);
    }
    ck_assert_int_eq(read(ends[0], times_out, size), (ssize_t)size);
    ck_assert_int_eq(read(ends[0], order_out, size), (ssize_t)size);
    ck_assert_int_eq(waitpid(child, &wait_status, 0), child);
    ck_assert_int_eq(wait_status, 0);
}

static uint64_t times_a[FLOW_COUNT], times_b[FLOW_COUNT], order_a[FLOW_COUNT], order_b[FLOW_COUNT];

START_TEST(runs_repeat_exactly)
{
    make_traffic(7, true);
    child_trace(apis[_i], times_a, order_a);
    child_trace(apis[_i], times_b, order_b);
    ck_assert_mem_eq(times_a, times_b, sizeof times_a);
    ck_assert_mem_eq(order_a, order_b, sizeof order_a);
}
END_TEST

START_TEST(both_apis_agree)
{
    make_traffic((uint64_t)_i, false);
    child_trace(ENGINE_KERNEL, times_a, order_a);
    child_trace(ENGINE_S4U, times_b, order_b);
    for (uint32_t i = 0; i < FLOW_COUNT; i++)
        ck_assert_msg(distance(times_a[i], times_b[i]) <= 1, "flow %u: %lu and %lu ps", i, times_a[i], times_b[i]);
}
END_TEST

START_TEST(an_engine_says_what_it_is)
{
    const struct engine_port port = {1e9, 0};

    open_engine(ENGINE_AUTO, &port, 1);
    ck_assert_str_eq(engine_model(seen.engine), "simgrid 3.32 cm02, kernel actions");
    engine_run(seen.engine);
    ck_assert_uint_eq(engine_now_ps(seen.engine), 0);
    engine_destroy(seen.engine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine");
    TCase *tc = tcase_create("engine");
    int rows = APIS * (int)(sizeof durations / sizeof durations[0]);

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_lone_flow_takes_bytes_over_rate_and_latency, 0, rows);
    tcase_add_test(tc, flows_alone_share_nothing);
    tcase_add_loop_test(tc, a_flow_takes_as_long_later, 0, rows);
    tcase_add_loop_test(tc, the_clock_does_not_drift, 0, APIS);
    tcase_add_loop_test(tc, far_times_are_reached, 0, APIS);
    tcase_add_loop_test(tc, absurd_times_end, 0, APIS);
    tcase_add_loop_test(tc, two_flows_share_a_link, 0, APIS);
    tcase_add_loop_test(tc, directions_do_not_share, 0, APIS);
    tcase_add_loop_test(tc, latency_does_not_change_shares, 0, APIS);
    tcase_add_test(tc, a_bounded_flow_leaves_the_rest_to_others);
    tcase_add_test(tc, with_s4u_a_bound_only_delays_the_end);
    tcase_add_loop_test(tc, a_flow_to_no_port_takes_the_out_link_only, 0, APIS);
    tcase_add_loop_test(tc, a_multicast_goes_at_the_pace_of_the_slowest, 0, APIS);
    tcase_add_loop_test(tc, a_sum_takes_the_out_links_of_all, 0, APIS);
    tcase_add_loop_test(tc, equal_times_go_flows_first_then_by_insertion, 0, APIS);
    tcase_add_loop_test(tc, many_timers_fire_as_sorted, 0, APIS);
    tcase_add_loop_test(tc, random_traffic_takes_what_the_oracle_says, 2, 18);
    tcase_add_loop_test(tc, runs_repeat_exactly, 0, APIS);
    tcase_add_loop_test(tc, both_apis_agree, 1, 5);
    tcase_add_test(tc, an_engine_says_what_it_is);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
