/* Durations that can be worked out by hand, and what the sim backend says about broken programs. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/fault.h"
#include "backends/sim/fold.h"
#include "sim_script.h"

#include "../suite.h"

enum { COMPUTE, COMM };              /* queues and crews */
enum { READY = 0, DONE = 4 };        /* first flags of their groups */
#define GEMM_US(steps) (1 + (steps)) /* fixed and steps */

static struct script s;

static void ck_time(uint64_t got_ps, double want_us)
{
    double got_us = (double)got_ps / US;

    ck_assert_msg(got_us > want_us - 1e-4 && got_us < want_us + 1e-4, "took %f us, should take %f us", got_us, want_us);
}

/* ---- durations ---- */

START_TEST(tiles_follow_each_other)
{
    script_init(&s, 1, 1);
    for (int i = 0; i < 3; i++)
        script_gemm(&s, 0, COMPUTE, 640, 0);
    ck_time(script_time_ps(&s), 0.5 + 3 * GEMM_US(10)); /* one dispatch, the others were fetched ahead */

    s.tasks[0][COMPUTE][1].m = 5; /* a part of a tile costs a tile, 1.5 steps cost 2 */
    s.tasks[0][COMPUTE][2].k = 96;
    ck_time(script_time_ps(&s), 0.5 + 2 * GEMM_US(10) + GEMM_US(2));

    s.tasks[0][COMPUTE][1].m = 129; /* two tiles of the machine */
    ck_time(script_time_ps(&s), 0.5 + GEMM_US(10) + GEMM_US(20) + GEMM_US(2));
}
END_TEST

START_TEST(workers_share_a_queue)
{
    script_init(&s, 1, 1);
    s.program.crews[COMPUTE].workers = 3;
    for (int i = 0; i < 7; i++)
        script_gemm(&s, 0, COMPUTE, 64, 0);
    ck_time(script_time_ps(&s), 0.5 + 3 * GEMM_US(1));
}
END_TEST

START_TEST(launch_is_charged_when_asked_for)
{
    script_init(&s, 1, 1);
    script_gemm(&s, 0, COMPUTE, 64, 0);
    s.job.timing.launch = true;
    ck_time(script_time_ps(&s), 5 + 0.5 + GEMM_US(1));
}
END_TEST

START_TEST(a_wait_costs_latency_and_dispatch)
{
    script_init(&s, 1, 1);
    task_signal(script_gemm(&s, 0, COMPUTE, 64, 0), 0, READY, 1);
    task_wait(script_gemm(&s, 0, COMM, 64, 0), READY, 1, FLAG_TOTAL);
    ck_time(script_time_ps(&s), 0.5 + GEMM_US(1) + 0.25 + 0.5 + GEMM_US(1));
}
END_TEST

/* A tile's result takes its time into memory while the worker computes the next. */
START_TEST(a_flush_delays_what_others_see)
{
    script_init(&s, 1, 2);
    s.machine.gemm.flush_ps = 2 * US;
    for (int i = 0; i < 3; i++)
        script_gemm(&s, 0, COMPUTE, 640, 0);
    ck_time(script_time_ps(&s), 0.5 + 3 * GEMM_US(10) + 2);

    task_signal(&s.tasks[0][COMPUTE][1], 0, READY, 1);
    task_wait(script_gemm(&s, 0, COMM, 640, 0), READY, 1, FLAG_TOTAL);
    ck_time(script_time_ps(&s), 0.5 + 2 * GEMM_US(10) + 2 + 0.25 + 0.5 + GEMM_US(10) + 2);

    script_init(&s, 1, 2);
    s.machine.gemm.flush_ps = 2 * US;
    script_gemm(&s, 0, COMPUTE, 640, 1); /* then 64 KiB over the link, at 256 KiB/us */
    ck_time(script_time_ps(&s), 0.5 + GEMM_US(10) + 2 + 1 + 0.25);
}
END_TEST

START_TEST(a_step_waits_for_its_own_flag)
{
    struct task *t;

    script_init(&s, 1, 1);
    task_signal(script_gemm(&s, 0, COMPUTE, 640, 0), 0, READY, 1);
    t = script_gemm(&s, 0, COMM, 0, 0);
    t->segment_table = 0;
    t->segment_count = 3;
    s.segment_count = 3;
    for (int i = 0; i < 3; i++)
        s.segments[i] = (struct segment){.k = 128};
    s.segments[2].wait = (struct wait){.flag = READY, .count = 1, .value = FLAG_TOTAL};
    /* the last two steps of six come once the other's tile of eleven is seen */
    ck_time(script_time_ps(&s), 0.5 + GEMM_US(10) + 0.25 + 2);

    s.segments[1].k = 1280; /* now the flag is long up: nothing is waited for */
    ck_time(script_time_ps(&s), 0.5 + GEMM_US(2 + 20 + 2));
}
END_TEST

/* The step's wait ends on its second flag; the wait of the task behind it starts at its first. */
START_TEST(waits_for_several_flags_leave_nothing_behind)
{
    struct task *t;

    script_init(&s, 1, 1);
    task_signal(script_gemm(&s, 0, COMPUTE, 64, 0), 0, READY, 1);
    task_signal(script_gemm(&s, 0, COMPUTE, 64, 0), 0, READY + 1, 1);
    task_signal(script_gemm(&s, 0, COMPUTE, 640, 0), 0, READY + 2, 1);
    t = script_gemm(&s, 0, COMM, 0, 0);
    t->segment_table = 0;
    t->segment_count = s.segment_count = 1;
    s.segments[0] = (struct segment){.k = 64, .wait = {.flag = READY, .count = 2, .value = FLAG_TOTAL}};
    task_wait(script_gemm(&s, 0, COMM, 64, 0), READY + 2, 1, FLAG_TOTAL);
    ck_time(script_time_ps(&s), 0.5 + 2 * GEMM_US(1) + GEMM_US(10) + 0.25 + 0.5 + GEMM_US(1));
}
END_TEST

START_TEST(late_waits_overlap_the_main_loop)
{
    struct task *t;

    script_init(&s, 1, 1);
    task_signal(script_gemm(&s, 0, COMPUTE, 640, 0), 0, READY, 1);
    t = script_gemm(&s, 0, COMM, 640, 0);
    task_wait_late(t, READY, 1, FLAG_TOTAL);
    t->addend = t->out[0];
    t->addend.offset = 300 * 1024;
    t->addend_count = 2;
    t->addend_stride = 128 * 1024;
    /* both loops at once, then the flag's latency, then 2 x 64 KiB at 64 KiB/us */
    ck_time(script_time_ps(&s), 0.5 + GEMM_US(10) + 0.25 + 2);
}
END_TEST

START_TEST(copies_stream)
{
    script_init(&s, 1, 2);
    for (uint64_t i = 0; i < 3; i++)
        script_copy(&s, 0, COMM, i * 32, 1);
    /* fixed part, latency included, and 64 KiB at the CTA's 64 KiB/us; only the first pays for a
     * drained pipe */
    ck_time(script_time_ps(&s), 0.5 + (3 + 1) + 2 * (1 + 1));
}
END_TEST

START_TEST(a_pull_goes_at_the_pull_rate)
{
    script_init(&s, 1, 2);
    script_copy(&s, 0, COMM, 0, 0)->a.rank = 1;
    ck_time(script_time_ps(&s), 0.5 + 3 + 2);
}
END_TEST

/* Of 128 rows the first so many are row i of rank 1, the others of rank 0. */
static uint64_t rows_of_peer;

static void index_rows(const struct problem *problem, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                       int32_t *out)
{
    (void)problem, (void)seed, (void)epoch;
    for (uint64_t i = row; i < row + rows; i++)
        out[i - row] = (int32_t)(i < rows_of_peer ? 1024 + i : i);
}

/* A task of one and a quarter microseconds whose rows of 2 KiB a peer may hold. */
static double gemm_by_index_us(uint64_t far)
{
    struct kernel kernel;
    struct task *t;

    script_init(&s, 1, 2);
    kernel = *s.job.kernel;
    kernel.control = index_rows;
    s.job.kernel = &kernel;
    s.input = (struct io_slice){.role = IO_INPUT, .rows = 128, .cols = 1};
    s.input.buffer = program_add_buffer(&s.program, (struct buffer){"index", DTYPE_I32, 128, 1, 1});
    s.machine.gemm.steps[0].step_ps = US / 64;
    rows_of_peer = far;
    t = script_gemm(&s, 0, COMPUTE, 1024, 0);
    t->by_index = true;
    t->a.rank = RANK_NODE;
    t->index = (struct operand){0, s.input.buffer, 0, 1};
    t->index_limit = 2 * 1024;
    return (double)script_time_ps(&s) / US;
}

START_TEST(rows_by_index_are_pulled_from_who_has_them)
{
    ck_assert_double_eq_tol(gemm_by_index_us(0), 0.5 + 1 + 0.25, 1e-3);
    ck_assert_double_eq_tol(gemm_by_index_us(64), 1 + 4, 1e-3); /* beside the rest */
    ck_assert_double_eq_tol(gemm_by_index_us(128), 1 + 8, 1e-3);
}
END_TEST

START_TEST(peers_share_a_push_unless_the_switch_multicasts)
{
    script_init(&s, 1, 4);
    task_signal(script_copy(&s, 0, COMM, 0, RANK_NODE), RANK_NODE, READY, 1);
    script_nop(&s, 3, COMPUTE, READY, FLAG_TOTAL);
    /* three flows at a third of the CTA's rate, then the signal */
    ck_time(script_time_ps(&s), 0.5 + 3 + 3 + 1.5 + 0.5);

    s.machine.nvlink.multicast = true;
    ck_time(script_time_ps(&s), 0.5 + 3 + 1 + 1.5 + 0.5);
    s.tasks[0][COMM][0].out[0].rank = RANK_EACH; /* or the task does without it */
    ck_time(script_time_ps(&s), 0.5 + 3 + 3 + 1.5 + 0.5);
}
END_TEST

START_TEST(a_reduction_costs_the_bytes_it_moves)
{
    struct task *t;

    script_init(&s, 1, 1);
    t = script_copy(&s, 0, COMM, 0, 0);
    t->op = OP_REDUCE;
    t->addend = t->a;
    t->addend_count = 3;
    t->addend_stride = 32 * 1024;
    ck_time(script_time_ps(&s), 0.5 + 3 + 4);
}
END_TEST

/* Of 64 KiB each: the sum comes at the pull rate; without such a switch three peers share it, beside 320 KiB read and
 * written. */
START_TEST(a_switch_adds_on_the_way)
{
    struct task *t;

    script_init(&s, 1, 4);
    t = script_copy(&s, 0, COMM, 0, 0);
    t->op = OP_REDUCE;
    t->addend = (struct operand){RANK_NODE, t->a.buffer, t->a.offset, t->a.ld};
    t->addend_count = 4;
    ck_time(script_time_ps(&s), 0.5 + 3 + 6);
    s.machine.nvlink.reduce = true;
    ck_time(script_time_ps(&s), 0.5 + 3 + 2);
}
END_TEST

START_TEST(stores_leave_behind_the_worker)
{
    struct run_result r;

    script_init(&s, 1, 2);
    s.machine.nvlink.rate = 16384e6; /* 64 KiB take 4 us, and 1 us of latency */
    for (int i = 0; i < 3; i++)
        task_signal(script_gemm(&s, 0, COMPUTE, 128, 1), 1, READY, 1);
    script_nop(&s, 1, COMPUTE, READY, FLAG_TOTAL);
    r = script_run(&s);
    ck_assert_int_eq(r.status, ST_OK);
    /* a tile takes 3 us, so each store but the first waits 2 us for the one before */
    ck_time(r.sample_ps[0], 0.5 + 3 + 5 + 5 + 5 + 1.5 + 0.5);
    ck_time(r.crews[COMPUTE].waiting_ps[r.cause_count - 1], 2 + 2);
    ck_assert_str_eq(r.causes[r.cause_count - 1], "store");
    ck_assert_uint_eq(r.flows, 3);
}
END_TEST

START_TEST(puts_pass_fifo_proxy_and_nic)
{
    struct run_result r;

    script_init(&s, 2, 1);
    for (uint32_t i = 0; i < 3; i++)
        script_put(&s, 0, COMM, i * 32, 1, READY + i);
    task_wait(script_nop(&s, 1, COMPUTE, READY, FLAG_TOTAL), READY + 1, 2, FLAG_TOTAL);
    r = script_run(&s);
    ck_assert_int_eq(r.status, ST_OK);
    /* Pushed at 0.7 and 0.9, posted at 3.7 and 4.7; the third finds the FIFO full until 3.7, is
     * pushed at 3.9, seen at 5.9 and posted at 6.9.  The NIC needs 2 us for each: 3.7, 5.7, 7.7
     * to 9.7. */
    ck_time(r.sample_ps[0], 9.7 + 4 + 0.25 + 0.5);
    ck_time(r.crews[COMM].waiting_ps[r.cause_count - 2], 3.7 - 0.9);
    ck_assert_str_eq(r.causes[r.cause_count - 2], "nic queue");
    ck_assert_uint_eq(r.puts, 3);

    s.machine.proxy.fifo_depth = 3; /* posted at 5.7: the NIC is what limits */
    r = script_run(&s);
    ck_time(r.sample_ps[0], 9.7 + 4 + 0.25 + 0.5);
    ck_time(r.crews[COMM].waiting_ps[r.cause_count - 2], 0);
}
END_TEST

START_TEST(all_worker_time_is_accounted_for)
{
    struct run_result r;
    uint64_t sum = 0;

    script_init(&s, 1, 1);
    task_signal(script_gemm(&s, 0, COMPUTE, 64, 0), 0, READY, 1);
    task_wait(script_gemm(&s, 0, COMM, 64, 0), READY, 1, FLAG_TOTAL);
    r = script_run(&s);
    for (uint32_t c = 0; c < r.crew_count; c++) {
        sum += r.crews[c].busy_ps + r.crews[c].idle_ps;
        for (uint32_t i = 0; i < r.cause_count; i++)
            sum += r.crews[c].waiting_ps[i];
    }
    ck_assert_uint_eq(sum, 2 * r.sample_ps[0]);
    ck_time(r.crews[COMM].waiting_ps[0], 2.75);
    ck_assert_str_eq(r.causes[0], "ready");
    ck_assert_uint_eq(r.tasks, 2);
}
END_TEST

START_TEST(epochs_back_to_back)
{
    script_init(&s, 1, 1);
    script_gemm(&s, 0, COMPUTE, 64, 0);
    s.job.timing = (struct timing){TIMING_PIPELINED, .warmup = 2, .iterations = 4};
    ck_time(script_time_ps(&s), 0.5 + GEMM_US(1));

    s.job.timing.launch = true; /* then the host, at 100 us a launch, is what limits */
    ck_time(script_time_ps(&s), 100);
}
END_TEST

START_TEST(epochs_of_ranks_are_ordered_by_signals_alone)
{
    script_init(&s, 1, 2);
    task_signal(script_gemm(&s, 0, COMPUTE, 64, 0), 1, READY, 1); /* 2.5 us an epoch */
    script_nop(&s, 1, COMPUTE, READY, FLAG_TOTAL);
    s.job.timing = (struct timing){TIMING_PIPELINED, .warmup = 1, .iterations = 5};
    ck_time(script_time_ps(&s), 0.5 + GEMM_US(1)); /* the signal's latency is hidden */
}
END_TEST

START_TEST(empty_ranks_take_part)
{
    script_init(&s, 1, 2);
    script_gemm(&s, 1, COMPUTE, 64, 1);
    s.options.data = true;
    s.job.timing.iterations = 3;
    ck_assert_uint_eq(script_run(&s).sample_count, 3);

    script_init(&s, 1, 1); /* nothing at all */
    ck_time(script_time_ps(&s), 0);

    script_init(&s, 1, 1); /* tasks that cost nothing end while the rank is being started */
    s.machine.flag.dispatch_ps = 0;
    script_add(&s, 0, COMPUTE);
    script_add(&s, 0, COMM);
    ck_time(script_time_ps(&s), 0);
}
END_TEST

START_TEST(jitter_repeats_with_its_seed)
{
    struct run_result a, b, other;

    script_init(&s, 2, 2);
    s.options.jitter = 0.3;
    s.job.timing.iterations = 5;
    for (uint32_t i = 0; i < 3; i++) {
        script_put(&s, 0, COMM, i * 32, 2, READY + i);
        task_wait(script_gemm(&s, 2, COMPUTE, 640, 3), READY + i, 1, FLAG_TOTAL);
        script_copy(&s, 1, COMM, i * 32, 0);
    }
    a = script_run(&s);
    b = script_run(&s);
    s.job.seed = 2;
    other = script_run(&s);
    ck_assert_int_eq(a.status, ST_OK);
    ck_assert_uint_eq(a.sample_count, 5);
    ck_assert_int_eq(memcmp(a.sample_ps, b.sample_ps, sizeof a.sample_ps), 0);
    ck_assert_int_ne(memcmp(a.sample_ps, other.sample_ps, sizeof a.sample_ps), 0);
    ck_assert_uint_ne(a.sample_ps[0], a.sample_ps[1]);
    s.options.unordered = true;
    ck_assert_int_eq(script_run(&s).status, ST_OK);
}
END_TEST

/* ---- disorder and faults ---- */

/* Rank 0 sends three tiles to rank 1, which computes on each. */
static void init_puts(void)
{
    script_init(&s, 2, 1);
    for (uint32_t i = 0; i < 3; i++) {
        script_put(&s, 0, COMM, i * 32, 1, READY + i);
        task_wait(script_gemm(&s, 1, COMPUTE, 64, 1), READY + i, 1, FLAG_TOTAL);
    }
}

START_TEST(disorder_repeats_with_its_seed_and_spreads_wide)
{
    uint64_t least = UINT64_MAX, most = 0;

    init_puts();
    s.options.disorder = 100;
    s.options.engine = ENGINE_ALONE;
    for (s.job.seed = 1; s.job.seed <= 30; s.job.seed++) {
        uint64_t ps = script_time_ps(&s);

        ck_assert_uint_eq(ps, script_time_ps(&s));
        least = ps < least ? ps : least;
        most = ps > most ? ps : most;
    }
    ck_assert_msg(most > 10 * least, "30 seeds take %lu to %lu ps", (unsigned long)least, (unsigned long)most);
}
END_TEST

START_TEST(slow_ones_take_their_factor)
{
    script_init(&s, 1, 1);
    script_gemm(&s, 0, COMPUTE, 640, 0);
    s.options.fault = FAULT_STRAGGLER;
    s.options.fault_factor = 3;
    ck_time(script_time_ps(&s), 3 * (0.5 + GEMM_US(10)));
    s.options.fault = FAULT_NONE;
    ck_time(script_time_ps(&s), 0.5 + GEMM_US(10));

    init_puts();
    uint64_t usual = script_time_ps(&s);
    s.options.fault = FAULT_SLOW_LINK;
    s.options.fault_factor = 11;
    ck_assert_uint_gt(script_time_ps(&s), usual + 10 * 5 * US); /* a message takes more than 5 us */
    s.options.fault = FAULT_LOSSY_LINK;
    s.options.fault_loss = 0;
    ck_assert_uint_eq(script_time_ps(&s), usual);
    s.options.fault_loss = 0.9;
    s.options.fault_delay_ps = 100 * US;
    ck_assert_uint_gt(script_time_ps(&s), usual + 100 * US);
    s.options.fault_rank = 1; /* sends nothing */
    ck_assert_uint_eq(script_time_ps(&s), usual);
}
END_TEST

/* What is expected of each fault of rank 0 that a run cannot get over. */
static const struct fatal {
    enum fault_kind fault;
    uint32_t put;
    enum status status;
    const char *mentions;
} fatal[] = {
    {FAULT_DEAD_LINK, 1, ST_HANG, "put #0, epoch 1, was lost on a dead link"},
    {FAULT_DROPPED_PUT, 2, ST_HANG, "put #1, epoch 1, was dropped by the network"},
    {FAULT_DROPPED_PUT, 4, ST_OK, ""}, /* there are only three */
    {FAULT_DUPLICATED_PUT, 3, ST_WRONG, "put #2, epoch 1, was delivered twice"},
    {FAULT_STOPPED_RANK, 1, ST_HANG, "rank 0 stopped at 0 us"},
};

START_TEST(a_fatal_fault_is_reported)
{
    const struct fatal *f = &fatal[_i];
    struct run_result r;

    init_puts();
    s.options.fault = f->fault;
    s.options.fault_put = f->put;
    r = script_run(&s);
    ck_assert_int_eq(r.status, f->status);
    ck_assert_msg(strstr(r.report, f->mentions), "%s", r.report);
}
END_TEST

/* ---- broken programs, limits ---- */

START_TEST(a_hang_says_who_waits_for_whom)
{
    struct run_result r;

    script_init(&s, 1, 2);
    task_signal(script_nop(&s, 0, COMPUTE, READY + 1, 1), 1, DONE + 2, 1);
    task_signal(script_nop(&s, 1, COMM, DONE + 2, 1), 0, READY + 1, 1);
    r = script_run(&s);
    ck_assert_int_eq(r.status, ST_HANG);
    ck_assert_ptr_nonnull(strstr(r.report, "rank 0 crew compute queue compute nop #0, epoch 1, entry wait: "
                                           "ready[1] is 0, wanted 1"));
    ck_assert_ptr_nonnull(strstr(r.report, "missing: rank 1 queue comm nop #0, epoch 1 (waits itself)"));
    ck_assert_ptr_nonnull(strstr(r.report, "done[2]"));
}
END_TEST

START_TEST(a_queue_without_crew_hangs)
{
    struct run_result r;

    script_init(&s, 1, 1);
    program_add_queue(&s.program, "orphan");
    script_gemm(&s, 0, 2, 64, 0);
    r = script_run(&s);
    ck_assert_int_eq(r.status, ST_HANG);
    ck_assert_ptr_nonnull(strstr(r.report, "queue orphan, 0 of 1 tasks popped"));
}
END_TEST

/* Rank 0 writes rank 1's Y while a copy there reads it; with `ordered` the copy waits for it. */
static struct run_result read_while_written(bool ordered, uint64_t row)
{
    struct task *writer, *reader;

    script_init(&s, 1, 2);
    s.options.data = true;
    writer = script_copy(&s, 0, COMM, 0, 1);
    task_signal(writer, 1, READY, 1);
    reader = script_copy(&s, 1, COMM, row, 1);
    reader->a.buffer = 1;
    reader->out[0].buffer = 0;
    if (ordered)
        task_wait(reader, READY, 1, FLAG_TOTAL);
    return script_run(&s);
}

START_TEST(conflicts_fail_whatever_the_values)
{
    struct run_result r = read_while_written(false, 0);

    ck_assert_int_eq(r.status, ST_WRONG);
    ck_assert_ptr_nonnull(strstr(r.report, "copy #0 of queue comm, rank 0, epoch 1, writes rank 1 Y"));
    ck_assert_ptr_nonnull(strstr(r.report, "copy #0 of queue comm, rank 1, epoch 1, reads rank 1 Y"));
    ck_assert_int_eq(read_while_written(false, 31).status, ST_WRONG);
    ck_assert_int_eq(read_while_written(false, 32).status, ST_OK); /* next rows: no overlap */
    ck_assert_int_eq(read_while_written(true, 0).status, ST_OK);
}
END_TEST

START_TEST(a_put_reads_its_source_until_it_is_sent)
{
    struct task *put, *writer;

    for (int wait = 0; wait < 2; wait++) {
        script_init(&s, 2, 1);
        s.options.data = true;
        put = script_put(&s, 0, COMM, 0, 1, READY);
        task_signal(put, 0, DONE, 1);
        writer = script_copy(&s, 0, COMPUTE, 0, 0);
        writer->a.buffer = 1;
        writer->out[0].buffer = 0;
        task_wait(writer, READY + 1, 1, 1);
        task_signal(script_gemm(&s, 0, COMM, 64, 0), 0, READY + 1, 1); /* some time after the push */
        s.tasks[0][COMM][1].out[0].offset = 900 * 1024;
        s.tasks[0][COMM][1].m = 16;
        if (wait)
            task_wait(writer, DONE, 1, FLAG_TOTAL);
        ck_assert_int_eq(script_run(&s).status, wait ? ST_OK : ST_WRONG);
    }
}
END_TEST

/* ---- folding ---- */

/* Four nodes of one GPU: a tile of its own for each, whose result goes to the next node, which computes on it.  The
 * flag's number is the sender's, as kernels have it. */
static void init_ring(void)
{
    script_init(&s, 4, 1);
    s.options.engine = ENGINE_FLUID;
    for (uint32_t rank = 0; rank < 4; rank++) {
        task_signal(script_gemm(&s, rank, COMPUTE, 640, rank), rank, DONE, 1);
        task_wait(script_put(&s, rank, COMM, 0, (rank + 1) % 4, READY + rank), DONE, 1, FLAG_TOTAL);
        task_wait(script_gemm(&s, rank, COMPUTE, 64, rank), READY + (rank + 3) % 4, 1, FLAG_TOTAL);
    }
}

START_TEST(one_node_stands_for_all)
{
    struct run_result whole, folded;

    init_ring();
    s.job.timing = (struct timing){.mode = TIMING_PIPELINED, .warmup = 1, .iterations = 3};
    whole = script_run(&s);
    s.options.fold = FOLD_NODE;
    folded = script_run(&s);
    ck_assert_int_eq(folded.status, ST_OK);
    ck_assert_uint_eq(folded.sample_ps[0], whole.sample_ps[0]);
    ck_assert_uint_eq(folded.tasks, whole.tasks);
    ck_assert_uint_eq(folded.put_bytes, whole.put_bytes);
    ck_assert_uint_eq(folded.crews[COMPUTE].busy_ps, whole.crews[COMPUTE].busy_ps);
    ck_assert_uint_eq(folded.links[1].bytes, whole.links[1].bytes);
    ck_assert_ptr_nonnull(strstr(folded.model, "1 of 4 nodes"));
}
END_TEST

/* What the last node may do otherwise. */
enum { OTHER_K, OTHER_ROWS, OTHER_TARGET, OTHER_FLAG, OTHER_VALUE, FEWER_WAITS, ONE_TASK_MORE, OTHERS };

static void make_other(int what)
{
    struct task *own = &s.tasks[3][COMPUTE][0], *waits = &s.tasks[3][COMPUTE][1], *put = &s.tasks[3][COMM][0];

    if (what == OTHER_K)
        own->k = 64;
    else if (what == OTHER_ROWS)
        put->m = 16;
    else if (what == OTHER_TARGET)
        put->out[0].rank = put->signals[0].rank = 1;
    else if (what == OTHER_FLAG)
        waits->waits[0].flag = DONE;
    else if (what == OTHER_VALUE)
        own->signals[0].add = 2;
    else if (what == FEWER_WAITS)
        waits->wait_count = 0;
    else
        script_gemm(&s, 3, COMPUTE, 64, 3);
}

START_TEST(a_node_that_differs_is_not_folded)
{
    struct run_result r;

    init_ring();
    make_other(_i);
    s.options.fold = FOLD_NODE;
    r = script_run(&s);
    ck_assert_int_eq(r.status, ST_INPUT);
    ck_assert_msg(strstr(r.report, "one node cannot stand for all 4: ") != NULL, "%s", r.report);
    s.options.fold = FOLD_AUTO;
    ck_assert_ptr_null(strstr(script_run(&s).model, "nodes"));
}
END_TEST

START_TEST(memory_is_estimated_before_it_is_taken)
{
    script_init(&s, 1, 4);
    script_gemm(&s, 0, COMPUTE, 64, 0);
    s.job.memory_limit_bytes = 1 << 20;
    ck_assert_int_eq(script_run(&s).status, ST_MEMORY);
    s.job.memory_limit_bytes = 1 << 30;
    ck_assert_int_eq(script_run(&s).status, ST_OK);
    s.options.memory_bytes = 1 << 20;
    ck_assert_int_eq(script_run(&s).status, ST_MEMORY);
    ck_assert_uint_gt(sim_backend.memory_bytes(&s.job), 1 << 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim");
    TCase *time = tcase_create("durations"), *broken = tcase_create("broken");
    TCase *faults = tcase_create("disorder and faults");

    tcase_add_test(time, tiles_follow_each_other);
    tcase_add_test(time, workers_share_a_queue);
    tcase_add_test(time, launch_is_charged_when_asked_for);
    tcase_add_test(time, a_wait_costs_latency_and_dispatch);
    tcase_add_test(time, a_flush_delays_what_others_see);
    tcase_add_test(time, a_step_waits_for_its_own_flag);
    tcase_add_test(time, waits_for_several_flags_leave_nothing_behind);
    tcase_add_test(time, late_waits_overlap_the_main_loop);
    tcase_add_test(time, copies_stream);
    tcase_add_test(time, a_pull_goes_at_the_pull_rate);
    tcase_add_test(time, rows_by_index_are_pulled_from_who_has_them);
    tcase_add_test(time, peers_share_a_push_unless_the_switch_multicasts);
    tcase_add_test(time, a_reduction_costs_the_bytes_it_moves);
    tcase_add_test(time, a_switch_adds_on_the_way);
    tcase_add_test(time, stores_leave_behind_the_worker);
    tcase_add_test(time, puts_pass_fifo_proxy_and_nic);
    tcase_add_test(time, all_worker_time_is_accounted_for);
    tcase_add_test(time, epochs_back_to_back);
    tcase_add_test(time, epochs_of_ranks_are_ordered_by_signals_alone);
    tcase_add_test(time, empty_ranks_take_part);
    tcase_add_test(time, jitter_repeats_with_its_seed);
    tcase_add_test(broken, a_hang_says_who_waits_for_whom);
    tcase_add_test(broken, a_queue_without_crew_hangs);
    tcase_add_test(broken, conflicts_fail_whatever_the_values);
    tcase_add_test(broken, a_put_reads_its_source_until_it_is_sent);
    tcase_add_test(broken, memory_is_estimated_before_it_is_taken);
    tcase_add_test(faults, disorder_repeats_with_its_seed_and_spreads_wide);
    tcase_add_test(faults, slow_ones_take_their_factor);
    tcase_add_loop_test(faults, a_fatal_fault_is_reported, 0, sizeof fatal / sizeof *fatal);
    tcase_add_test(time, one_node_stands_for_all);
    tcase_add_loop_test(broken, a_node_that_differs_is_not_folded, 0, OTHERS);
    suite_add_tcase(suite, time);
    suite_add_tcase(suite, faults);
    suite_add_tcase(suite, broken);
    return suite_run(suite);
}
