/* Hang reports word for word, the same on every backend that can get into that hang.  Times are left out. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../conformance/harness.h"
#include "../conformance/script.h"
#include "../suite.h"
#include "backends/backends.h"
#include "backends/ops/hang_report.h"

enum { GO, LANDED, SENT }; /* flags, each its own group */

static uint32_t main_queue, put_queue;

static void open_program(struct program *p, struct world world)
{
    script_init(p, world);
    script_buffer(p, "X", 8, 16, 1);
    main_queue = script_queue_and_crew(p, "main");
    put_queue = script_queue_and_crew(p, "send");
    program_add_flags(p, "go", 1);
    program_add_flags(p, "landed", 1);
    program_add_flags(p, "sent", 1);
}

static struct task *add_wait(struct program *p, uint32_t rank, uint32_t flag)
{
    struct task *t = script_task(p, rank, main_queue, OP_NOP, 0, 0);

    task_wait(t, flag, 1, FLAG_TOTAL);
    return t;
}

static void cycle(struct program *p)
{
    open_program(p, (struct world){1, 3});
    for (uint32_t rank = 0; rank < 3; rank++)
        task_signal(add_wait(p, rank, GO), (rank + 1) % 3, GO, 1);
}

/* Rank 1 waits for rank 0, which waits for a flag that nobody signals. */
static void missing_signal(struct program *p)
{
    struct task *t;

    open_program(p, (struct world){1, 2});
    t = script_task(p, 0, main_queue, OP_NOP, 0, 0);
    task_wait(t, SENT, 1, 1);
    task_signal(t, 1, GO, 1);
    add_wait(p, 1, GO);
}

static void too_few_signals(struct program *p)
{
    open_program(p, (struct world){1, 1});
    task_signal(script_task(p, 0, main_queue, OP_NOP, 0, 0), 0, GO, 1);
    task_wait(script_task(p, 0, main_queue, OP_NOP, 0, 0), GO, 1, 2);
}

/* Rank 0 waits until its put is complete, rank 1 tells rank 2 that it has arrived, and so on. */
static void put_chain(struct program *p)
{
    struct task *t;

    open_program(p, (struct world){3, 1});
    t = script_task(p, 0, put_queue, OP_PUT, 8, 16);
    t->a = script_rows(p, 0, 0, 0);
    task_store_to(t, script_rows(p, 1, 0, 0));
    task_signal(t, 1, LANDED, 1);
    task_signal(t, 0, SENT, 1);
    add_wait(p, 0, SENT);
    add_wait(p, 1, LANDED);
    t = script_task(p, 1, put_queue, OP_PUT, 0, 0);
    task_wait(t, LANDED, 1, FLAG_TOTAL);
    task_store_to(t, script_rows(p, 2, 0, 0));
    task_signal(t, 2, LANDED, 1);
    task_signal(t, 1, SENT, 1);
    add_wait(p, 2, LANDED);
}

static void no_crew(struct program *p)
{
    uint32_t orphan;

    open_program(p, (struct world){1, 1});
    orphan = program_add_queue(p, "orphan");
    task_signal(script_task(p, 0, orphan, OP_NOP, 0, 0), 0, GO, 1);
    add_wait(p, 0, GO);
}

#define QUIET_HEAD "no progress: every worker waits and nothing is in flight\n"

static const struct row {
    void (*build)(struct program *p);
    const char *only, *options; /* only: this backend, NULL: all */
    const char *report;
} rows[] = {
    {cycle, NULL, "",
     QUIET_HEAD "root cause: a cycle: each waits for the one below, the last for one above\n"
                "  rank 0 crew main queue main nop #0, epoch 1, entry wait: go[0] is 0, wanted 1\n"
                "    missing: rank 2 queue main nop #0, epoch 1 (waits itself)\n"
                "  rank 2 crew main queue main nop #0, epoch 1, entry wait: go[0] is 0, wanted 1\n"
                "    missing: rank 1 queue main nop #0, epoch 1 (waits itself)\n"
                "  rank 1 crew main queue main nop #0, epoch 1, entry wait: go[0] is 0, wanted 1\n"
                "    missing: rank 0 queue main nop #0, epoch 1 (waits itself)\n"},
    {missing_signal, NULL, "",
     QUIET_HEAD "root cause: no task signals sent[0] of rank 0\n"
                "  rank 0 crew main queue main nop #0, epoch 1, entry wait: sent[0] is 0, wanted 1\n"
                "also waiting:\n"
                "  rank 1 crew main queue main nop #0, epoch 1, entry wait: go[0] is 0, wanted 1\n"},
    {too_few_signals, NULL, "",
     QUIET_HEAD "root cause: all tasks that signal go[0] of rank 0 have done so, 1 an epoch, and more is wanted\n"
                "  rank 0 crew main queue main nop #1, epoch 1, entry wait: go[0] is 1, wanted 2\n"},
    {no_crew, NULL, "",
     QUIET_HEAD "root cause: rank 0 queue orphan, 0 of 1 tasks popped: no crew drains it\n"
                "  rank 0 crew main queue main nop #0, epoch 1, entry wait: go[0] is 0, wanted 1\n"
                "    missing: rank 0 queue orphan nop #0, epoch 1 (not started)\n"},
    {put_chain, "sim", "fault=dropped_put fault_rank=0",
     QUIET_HEAD "root cause: rank 0 queue send put #0, epoch 1, was dropped by the network\n"
                "  rank 0 crew main queue main nop #0, epoch 1, entry wait: sent[0] is 0, wanted 1\n"
                "    missing: rank 0 queue send put #0, epoch 1 (was dropped by the network)\n"
                "also waiting:\n"
                "  rank 1 crew main queue main nop #0, epoch 1, entry wait: landed[0] is 0, wanted 1\n"
                "  rank 1 crew send queue send put #0, epoch 1, entry wait: landed[0] is 0, wanted 1\n"
                "  rank 2 crew main queue main nop #0, epoch 1, entry wait: landed[0] is 0, wanted 1\n"},
    {put_chain, "sim", "fault=dead_link fault_rank=1 fault_time=1us",
     QUIET_HEAD "root cause: rank 1 queue send put #0, epoch 1, was lost on a dead link\n"
                "  rank 2 crew main queue main nop #0, epoch 1, entry wait: landed[0] is 0, wanted 1\n"
                "    missing: rank 1 queue send put #0, epoch 1 (was lost on a dead link)\n"},
    {put_chain, "sim", "fault=stopped_rank fault_rank=1 fault_time=2us",
     QUIET_HEAD "root cause: rank 1 stopped at 2 us\n"
                "  rank 2 crew main queue main nop #0, epoch 1, entry wait: landed[0] is 0, wanted 1\n"
                "    missing: rank 1 queue send put #0, epoch 1 (was in hand when its rank stopped)\n"},
};

/* Takes out what depends on the clock. */
static void drop_times(char *text)
{
    static const char *const spans[][2] = {{", since ", " us"}, {" (at ", "time)"}};

    for (int i = 0; i < 2; i++) {
        char *from, *to;

        while ((from = strstr(text, spans[i][0])) != NULL) {
            to = strstr(from, spans[i][1]) + strlen(spans[i][1]);
            memmove(from, to, strlen(to) + 1);
        }
    }
}

static int backend_count(void)
{
    int count = 0;

    while (backends[count])
        count++;
    return count;
}

static bool runs_here(const struct backend *b)
{
    char why[256];

    return b->available(why, sizeof why) >= 0;
}

static struct problem same_problem(const struct problem *problem, struct world world)
{
    (void)world;
    return *problem;
}

static enum status run(const struct row *row, const struct backend *b, struct run_result *r)
{
    struct kernel kernel = {.name = "script", .family = &problem_gemm, .global = same_problem};
    struct program program = {0};
    enum status st;

    row->build(&program);
    st = harness_run(&(struct trial){.backend = b,
                                     .kernel = &kernel,
                                     .program = &program,
                                     .problem = {8, 16, 16},
                                     .timing = {.mode = TIMING_PIPELINED, .iterations = 1},
                                     .options = row->options},
                     r);
    program_fini(&program);
    return st;
}

#define ROWS ((int)(sizeof rows / sizeof *rows))

START_TEST(a_hang_is_explained)
{
    const struct row *row = &rows[_i % ROWS];
    const struct backend *b = backends[_i / ROWS];
    static struct run_result r;

    if ((row->only && strcmp(row->only, b->name) != 0) || !runs_here(b))
        return;
    ck_assert_int_eq(run(row, b, &r), ST_HANG);
    drop_times(r.report);
    ck_assert_msg(strcmp(r.report, row->report) == 0, "%s:\n%s\nexpected:\n%s", b->name, r.report, row->report);
}
END_TEST

/* ---- being stopped ---- */

static const volatile sig_atomic_t stop_now = 1;

START_TEST(an_interrupted_run_says_where_it_stood)
{
    const struct backend *b = backends[_i];
    struct kernel kernel = {.name = "script", .family = &problem_gemm, .global = same_problem};
    const struct problem problem = {.m = 8, .n = 16, .k = 16};
    static struct run_result r;
    struct program p = {0};
    void *options;

    if (!runs_here(b))
        return;
    options = calloc(1, b->options_size);
    ck_assert_ptr_nonnull(options);
    cycle(&p);
    harness_options(b->options, options, "");
    b->run(&(struct job){.program = &p,
                         .world = p.world,
                         .kernel = &kernel,
                         .problem = &problem,
                         .machine = harness_machine(),
                         .timing = {.mode = TIMING_PIPELINED, .iterations = 1},
                         .options = options,
                         .interrupted = &stop_now},
           &r);
    ck_assert_msg(r.status == ST_INTERRUPTED, "%s: %s", b->name, status_text(r.status));
    ck_assert_msg(strstr(r.report, "stopped from outside") && strstr(r.report, "held up by"), "%s", r.report);
    program_fini(&p);
    free(options);
}
END_TEST

/* Where a run is stopped on its way, a signal that nobody still owes may be in flight. */
START_TEST(what_is_on_its_way_is_not_called_missing)
{
    struct program p = {0};
    struct hang_rank rank = {.epoch = 1};
    struct stuck waiting = {.rank = 0, .index = 1, .epoch = 1, .step = STUCK_NO_STEP, .flag = GO, .wanted = 1};
    struct hang h = {.program = &p, .ranks = &rank, .stuck = &waiting, .stuck_count = 1, .stopped = true};
    char report[2000];

    too_few_signals(&p);
    rank.popped[main_queue] = 2;
    hang_report_write(&h, "stopped from outside", report, sizeof report);
    ck_assert_msg(strstr(report, "held up by: all tasks that signal go[0] of rank 0 have done so, 1 an epoch, and what "
                                 "they sent is on its way, or too little\n"),
                  "%s", report);
    program_fini(&p);
}
END_TEST

/* ---- a screen ---- */

static void many_waits(struct program *p)
{
    open_program(p, (struct world){4, 8});
    for (uint32_t rank = 0; rank < 32; rank++)
        add_wait(p, rank, GO)->waits[0].value = 1;
}

START_TEST(a_report_fits_a_screen)
{
    const struct row row = {many_waits, NULL, "", NULL};
    static struct run_result r;
    int lines = 0;

    if (!runs_here(backends[_i]))
        return;
    ck_assert_int_eq(run(&row, backends[_i], &r), ST_HANG);
    for (const char *c = r.report; *c; c++)
        lines += *c == '\n';
    ck_assert_msg(lines <= 24 && strstr(r.report, "more workers that wait"), "%s", r.report);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hang");
    TCase *tc = tcase_create("reports");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_hang_is_explained, 0, backend_count() * ROWS);
    tcase_add_loop_test(tc, an_interrupted_run_says_where_it_stood, 0, backend_count());
    tcase_add_test(tc, what_is_on_its_way_is_not_called_missing);
    tcase_add_loop_test(tc, a_report_fits_a_screen, 0, backend_count());
    suite_add_tcase(s, tc);
    return suite_run(s);
}
