/* From what traced launches leave to what the sink is told, without a GPU: made-up records in,
 * lines out. */
#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/device_log.h"
#include "script.h"

#include "../suite.h"

#define EPOCH 3
#define RECORDS_MAX 32
#define PUT_ARRIVAL 900

/* ---- a sink that writes down what it is told ---- */

static char told[4096];

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
    size_t used = strlen(told);
    va_list args;

    va_start(args, format);
    vsnprintf(told + used, sizeof told - used, format, args);
    va_end(args);
}

static void tell_task(struct trace *t, const struct trace_task *x)
{
    (void)t;
    tell("%u.%u %s #%" PRIu64 " %" PRIu64 "-%" PRIu64 "\n", x->lane.rank, x->lane.worker, op_name(x->at.op),
         x->at.index, x->begin_ps / 1000, x->end_ps / 1000);
    ck_assert_uint_eq(x->at.epoch, EPOCH);
}

static void tell_wait(struct trace *t, const struct trace_wait *x)
{
    (void)t;
    tell("%u.%u #%" PRIu64 " waits %" PRIu64 "-%" PRIu64, x->lane.rank, x->lane.worker, x->at.index, x->begin_ps / 1000,
         x->end_ps / 1000);
    if (x->flag == NO_FLAG)
        tell(" %s", x->cause);
    else
        tell(" flag %u", x->flag);
    if (x->known)
        tell(" by %u.%u at %" PRIu64, x->from.rank, x->from.worker, x->from_ps / 1000);
    tell("%s\n", x->inside ? " inside" : "");
}

static void tell_flight(struct trace *t, const struct trace_flight *x)
{
    (void)t;
    tell("%u.%u #%" PRIu64 " flies %" PRIu64 "-%" PRIu64 "\n", x->lane.rank, x->lane.worker, x->at.index,
         x->begin_ps / 1000, x->end_ps / 1000);
}

static void tell_use(struct trace *t, const struct trace_use *x)
{
    (void)t, (void)x;
}

static void tell_lost(struct trace *t, uint64_t events)
{
    (void)t;
    if (events)
        tell("lost %" PRIu64 "\n", events);
}

static const struct trace_ops sink_ops = {
    .task = tell_task, .wait = tell_wait, .flight = tell_flight, .use = tell_use, .lost = tell_lost};

/* ---- workers ---- */

struct worker_log {
    struct trace_lane lane;
    uint64_t lost;
    struct gpu_record records[RECORDS_MAX];
};

static uint64_t put_arrival(const void *arg, uint32_t rank, uint32_t queue, uint64_t index)
{
    (void)arg, (void)rank, (void)queue, (void)index;
    return PUT_ARRIVAL;
}

/* Times are those of the timer. */
static void hear(const struct program *p, const struct worker_log *workers, uint32_t count, const struct trace_ops *ops)
{
    struct trace sink = {ops};
    struct trace_log log = {.limit = UINT64_MAX};

    for (uint32_t i = 0; i < count; i++) {
        struct gpu_log head = {.lost = workers[i].lost};

        device_log_read(&(struct device_log){.program = p,
                                             .epoch = EPOCH,
                                             .lane = workers[i].lane,
                                             .clock = device_clock_of(&head, 0, 0),
                                             .head = &head,
                                             .records = workers[i].records,
                                             .records_max = RECORDS_MAX,
                                             .aborted_ns = 500,
                                             .put_arrival = put_arrival},
                        &log);
    }
    device_log_settle(p, EPOCH, &log);
    trace_log_tell(&sink, p, (const struct trace_log *const[]){&log}, 1, 0);
    trace_log_fini(&log);
}

static void expect(const struct program *p, const struct worker_log *workers, uint32_t count, const char *lines)
{
    told[0] = '\0';
    hear(p, workers, count, &sink_ops);
    ck_assert_str_eq(told, lines);
}

static struct gpu_record ran(uint32_t index, uint64_t begin, uint64_t end)
{
    return (struct gpu_record){.event = GPU_RAN, .index = index, .begin.ns = begin, .end.ns = end};
}

static struct gpu_record stored(uint32_t index, uint64_t ns)
{
    return (struct gpu_record){.event = GPU_STORED, .index = index, .begin.ns = ns, .end.ns = ns};
}

static struct gpu_record waited(uint32_t index, bool inside, uint64_t begin, uint64_t end, uint32_t flag,
                                uint64_t wanted)
{
    return (struct gpu_record){.event = GPU_WAITED,
                               .index = index,
                               .inside = inside,
                               .begin.ns = begin,
                               .end.ns = end,
                               .flag = flag,
                               .wanted = wanted};
}

/* Two nodes if `nodes` is 2, else one of two GPUs; a queue of four GEMMs on both ranks.  Flag 0 of
 * rank 0 gets 1 of each rank's task `signaller`; tasks store to the other rank. */
static void build(struct program *p, uint32_t nodes, enum op op, uint32_t signaller)
{
    uint32_t c, queue;

    script_init(p, (struct world){nodes, 3 - nodes});
    c = script_buffer(p, "c", 128, 256, 1);
    program_add_flags(p, "ready", 2);
    queue = script_queue_and_crew(p, "main");
    for (uint32_t rank = 0; rank < 2; rank++)
        for (uint32_t i = 0; i < 4; i++) {
            struct task *t = script_task(p, rank, queue, op, 128, op == OP_PUT ? 0 : 256);

            if (op == OP_GEMM)
                task_store_to(t, script_rows(p, 1 - rank, c, 0));
            if (i == signaller && (op != OP_PUT || rank == 1))
                task_signal(t, 0, 0, 1);
        }
}

START_TEST(one_slice_a_task_in_the_order_of_the_queue)
{
    struct program p = {0};
    struct worker_log w = {.lane = {1, 0, 1},
                           .records = {ran(2, 300, 400), waited(1, false, 10, 150, 1, 9), ran(0, 5, 100),
                                       waited(2, false, 110, 180, 1, 9), ran(1, 160, 200)}};

    build(&p, 1, OP_NOP, 0);
    expect(&p, &w, 1,
           "1.1 nop #0 5-100\n"
           "1.1 #1 waits 100-150 flag 1\n" /* from 10 to 100 it had something to do */
           "1.1 nop #1 160-200\n"          /* and from 110 to 180 */
           "1.1 nop #2 300-400\n");
    program_fini(&p);
}
END_TEST

START_TEST(tasks_of_roles_side_by_side_do_not_overlap)
{
    struct program p = {0};
    struct worker_log w = {.records = {ran(1, 90, 250), ran(0, 5, 100), ran(2, 120, 240), ran(3, 230, 300)}};

    build(&p, 1, OP_NOP, 0);
    expect(&p, &w, 1,
           "0.0 nop #0 5-100\n"
           "0.0 nop #1 100-250\n"
           "0.0 nop #2 250-250\n"
           "0.0 nop #3 250-300\n");
    program_fini(&p);
}
END_TEST

START_TEST(waits_are_one_at_a_time)
{
    struct program p = {0};
    struct worker_log w = {.records = {waited(0, false, 10, 60, 0, 9), waited(0, false, 10, 40, 1, 9), ran(0, 70, 200),
                                       waited(0, true, 50, 90, 0, 9),     /* the loader ran ahead */
                                       waited(0, true, 80, 85, 1, 9),     /* while it waited anyway */
                                       waited(0, true, 150, 400, 1, 9)}}; /* never longer than the task */

    build(&p, 1, OP_NOP, 0);
    expect(&p, &w, 1,
           "0.0 #0 waits 10-40 flag 1\n"
           "0.0 #0 waits 40-60 flag 0\n"
           "0.0 nop #0 70-200\n"
           "0.0 #0 waits 80-85 flag 1 inside\n"
           "0.0 #0 waits 85-90 flag 0 inside\n"
           "0.0 #0 waits 150-200 flag 1 inside\n");
    program_fini(&p);
}
END_TEST

/* Flag 0 gets 2 an epoch: in the third one 5 is left by the first signal, 6 by the second. */
START_TEST(a_wait_ends_by_the_signal_that_filled_the_flag)
{
    struct program p = {0};
    struct worker_log w[] = {
        {.lane = {0, 0, 0}, .records = {ran(0, 10, 100), stored(0, 180)}},
        {.lane = {1, 0, 0}, .records = {ran(0, 10, 120), stored(0, 130)}},
        {.lane = {0, 0, 1},
         .records = {waited(1, false, 20, 190, 0, 6), ran(1, 200, 210), waited(2, false, 211, 213, 0, 5),
                     ran(2, 215, 220), waited(3, false, 225, 230, 0, 4), ran(3, 240, 250)}}};

    build(&p, 1, OP_GEMM, 0);
    expect(&p, w, 3,
           "0.0 gemm #0 10-100\n"
           "0.0 #0 flies 100-180\n"
           "1.0 gemm #0 10-120\n"
           "1.0 #0 flies 120-130\n"
           "0.1 #1 waits 20-190 flag 0 by 0.0 at 100\n"
           "0.1 gemm #1 200-210\n"
           "0.1 #2 waits 211-213 flag 0 by 1.0 at 120\n"
           "0.1 gemm #2 215-220\n"
           "0.1 #3 waits 225-230 flag 0\n" /* an epoch before raised it that far */
           "0.1 gemm #3 240-250\n");
    program_fini(&p);
}
END_TEST

/* A bare signal went out while the products before it were still going on: it filled the flag first, though it is shown
 * behind them. */
START_TEST(signals_count_from_when_they_were_raised)
{
    struct program p = {0};
    struct worker_log w[] = {{.lane = {0, 0, 0}, .records = {ran(0, 10, 200), ran(1, 20, 50)}},
                             {.lane = {1, 0, 0}, .records = {ran(0, 10, 20), ran(1, 30, 100)}},
                             {.lane = {0, 0, 1},
                              .records = {waited(2, false, 30, 55, 0, 5), ran(2, 56, 57),
                                          waited(3, false, 60, 105, 0, 6), ran(3, 110, 111)}}};

    build(&p, 1, OP_NOP, 1);
    expect(&p, w, 3,
           "0.0 nop #0 10-200\n"
           "0.0 nop #1 200-200\n"
           "1.0 nop #0 10-20\n"
           "1.0 nop #1 30-100\n"
           "0.1 #2 waits 30-55 flag 0 by 0.0 at 200\n"
           "0.1 nop #2 56-57\n"
           "0.1 #3 waits 60-105 flag 0 by 1.0 at 100\n"
           "0.1 nop #3 110-111\n");
    program_fini(&p);
}
END_TEST

START_TEST(what_is_unfinished_leaves_its_waits)
{
    struct program p = {0};
    struct worker_log w = {.records = {ran(0, 10, 100), ran(1, 115, 0), waited(1, true, 120, 0, 1, 9),
                                       waited(1, false, 50, 110, 0, 9), waited(2, false, 60, 0, 1, 9)}};

    build(&p, 1, OP_NOP, 0);
    expect(&p, &w, 1,
           "0.0 nop #0 10-100\n"
           "0.0 #1 waits 100-110 flag 0\n"
           "0.0 #1 waits 120-500 flag 1 inside\n");
    program_fini(&p);
}
END_TEST

START_TEST(what_was_lost_is_told_and_misleads_nobody)
{
    struct program p = {0};
    struct worker_log w[] = {{.lane = {1, 0, 0}, .lost = 7, .records = {ran(0, 10, 120)}},
                             {.lane = {0, 0, 1}, .records = {waited(1, false, 20, 190, 0, 5), ran(1, 200, 210)}}};

    build(&p, 1, OP_NOP, 0);
    expect(&p, w, 2,
           "1.0 nop #0 10-120\n"
           "0.1 #1 waits 20-190 flag 0\n" /* the other signal may have been first */
           "0.1 nop #1 200-210\n"
           "lost 7\n");
    program_fini(&p);
}
END_TEST

/* Nothing marks the end of a full log. */
START_TEST(a_log_may_be_full)
{
    struct program p = {0};
    struct worker_log w = {.records = {ran(0, 0, 100)}};

    build(&p, 1, OP_NOP, 0);
    for (uint32_t i = 1; i < RECORDS_MAX; i++)
        w.records[i] = waited(0, true, i, i + 1, 1, 9);
    told[0] = '\0';
    hear(&p, &w, 1, &sink_ops);
    ck_assert_ptr_nonnull(strstr(told, "waits 31-32"));
    program_fini(&p);
}
END_TEST

START_TEST(puts_fly_until_the_proxy_saw_them_arrive)
{
    struct program p = {0};
    struct worker_log w[] = {{.lane = {1, 0, 0}, .records = {waited(0, true, 15, 40, GPU_NO_FLAG, 0), ran(0, 10, 50)}},
                             {.lane = {0, 0, 0}, .records = {waited(0, false, 10, 950, 0, 3), ran(0, 960, 970)}}};

    build(&p, 2, OP_PUT, 0);
    expect(&p, w, 2,
           "1.0 put #0 10-50\n"
           "1.0 #0 waits 15-40 nic queue inside\n"
           "1.0 #0 flies 50-900\n"
           "0.0 #0 waits 10-950 flag 0 by 1.0 at 50\n"
           "0.0 put #0 960-970\n");
    program_fini(&p);
}
END_TEST

/* ---- whatever the records say ---- */

static struct {
    uint64_t tasks, task_begin_ps, task_end_ps, wait_end_ps;
} seen;

static void see_task(struct trace *t, const struct trace_task *x)
{
    (void)t;
    ck_assert_uint_ge(x->begin_ps, seen.task_end_ps);
    ck_assert_uint_ge(x->begin_ps, seen.wait_end_ps);
    ck_assert_uint_le(x->begin_ps, x->end_ps);
    ck_assert_uint_eq(x->at.index, seen.tasks++);
    seen.task_begin_ps = x->begin_ps;
    seen.task_end_ps = x->end_ps;
}

static void see_wait(struct trace *t, const struct trace_wait *x)
{
    (void)t;
    ck_assert_uint_lt(x->begin_ps, x->end_ps);
    ck_assert_uint_ge(x->begin_ps, seen.wait_end_ps);
    ck_assert_uint_ge(x->begin_ps, x->inside ? seen.task_begin_ps : seen.task_end_ps);
    if (x->inside)
        ck_assert_uint_le(x->end_ps, seen.task_end_ps);
    seen.wait_end_ps = x->end_ps;
}

static uint64_t any(uint64_t below)
{
    static uint64_t random = 1;

    random = random * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
    return 1 + (random >> 33) % below;
}

/* Four tasks with seven waits each, in any order, at any times. */
static void make_any(struct worker_log *w)
{
    for (uint32_t i = 0; i < RECORDS_MAX; i++) {
        uint64_t begin = any(50);

        w->records[i] = i % 8 == 0 ? ran(i / 8, begin, begin + any(50))
                                   : waited(i / 8, i % 2, begin, begin + any(50), any(2) - 1, 9);
    }
    for (uint32_t i = 0; i < RECORDS_MAX; i++) {
        uint64_t k = any(RECORDS_MAX) - 1;
        struct gpu_record r = w->records[i];

        w->records[i] = w->records[k];
        w->records[k] = r;
    }
}

START_TEST(slices_never_overlap)
{
    static const struct trace_ops ops = {.task = see_task, .wait = see_wait, .lost = tell_lost};
    struct worker_log w = {.lane = {0, 0, 0}};
    struct program p = {0};

    build(&p, 1, OP_NOP, 0);
    for (int i = 0; i < 2000; i++) {
        memset(&seen, 0, sizeof seen);
        make_any(&w);
        hear(&p, &w, 1, &ops);
        ck_assert_uint_eq(seen.tasks, 4);
    }
    program_fini(&p);
}
END_TEST

/* ---- the clock ---- */

static uint64_t at(const struct device_clock *c, uint64_t ns, uint64_t cycles)
{
    return device_clock_ns(c, &(struct gpu_stamp){ns, cycles});
}

START_TEST(the_clock_says_where_in_its_tick_a_stamp_lies)
{
    struct gpu_log log = {.begin = {1000000000000032000, 500000}, .end = {1000000000000132000, 650000}}; /* 1.5 a ns */
    struct device_clock c = device_clock_of(&log, 1024, 0);

    ck_assert_uint_eq(at(&c, 1000000000000032000, 500750), 1000000000000032500);
    ck_assert_uint_eq(at(&c, 1000000000000031000, 499250), 1000000000000031500); /* before the first anchor */
    ck_assert_uint_eq(at(&c, 1000000000000050000, 500750), 1000000000000050000); /* it had run slower */
    ck_assert_uint_eq(at(&c, 1000000000000033000, 599000), 1000000000000034024); /* and faster */
    c.host_ahead_ns = -1000000000000000000ull;
    ck_assert_uint_eq(at(&c, 1000000000000032000, 500750), 32500);
}
END_TEST

START_TEST(without_an_anchor_ticks_are_all_there_is)
{
    struct gpu_log log = {.begin = {1000, 500}};
    struct device_clock c = device_clock_of(&log, 32, 0);

    ck_assert_uint_eq(at(&c, 1064, 999), 1064);
    ck_assert_uint_eq(at(&c, 1064, 1010), 1064);
}
END_TEST

START_TEST(time_never_goes_back)
{
    struct gpu_log log = {.begin = {1024, 0}, .end = {101024, 150000}};
    struct device_clock c = device_clock_of(&log, 1024, 0);
    uint64_t cycles = 0, last = 0;

    for (uint64_t ns = 1024; ns < 110000; ns += 97) { /* a clock that runs at half and at double rate by turns */
        uint64_t now;

        cycles += ns / 10000 % 2 ? 75 : 290;
        now = at(&c, ns / 1024 * 1024, cycles);
        ck_assert_uint_ge(now, last);
        ck_assert_uint_ge(now, ns / 1024 * 1024);
        ck_assert_uint_le(now, ns / 1024 * 1024 + 1024);
        last = now;
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("device_log");
    TCase *c = tcase_create("all");

    tcase_add_test(c, one_slice_a_task_in_the_order_of_the_queue);
    tcase_add_test(c, tasks_of_roles_side_by_side_do_not_overlap);
    tcase_add_test(c, waits_are_one_at_a_time);
    tcase_add_test(c, a_wait_ends_by_the_signal_that_filled_the_flag);
    tcase_add_test(c, signals_count_from_when_they_were_raised);
    tcase_add_test(c, what_is_unfinished_leaves_its_waits);
    tcase_add_test(c, what_was_lost_is_told_and_misleads_nobody);
    tcase_add_test(c, a_log_may_be_full);
    tcase_add_test(c, puts_fly_until_the_proxy_saw_them_arrive);
    tcase_add_test(c, slices_never_overlap);
    tcase_add_test(c, the_clock_says_where_in_its_tick_a_stamp_lies);
    tcase_add_test(c, without_an_anchor_ticks_are_all_there_is);
    tcase_add_test(c, time_never_goes_back);
    suite_add_tcase(s, c);
    return suite_run(s);
}
