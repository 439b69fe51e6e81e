#include "cuda_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../moe_like.h"
#include "backends/cuda/cuda.h"
#include "core/trace/trace.h"
#include "harness.h"
#include "kernels/kernels.h"
#include "script.h"
#include "stories.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

#define RANKS_MAX 4
#define WORKERS_MAX 256
#define RUN_PS 10000000000000ull     /* nothing here takes ten seconds */
#define CLOCKS_DIFFER_PS 20000000ull /* and a signal may be seen before it is noted */

/* What a worker has been told to have done last. */
struct last {
    uint64_t task_end_ps, wait_end_ps, task_begin_ps;
};

/* A sink that looks at what it is told as it comes. */
struct witness {
    struct trace head;
    const struct program *program;
    uint64_t epochs, tasks, waits, known, flights, lost, longest_wait_ps;
    bool roles_overlap;
    uint32_t crew_workers[PROGRAM_CREWS_MAX];
    uint8_t *seen[RANKS_MAX][PROGRAM_QUEUES_MAX];
    struct last last[RANKS_MAX][PROGRAM_CREWS_MAX][WORKERS_MAX];
};

static struct last *last_of(struct witness *w, const struct trace_lane *lane)
{
    ck_assert_uint_lt(lane->rank, world_ranks(w->program->world));
    ck_assert_uint_lt(lane->crew, w->program->crew_count);
    ck_assert_uint_lt(lane->worker, w->crew_workers[lane->crew]);
    return &w->last[lane->rank][lane->crew][lane->worker];
}

static void check_place(const struct witness *w, const struct trace_lane *lane, const struct trace_place *at)
{
    struct task t;

    ck_assert_uint_lt(at->queue, w->program->queue_count);
    ck_assert_uint_lt(at->index, program_queue_length(w->program, lane->rank, at->queue));
    ck_assert_uint_eq(at->epoch, w->epochs);
    program_task(w->program, lane->rank, at->queue, at->index, &t);
    ck_assert_int_eq(at->op, t.op);
}

static uint64_t see_begin(struct trace *t, uint64_t first, uint64_t epochs,
                          const uint32_t crew_workers[PROGRAM_CREWS_MAX])
{
    struct witness *w = (struct witness *)t;

    ck_assert_uint_eq(w->epochs, 0);
    ck_assert_uint_eq(first, epochs);
    w->epochs = epochs;
    memcpy(w->crew_workers, crew_workers, w->program->crew_count * sizeof *crew_workers);
    for (uint32_t i = 0; i < w->program->crew_count; i++)
        ck_assert_uint_le(crew_workers[i], WORKERS_MAX);
    return epochs;
}

static void see_task(struct trace *t, const struct trace_task *x)
{
    struct witness *w = (struct witness *)t;
    struct last *last = last_of(w, &x->lane);

    check_place(w, &x->lane, &x->at);
    ck_assert_uint_ge(x->begin_ps, last->task_end_ps);
    ck_assert_uint_ge(x->begin_ps, last->wait_end_ps);
    ck_assert_uint_le(x->begin_ps, x->end_ps);
    ck_assert_uint_lt(x->end_ps, RUN_PS);
    last->task_begin_ps = x->begin_ps;
    last->task_end_ps = x->end_ps;
    w->seen[x->lane.rank][x->at.queue][x->at.index]++;
    w->tasks++;
}

/* Those of a task's inside are told behind it, those at its entry before it. */
static void see_wait(struct trace *t, const struct trace_wait *x)
{
    struct witness *w = (struct witness *)t;
    struct last *last = last_of(w, &x->lane);

    check_place(w, &x->lane, &x->at);
    ck_assert_uint_lt(x->begin_ps, x->end_ps);
    ck_assert_uint_ge(x->begin_ps, last->wait_end_ps);
    if (x->inside && w->seen[x->lane.rank][x->at.queue][x->at.index]) {
        ck_assert_uint_ge(x->begin_ps, last->task_begin_ps);
        ck_assert_uint_le(x->end_ps, last->task_end_ps);
    } else {
        ck_assert_uint_ge(x->begin_ps, last->task_end_ps);
    }
    if (x->known && !w->roles_overlap)
        ck_assert_uint_le(x->from_ps, x->end_ps + CLOCKS_DIFFER_PS);
    last->wait_end_ps = x->end_ps;
    if (x->end_ps - x->begin_ps > w->longest_wait_ps)
        w->longest_wait_ps = x->end_ps - x->begin_ps;
    w->known += x->known;
    w->waits++;
}

static void see_flight(struct trace *t, const struct trace_flight *x)
{
    struct witness *w = (struct witness *)t;

    check_place(w, &x->lane, &x->at);
    ck_assert_uint_lt(x->begin_ps, x->end_ps);
    ck_assert_uint_lt(x->end_ps, RUN_PS);
    w->flights += x->at.op == OP_PUT;
}

static void see_use(struct trace *t, const struct trace_use *x)
{
    (void)t;
    ck_assert_uint_le(x->begin_ps, x->end_ps);
}

static void see_lost(struct trace *t, uint64_t events)
{
    ((struct witness *)t)->lost += events;
}

static const struct trace_ops witness_ops = {
    .begin = see_begin, .task = see_task, .wait = see_wait, .flight = see_flight, .use = see_use, .lost = see_lost};

static struct witness *witness_create(const struct program *p)
{
    struct witness *w = calloc(1, sizeof *w);

    w->head.ops = &witness_ops;
    w->program = p;
    ck_assert_uint_le(world_ranks(p->world), RANKS_MAX);
    for (uint32_t rank = 0; rank < world_ranks(p->world); rank++)
        for (uint32_t q = 0; q < p->queue_count; q++)
            w->seen[rank][q] = calloc(program_queue_length(p, rank, q) + 1, 1);
    return w;
}

static void witness_free(struct witness *w)
{
    for (uint32_t rank = 0; rank < RANKS_MAX; rank++)
        for (uint32_t q = 0; q < PROGRAM_QUEUES_MAX; q++)
            free(w->seen[rank][q]);
    free(w);
}

static void check_each_once(const struct witness *w, const char *name)
{
    const struct program *p = w->program;

    for (uint32_t rank = 0; rank < world_ranks(p->world); rank++)
        for (uint32_t q = 0; q < p->queue_count; q++)
            for (uint64_t i = 0; i < program_queue_length(p, rank, q); i++)
                ck_assert_msg(w->seen[rank][q][i] == 1, "%s: rank %u %s #%" PRIu64 " was told %u times", name, rank,
                              p->queues[q].name, i, w->seen[rank][q][i]);
}

/* ---- kernels ---- */

/* Each way of running a task, with and without a network. */
static const struct traced {
    const struct kernel *kernel;
    const char *params;
    struct world world;
    bool waits;   /* some worker certainly had nothing to do before a signal came */
    bool overlap; /* bare signals go out while the task before goes on, and are shown behind it */
} traced[] = {
    {&ag_gemm_kernel, "comm_sms=16", {1, 2}, true, false},
    {&ag_gemm_kernel, "comm_sms=8 inter=direct order=arrival", {2, 2}, true, false},
    {&gemm_rs_kernel, "reduce=crew", {1, 4}, true, false},
    {&gemm_ar_kernel, "reduce=epilogue order=rank inter=direct", {2, 2}, true, false},
    {&ring_attention_kernel, "comm_sms=16", {1, 2}, false, false},
    {&moe_dispatch_ffn_combine_kernel, "comm_sms=16", {2, 2}, true, true},
};

static const char *const runs[] = {"prefetch=4 timeout=5s", "prefetch=1 fifo=1 timeout=5s"};

static struct problem problem_of(const struct kernel *k)
{
    static const struct problem gemm = {.m = 1024, .n = 512, .k = 256};
    static const struct problem attention = {
        .attention = {.seq = 1024, .batch = 1, .heads = 4, .kv_heads = 2, .head_dim = 128, .causal = true}};

    if (k->family == &problem_attention)
        return attention;
    return is_moe(k) ? moe_like(gemm) : gemm;
}

static void run_traced(const struct traced *x, const struct program *p, const struct problem *problem,
                       const char *options)
{
    struct run_result *r = calloc(1, sizeof *r);
    struct witness *w = witness_create(p);

    w->roles_overlap = x->overlap;
    harness_run(&(struct trial){.backend = &cuda_backend,
                                .kernel = x->kernel,
                                .program = p,
                                .problem = *problem,
                                .timing = {.mode = TIMING_ISOLATED, .warmup = 2, .iterations = 2},
                                .options = options,
                                .trace = &w->head},
                r);
    ck_assert_msg(r->status == ST_OK && r->elements_wrong == 0, "%s: %s", x->kernel->name, r->report);
    ck_assert_uint_eq(r->sample_count, 2);
    ck_assert_uint_eq(r->epochs, 5); /* one more than were asked for: the one that is told */
    ck_assert_uint_eq(w->epochs, 5);
    ck_assert_uint_eq(w->lost, 0);
    ck_assert_uint_eq(w->tasks, program_task_count(p));
    check_each_once(w, x->kernel->name);
    ck_assert_msg(!x->waits || w->known > 0, "%s: %" PRIu64 " waits, nobody ended one", x->kernel->name, w->waits);
    ck_assert_msg((w->flights > 0) == (r->puts > 0), "%s: %" PRIu64 " puts flew of %" PRIu64, x->kernel->name,
                  w->flights, r->puts / r->epochs);
    if (getenv("MKERNEL_TEST_SHOW"))
        fprintf(stderr, "%s: %" PRIu64 " tasks, %" PRIu64 " waits, %" PRIu64 " with an arrow, %" PRIu64 " flights\n",
                x->kernel->name, w->tasks, w->waits, w->known, w->flights);
    witness_free(w);
    free(r);
}

START_TEST(every_task_is_told_once)
{
    const struct traced *x = &traced[_i % COUNT(traced)];
    struct problem problem = problem_of(x->kernel);
    void *params = calloc(1, x->kernel->params_size);
    struct complaint complaint = {.text = ""};
    struct program program = {0};

    harness_options(x->kernel->options, params, x->params);
    ck_assert_msg(x->kernel->emit(&problem, x->world, harness_machine(), FORM_FUSED, params, &program, &complaint) ==
                      ST_OK,
                  "%s", complaint.text);
    run_traced(x, &program, &problem, runs[_i / COUNT(traced)]);
    program_fini(&program);
    free(params);
}
END_TEST

/* ---- a run that hangs ---- */

static struct problem same_problem(const struct problem *problem, struct world world)
{
    (void)world;
    return *problem;
}

START_TEST(a_hang_leaves_what_it_waits_for)
{
    const struct story *s = &failing_stories[0]; /* a wait for a flag that nobody raises */
    struct kernel kernel = {.name = s->name, .global = same_problem, .reference = s->reference};
    struct run_result *r = calloc(1, sizeof *r);
    struct program program = {0};
    struct witness *w;

    ck_assert_int_eq(s->status, ST_HANG);
    script_init(&program, s->world);
    s->build(&program);
    w = witness_create(&program);
    harness_run(&(struct trial){.backend = &cuda_backend,
                                .kernel = &kernel,
                                .program = &program,
                                .problem = s->problem,
                                .timing = {.mode = TIMING_ISOLATED, .warmup = 2, .iterations = 1},
                                .options = "timeout=1s",
                                .trace = &w->head},
                r);
    ck_assert_msg(r->status == ST_HANG, "%s", r->report);
    ck_assert_uint_eq(w->epochs, 1);
    ck_assert_uint_gt(w->tasks, 0);
    ck_assert_uint_lt(w->tasks, program_task_count(&program));
    ck_assert_uint_gt(w->longest_wait_ps, 500000000000ull);
    witness_free(w);
    program_fini(&program);
    free(r);
}
END_TEST

TCase *cuda_trace_tests(void)
{
    TCase *tc = tcase_create("trace");

    tcase_add_loop_test(tc, every_task_is_told_once, 0, COUNT(traced) * COUNT(runs));
    tcase_add_test(tc, a_hang_leaves_what_it_waits_for);
    return tc;
}
