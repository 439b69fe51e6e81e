/* Programs as tables, without a GPU: every kernel lowers, every index stays inside its table, and
 * the way each task takes is the one its shape and alignment allow. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../moe_like.h"
#include "backends/cuda/lower.h"
#include "harness.h"
#include "index_story.h"
#include "kernels/kernels.h"
#include "script.h"

#include "../suite.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

#define RANKS_MAX 8
#define WINDOW_BYTES (1ull << 32)

struct lowering_case {
    const struct kernel *kernel;
    const char *params;
    struct world world;
    struct problem problem;
    enum form form;
};

static void emit(const struct lowering_case *c, struct program *p)
{
    void *params = calloc(1, c->kernel->params_size);
    struct complaint complaint = {.text = ""};

    harness_options(c->kernel->options, params, c->params);
    ck_assert_msg(c->kernel->emit(&c->problem, c->world, harness_machine(), c->form, params, p, &complaint) == ST_OK,
                  "%s", complaint.text);
    free(params);
}

/* Windows and flags at made-up addresses; two ranks a device. */
static void place_ranks(struct placement *ranks)
{
    for (uint32_t i = 0; i < RANKS_MAX; i++)
        ranks[i] = (struct placement){(i + 1) * WINDOW_BYTES, (RANKS_MAX + i + 1) * WINDOW_BYTES, i / 2};
}

/* Behind the signals, where control buffers say how much there is. */
static void check_dynamic(const struct lowered *l, const struct gpu_task *t, const union gpu_link *link)
{
    if (t->select != SELECT_ALL)
        ck_assert_uint_lt(link->select.view, l->views.count);
    if (t->kind == GPU_ROUTE)
        ck_assert_uint_lt(t->k, l->routes.count);
    ck_assert(t->by_index || t->kind < GPU_GATHER || t->kind > GPU_COMBINE_PLAIN);
    if (!t->by_index)
        return;
    ck_assert_uint_le((uint64_t)(link + 6 - (const union gpu_link *)l->links.items), l->links.count);
    ck_assert_uint_lt(link[1].matrix.view, l->views.count);
    ck_assert_uint_gt(link[2].rows.terms, 0);
    ck_assert_uint_gt(link[2].rows.limit, 0);
    ck_assert_uint_le(link[3].indexed.first + link[3].indexed.count, l->program->flag_count);
    ck_assert_uint_gt(link[3].indexed.rows_per_flag, 0);
    for (uint32_t i = 0; i <= (link[2].rows.limit - 1) / link[2].rows.source_rows; i++)
        ck_assert_uint_lt(link[5 + i].matrix.view, l->views.count);
}

static void check_task(const struct lowered *l, const struct gpu_task *t)
{
    uint64_t links = (uint64_t)t->entry_waits + t->late_waits + t->targets + t->addends + t->signals;
    const union gpu_link *link = (const union gpu_link *)l->links.items + t->links;

    ck_assert_uint_le(t->links + links, l->links.count);
    for (uint32_t i = 0; i < (uint32_t)t->entry_waits + t->late_waits; i++)
        ck_assert_uint_le(link[i].wait.flag + link[i].wait.count, l->program->flag_count);
    link += t->entry_waits + t->late_waits;
    for (uint32_t i = 0; i < (uint32_t)t->targets + t->addends; i++)
        ck_assert_uint_lt(link[i].matrix.view, l->views.count);
    check_dynamic(l, t, (const union gpu_link *)l->links.items + t->links + links);
    if (t->segment_count > 0)
        ck_assert_uint_le(t->segments + t->segment_count, l->segments.count);
}

static int compare_signals(const void *a, const void *b)
{
    const struct gpu_signal *x = a, *y = b;

    return x->address < y->address ? -1 : x->address > y->address;
}

static bool is_far(const struct placement *ranks, uint32_t rank, uint64_t address)
{
    return ranks[address / WINDOW_BYTES - RANKS_MAX - 1].device != ranks[rank].device;
}

/* Of the signals to one flag either all say "system" or none; all do if some signaller is far. */
static void check_scopes(const struct program *p, const struct placement *ranks, const struct lowered *l)
{
    struct gpu_signal *signals = malloc((l->links.count + 1) * sizeof *signals);
    size_t count = 0, task = 0;

    for (uint32_t rank = 0; rank < world_ranks(p->world); rank++)
        for (uint32_t q = 0; q < p->queue_count; q++)
            for (uint64_t i = 0; i < program_queue_length(p, rank, q); i++) {
                const struct gpu_task *t = (const struct gpu_task *)l->tasks.items + task++;
                const union gpu_link *link = (const union gpu_link *)l->links.items + t->links + t->entry_waits +
                                             t->late_waits + t->targets + t->addends;

                for (uint32_t k = 0; k < t->signals; k++) {
                    signals[count++] = link[k].signal;
                    ck_assert(link[k].signal.system || !is_far(ranks, rank, link[k].signal.address));
                }
            }
    qsort(signals, count, sizeof *signals, compare_signals);
    for (size_t i = 1; i < count; i++)
        if (signals[i].address == signals[i - 1].address)
            ck_assert_uint_eq(signals[i].system, signals[i - 1].system);
    free(signals);
}

/* The interpreter's fetcher relies on it: a task's links are found without the task, and there are all its waits. */
static void check_links_per_task(const struct program *p, const struct lowered *l)
{
    const struct gpu_task *tasks = l->tasks.items;

    for (uint32_t q = 0; q < world_ranks(p->world) * p->queue_count; q++) {
        uint64_t first = l->queue_first[q];
        uint64_t length = program_queue_length(p, q / p->queue_count, q % p->queue_count);
        uint64_t each = lowered_links_per_task(l, first, length);

        for (uint64_t i = 0; i < length && each > 0; i++) {
            ck_assert_uint_eq(tasks[first + i].links, tasks[first].links + i * each);
            ck_assert_uint_le(tasks[first + i].entry_waits, each);
            ck_assert_uint_le(tasks[first + i].links + each, l->links.count);
        }
    }
}

static void lower_case(const struct lowering_case *c, struct program *p, struct lowered *l)
{
    struct placement ranks[RANKS_MAX];
    uint64_t tasks = 0;

    place_ranks(ranks);
    emit(c, p);
    ck_assert_msg(lower_program(p, ranks, l) == ST_OK, "%s", l->why);
    for (uint32_t kind = 0; kind < GPU_KIND_COUNT; kind++)
        tasks += l->kinds[kind];
    ck_assert_uint_eq(tasks, l->tasks.count);
    ck_assert_uint_eq(tasks, program_task_count(p));
    for (size_t i = 0; i < l->tasks.count; i++)
        check_task(l, (const struct gpu_task *)l->tasks.items + i);
    check_scopes(p, ranks, l);
    check_links_per_task(p, l);
}

static const struct world worlds[] = {{1, 1}, {1, 4}, {2, 2}, {4, 1}, {2, 4}};
static const struct problem shapes[] = {
    {.m = 512, .n = 512, .k = 256},
    {.m = 600, .n = 520, .k = 304},
    {.m = 37, .n = 65, .k = 70},
    {.m = 3, .n = 24, .k = 16},
};

static const struct problem attentions[] = {
    {.attention = {.seq = 1024, .batch = 1, .heads = 4, .kv_heads = 2, .head_dim = 128}},
    {.attention = {.seq = 600, .batch = 2, .heads = 2, .kv_heads = 2, .head_dim = 64, .causal = true}},
    {.attention = {.seq = 101, .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 128, .causal = true}},
    {.attention = {.seq = 3, .batch = 1, .heads = 3, .kv_heads = 1, .head_dim = 64}},
};
_Static_assert(COUNT(attentions) == COUNT(shapes), "problems are counted once");

static struct problem problem_of(const struct kernel *k, int i)
{
    if (k->family == &problem_attention)
        return attentions[i];
    return is_moe(k) ? moe_like(shapes[i]) : shapes[i];
}

START_TEST(kernel_lowers)
{
    struct lowering_case c = {.kernel = kernels[_i], .params = ""};

    for (int w = 0; w < COUNT(worlds); w++)
        for (int s = 0; s < COUNT(shapes); s++)
            for (int form = 0; form < 2; form++) {
                struct program p = {0};
                struct lowered l;

                c.world = worlds[w];
                c.problem = problem_of(c.kernel, s);
                c.form = form ? FORM_UNFUSED : FORM_FUSED;
                lower_case(&c, &p, &l);
                lowered_free(&l);
                program_fini(&p);
            }
}
END_TEST

/* Ranks 0 and 1 are on one device, 2 and 3 on another. */
START_TEST(signals_to_a_flag_agree_on_their_scope)
{
    struct placement ranks[RANKS_MAX];
    struct program p = {0};
    struct lowered l;
    const union gpu_link *links;
    uint32_t queue;

    script_init(&p, (struct world){1, 4});
    program_add_flags(&p, "both", 1);
    program_add_flags(&p, "near", 1);
    queue = script_queue_and_crew(&p, "main");
    task_signal(script_task(&p, 0, queue, OP_NOP, 0, 0), 1, 0, 1);
    task_signal(script_task(&p, 2, queue, OP_NOP, 0, 0), 1, 0, 1);
    task_signal(script_task(&p, 3, queue, OP_NOP, 0, 0), 2, 1, 1);
    place_ranks(ranks);
    ck_assert_int_eq(lower_program(&p, ranks, &l), ST_OK);
    links = l.links.items;
    ck_assert_uint_eq(l.links.count, 3);
    ck_assert(links[0].signal.system); /* as rank 2 needs it */
    ck_assert(links[1].signal.system);
    ck_assert(!links[2].signal.system);
    lowered_free(&l);
    program_fini(&p);
}
END_TEST

/* Also the last one's, behind which no other task begins, and those of a queue's only task. */
START_TEST(links_per_task_count_for_every_task)
{
    static const struct {
        uint32_t tasks, last_waits, each;
    } rows[] = {{0, 0, 0}, {1, 4, 5}, {2, 1, 2}, {2, 4, 0}, {3, 1, 2}, {3, 0, 0}};
    struct placement ranks[RANKS_MAX];
    struct program p = {0};
    struct lowered l;
    uint32_t queue;

    script_init(&p, (struct world){1, 1});
    program_add_flags(&p, "f", 4);
    queue = script_queue_and_crew(&p, "main");
    for (uint32_t i = 0; i < rows[_i].tasks; i++) {
        struct task *t = script_task(&p, 0, queue, OP_NOP, 0, 0);
        uint32_t waits = i + 1 < rows[_i].tasks ? 1 : rows[_i].last_waits;

        for (uint32_t w = 0; w < waits; w++)
            task_wait(t, w, 1, 1);
        task_signal(t, 0, 0, 1);
    }
    place_ranks(ranks);
    ck_assert_int_eq(lower_program(&p, ranks, &l), ST_OK);
    ck_assert_uint_eq(lowered_links_per_task(&l, 0, rows[_i].tasks), rows[_i].each);
    check_links_per_task(&p, &l);
    lowered_free(&l);
    program_fini(&p);
}
END_TEST

/* Which kinds appear at all; the rest must not. */
static const struct ways {
    struct lowering_case c;
    enum gpu_kind kinds[7]; /* ends with GPU_END */
} ways[] = {
    {{&ag_gemm_kernel, "", {1, 4}, {.m = 512, .n = 512, .k = 256}, FORM_FUSED}, {GPU_SIGNAL, GPU_GEMM, GPU_COPY}},
    {{&ag_gemm_kernel, "panels=4", {1, 4}, {.m = 512, .n = 512, .k = 256}, FORM_FUSED},
     {GPU_SIGNAL, GPU_GEMM, GPU_COPY}},
    {{&ag_gemm_kernel, "", {2, 1}, {.m = 512, .n = 512, .k = 256}, FORM_FUSED}, {GPU_SIGNAL, GPU_GEMM, GPU_PUT}},
    {{&ag_gemm_kernel, "tile_m=64", {1, 1}, {.m = 512, .n = 512, .k = 256}, FORM_FUSED}, {GPU_GEMM, GPU_GEMM_ROWS}},
    {{&ag_gemm_kernel, "", {1, 4}, {.m = 37, .n = 65, .k = 70}, FORM_FUSED},
     {GPU_SIGNAL, GPU_GEMM_PLAIN, GPU_COPY_PLAIN}},
    {{&gemm_rs_kernel, "", {1, 4}, {.m = 512, .n = 512, .k = 256}, FORM_FUSED}, {GPU_SIGNAL, GPU_GEMM}},
    {{&gemm_rs_kernel, "reduce=crew", {1, 4}, {.m = 512, .n = 512, .k = 256}, FORM_FUSED},
     {GPU_SIGNAL, GPU_GEMM, GPU_REDUCE}},
    {{&gemm_rs_kernel, "reduce=switch", {1, 4}, {.m = 512, .n = 512, .k = 256}, FORM_FUSED},
     {GPU_SIGNAL, GPU_GEMM, GPU_REDUCE}},
    {{&gemm_ar_kernel, "", {1, 4}, {.m = 512, .n = 512, .k = 256}, FORM_UNFUSED},
     {GPU_SIGNAL, GPU_GEMM, GPU_COPY, GPU_REDUCE}},
    {{&ring_attention_kernel,
      "",
      {1, 1},
      {.attention = {.seq = 1024, .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 64}},
      FORM_FUSED},
     {GPU_ATTENTION}},
    {{&ring_attention_kernel,
      "split=1",
      {1, 4},
      {.attention = {.seq = 1024, .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 128}},
      FORM_FUSED},
     {GPU_SIGNAL, GPU_COPY, GPU_ATTENTION}},
    {{&ring_attention_kernel,
      "split=1",
      {1, 4},
      {.attention = {.seq = 1000, .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 128}},
      FORM_FUSED},
     {GPU_SIGNAL, GPU_COPY, GPU_ATTENTION, GPU_ATTENTION_DIRECT}},
};

START_TEST(tasks_take_the_best_way)
{
    const struct ways *w = &ways[_i];
    bool expected[GPU_KIND_COUNT] = {false};
    struct program p = {0};
    struct lowered l;

    lower_case(&w->c, &p, &l);
    for (int i = 0; w->kinds[i] != GPU_END; i++)
        expected[w->kinds[i]] = true;
    for (uint32_t kind = 0; kind < GPU_KIND_COUNT; kind++)
        if (l.kinds[kind] > 0)
            ck_assert_msg(expected[kind], "case %d: %llu tasks of kind %u", _i, (unsigned long long)l.kinds[kind],
                          kind);
    lowered_free(&l);
    program_fini(&p);
}
END_TEST

static const struct {
    struct lowering_case c;
    unsigned needs;
} needs[] = {
    {{&gemm_ar_kernel, "", {1, 4}, {.m = 512, .n = 512, .k = 256}, FORM_FUSED}, 0},
    {{&ring_attention_kernel,
      "",
      {1, 2},
      {.attention = {.seq = 64, .batch = 1, .heads = 1, .kv_heads = 1, .head_dim = 64}},
      FORM_FUSED},
     GPU_NEEDS_ATTENTION},
    {{&moe_dispatch_gemm_kernel,
      "",
      {1, 2},
      {.moe = {.tokens = 64, .hidden = 64, .inter = 64, .experts = 4, .top_k = 2, .capacity = 2}},
      FORM_FUSED},
     GPU_NEEDS_DYNAMIC},
};

START_TEST(programs_need_what_they_have)
{
    struct program p = {0};
    struct lowered l;

    lower_case(&needs[_i].c, &p, &l);
    ck_assert_uint_eq(lowered_needs(&l), needs[_i].needs);
    lowered_free(&l);
    program_fini(&p);
}
END_TEST

/* A's own alignment counts, not where its rows end. */
START_TEST(rows_by_index_take_the_best_way)
{
    static const struct {
        uint64_t n, k, kinds[GPU_KIND_COUNT];
    } cases[] = {
        {256, 200, {[GPU_SIGNAL] = 5, [GPU_COPY] = 3, [GPU_GEMM] = 2, [GPU_GEMM_ROWS] = 1, [GPU_GEMM_DIRECT] = 1}},
        {65, 70, {[GPU_SIGNAL] = 5, [GPU_COPY_PLAIN] = 3, [GPU_GEMM_PLAIN] = 4}},
    };
    struct problem problem = index_story_problem(cases[_i].n, cases[_i].k);
    struct placement ranks[RANKS_MAX];
    struct program p = {0};
    struct lowered l;

    place_ranks(ranks);
    script_init(&p, (struct world){1, 2});
    index_story_build(&p, &problem);
    ck_assert_int_eq(lower_program(&p, ranks, &l), ST_OK);
    for (size_t i = 0; i < l.tasks.count; i++)
        check_task(&l, (const struct gpu_task *)l.tasks.items + i);
    for (uint32_t kind = 0; kind < GPU_KIND_COUNT; kind++)
        ck_assert_msg(l.kinds[kind] == cases[_i].kinds[kind], "case %d: %llu tasks of kind %u", _i,
                      (unsigned long long)l.kinds[kind], kind);
    ck_assert_uint_eq(l.by_index, 4);
    lowered_free(&l);
    program_fini(&p);
}
END_TEST

START_TEST(large_tiles_are_refused)
{
    struct lowering_case c = {&ag_gemm_kernel, "tile_m=256", {1, 1}, {.m = 512, .n = 512, .k = 256}, FORM_FUSED};
    struct placement ranks[RANKS_MAX];
    struct program p = {0};
    struct lowered l;

    place_ranks(ranks);
    emit(&c, &p);
    ck_assert_int_eq(lower_program(&p, ranks, &l), ST_INPUT);
    ck_assert_str_eq(l.why, "cuda: rank 0 queue compute gemm #0: a tile of 256 x 256, this backend's are at "
                            "most 128 x 256");
    lowered_free(&l);
    program_fini(&p);
}
END_TEST

START_TEST(other_heads_are_refused)
{
    struct lowering_case c = {&ring_attention_kernel,
                              "",
                              {1, 1},
                              {.attention = {.seq = 64, .batch = 1, .heads = 1, .kv_heads = 1, .head_dim = 96}},
                              FORM_FUSED};
    struct placement ranks[RANKS_MAX];
    struct program p = {0};
    struct lowered l;

    place_ranks(ranks);
    emit(&c, &p);
    ck_assert_int_eq(lower_program(&p, ranks, &l), ST_INPUT);
    ck_assert_str_eq(l.why, "cuda: rank 0 queue compute attention #0: heads of 96 elements, this "
                            "backend has 64 and 128");
    lowered_free(&l);
    program_fini(&p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lower");
    TCase *tc = tcase_create("lower");
    int count = 0;

    while (kernels[count])
        count++;
    tcase_add_loop_test(tc, kernel_lowers, 0, count);
    tcase_add_test(tc, signals_to_a_flag_agree_on_their_scope);
    tcase_add_loop_test(tc, links_per_task_count_for_every_task, 0, 6);
    tcase_add_loop_test(tc, tasks_take_the_best_way, 0, COUNT(ways));
    tcase_add_loop_test(tc, programs_need_what_they_have, 0, COUNT(needs));
    tcase_add_loop_test(tc, rows_by_index_take_the_best_way, 0, 2);
    tcase_add_test(tc, large_tiles_are_refused);
    tcase_add_test(tc, other_heads_are_refused);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
