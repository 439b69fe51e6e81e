/* Properties that every program of every kernel must have, whatever the world and the shape: orders are
 * permutations, flags receive exactly their declared totals, operands lie inside their buffers. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/verify/verify.h"
#include "kernels/kernels.h"
#include "kernels/tile_order.h"

#include "../moe_like.h"
#include "../shard.h"
#include "../suite.h"

struct shape_case {
    struct world world;
    struct problem problem;
};

static const struct shape_case cases[] = {
    {{1, 1}, {.m = 64, .n = 64, .k = 64}},  {{1, 8}, {.m = 64, .n = 96, .k = 32}},
    {{2, 2}, {.m = 64, .n = 64, .k = 64}},  {{3, 4}, {.m = 100, .n = 70, .k = 65}},
    {{8, 8}, {.m = 192, .n = 40, .k = 16}}, {{2, 3}, {.m = 37, .n = 65, .k = 70}},
    {{5, 1}, {.m = 33, .n = 17, .k = 8}},   {{2, 4}, {.m = 5, .n = 33, .k = 24}},
    {{1, 3}, {.m = 1, .n = 1, .k = 1}},     {{4, 2}, {.m = 257, .n = 129, .k = 100}},
};

static const char *const settings[] = {
    "",
    "order=rank",
    "order=arrival inter=direct",
    "panels=3 chunk=512B",
    "chunk=64B depth=1",
    "reduce=crew",
    "reduce=crew order=rotate join=false",
    "reduce=switch chunk=512B",
    "order=rank chunk=4KiB",
    "inter=ring group=1",
    "inter=direct join=false",
    "split=5 chunk=512B",
    "split=3 layout=zigzag",
    "layout=zigzag order=head depth=1",
    "gather_rows=4 chunk=64B depth=3",
    "gather_rows=5 chunk=1KiB join=false",
};

#define CASES (sizeof cases / sizeof *cases)
#define SETTINGS (sizeof settings / sizeof *settings)

/* Large worlds take every third setting, in a slow sanitizer build every 31st. */
#ifdef __SANITIZE_ADDRESS__
#define LARGE_WORLDS 31
#else
#define LARGE_WORLDS 3
#endif

static const struct machine test_machine = {.gpu = {.model = "test", .sms = 32}};

/* The case's numbers as the kernel's family reads them. */
static struct problem problem_of(const struct kernel *k, const struct shape_case *c)
{
    const struct problem *p = &c->problem;

    if (is_moe(k))
        return moe_like(*p);
    if (k->family == &problem_gemm)
        return *p;
    return (struct problem){
        .attention = {
            .seq = p->m, .batch = 1 + p->k % 2, .heads = 4, .kv_heads = 2, .head_dim = 64, .causal = p->n % 2}};
}

/* Small tiles, and the setting; returns false when the kernel does not know that. */
static bool fill_params(const struct kernel *k, const char *setting, void *params)
{
    static const char *const small[][2] = {{"tile_m", "16"}, {"tile_n", "32"}};
    char text[128], why[256], *save = NULL;

    snprintf(text, sizeof text, "%s", setting);
    option_defaults(k->options, params);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        if (option_find(k->options, small[i][0]))
            option_parse(option_find(k->options, small[i][0]), params, small[i][1], NULL, why, sizeof why);
    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *value = strchr(word, '=');
        const struct option *o;

        *value++ = '\0';
        o = option_find(k->options, word);
        if (!o || option_parse(o, params, value, NULL, why, sizeof why) < 0)
            return false;
    }
    return true;
}

static void check_operand(const struct program *p, const struct operand *o, uint64_t rows, uint64_t cols)
{
    const struct buffer *b = &p->buffers[o->buffer];

    if (rows == 0 || cols == 0)
        return;
    ck_assert_uint_lt(o->buffer, p->buffer_count);
    ck_assert(o->rank == RANK_NODE || o->rank == RANK_EACH || o->rank < world_ranks(p->world));
    ck_assert_uint_le(o->offset + (rows - 1) * o->ld + cols, buffer_elements(b));
}

static void check_wait(const struct program *p, uint32_t rank, const struct wait *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        ck_assert_uint_lt(w->flag + i, p->flag_count);
        if (w->value != FLAG_TOTAL)
            ck_assert_uint_le(w->value, program_flag_total(p, rank, w->flag + i));
    }
}

static void check_task(const struct program *p, uint32_t rank, const struct task *t, uint64_t *sums)
{
    for (uint32_t i = 0; i < t->wait_count; i++)
        check_wait(p, rank, &t->waits[i]);
    for (uint32_t s = 0; op_walks(t->op) && s < program_step_count(t); s++) {
        struct segment seg;
        struct operand a, b;
        struct extent ea, eb;

        program_step(p, rank, t, s, &seg, &a, &b);
        ea = step_extent_a(t, &seg);
        eb = step_extent_b(t, &seg);
        if (!t->by_index)
            check_operand(p, &a, t->select.mode == SELECT_ENTRY ? 1 : ea.rows, ea.cols);
        check_operand(p, &b, eb.rows, eb.cols);
        check_wait(p, rank, &seg.wait);
    }
    if (t->op == OP_COPY || t->op == OP_PUT)
        check_operand(p, &t->a, t->m, t->n);
    if (task_indexes(t))
        check_operand(p, &t->index, t->select.mode == SELECT_ENTRY ? 1 : t->m, program_index_terms(t));
    if (t->op == OP_COMBINE_ROWS && t->combine.weighted)
        check_operand(p, &t->combine.weight, t->m, t->combine.terms);
    if (t->op == OP_ATTENTION)
        check_operand(p, &t->attention.q, t->m, t->n);
    if (t->op == OP_ATTENTION && (t->addend_count || t->attention.leaves))
        check_operand(p, &t->attention.lse, t->m, 1);
    for (uint32_t i = 0; i < t->addend_count; i++) {
        struct operand o = program_addend(p, rank, t, i);

        ck_assert(world_same_node(p->world, o.rank, rank));
        check_operand(p, &o, t->m, t->n);
    }
    for (uint32_t i = 0; i < t->out_count; i++) /* where a work list puts rows, routes see to it that they fit */
        check_operand(p, &t->out[i], t->select.mode == SELECT_ENTRY ? 1 : t->m, t->n);
    for (uint32_t i = 0; i < t->signal_count; i++) {
        const struct signal *s = &t->signals[i];
        uint32_t first, count = program_target_ranks(p, rank, s->rank, &first);

        for (uint32_t r = first; r < first + count; r++)
            sums[(uint64_t)r * p->flag_count + s->flag] += s->add;
    }
}

static void check_program(const struct program *p)
{
    uint32_t ranks = world_ranks(p->world);
    uint64_t *sums = calloc((uint64_t)ranks * p->flag_count, sizeof *sums);

    ck_assert_ptr_nonnull(sums);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        for (uint32_t q = 0; q < p->queue_count; q++) {
            uint64_t length = program_queue_length(p, rank, q);

            for (uint64_t i = 0; i < length; i++) {
                struct task t;

                program_task(p, rank, q, i, &t);
                check_task(p, rank, &t, sums);
            }
        }
    }
    for (uint32_t rank = 0; rank < ranks; rank++)
        for (uint32_t f = 0; f < p->flag_count; f++)
            ck_assert_msg(sums[(uint64_t)rank * p->flag_count + f] == program_flag_total(p, rank, f),
                          "%s %s %u x %u: rank %u %s[%u] gets %lu of %lu", p->kernel, p->variant, p->world.nodes,
                          p->world.gpus_per_node, rank, program_flag_group(p, f)->name,
                          f - program_flag_group(p, f)->first, sums[(uint64_t)rank * p->flag_count + f],
                          program_flag_total(p, rank, f));
    free(sums);
}

static void prove(const struct program *p, const struct kernel *k, const struct problem *problem)
{
    struct problem global = k->global(problem, p->world);
    struct verify_report report;

    verify_program(p, &global, test_machine.gpu.sms, &report);
    ck_assert_msg(report.violations == 0, "%s %s %u x %u, %lu violations\n%.2000s", p->kernel, p->variant,
                  p->world.nodes, p->world.gpus_per_node, report.violations, report.text);
}

/* Tasks that hand on results make many pairs to order: minutes for 64 ranks.  Small chunks of the largest shape show a
 * slow sanitizer build nothing new. */
static bool takes_long(const struct shape_case *c, const char *setting)
{
#ifdef __SANITIZE_ADDRESS__
    if (c->problem.m > 200 && strstr(setting, "chunk=64B"))
        return true;
#endif
    return world_ranks(c->world) > 16 && strstr(setting, "split");
}

START_TEST(flags_get_their_totals_and_operands_fit)
{
    const struct shape_case *c = &cases[_i / (int)SETTINGS];
    const char *setting = settings[_i % (int)SETTINGS];

    if (world_ranks(c->world) > 8 && (_i + _i / (int)SETTINGS) % LARGE_WORLDS != 0)
        return;
    for (uint32_t k = 0; kernels[k]; k++) {
        void *params = calloc(1, kernels[k]->params_size);
        bool known = fill_params(kernels[k], setting, params) && !takes_long(c, setting);
        struct problem problem = problem_of(kernels[k], c);

        for (int form = FORM_FUSED; known && form <= FORM_UNFUSED; form++) {
            struct complaint complaint = {0};
            struct program p = {0};

            ck_assert_msg(
                kernels[k]->emit(&problem, c->world, &test_machine, (enum form)form, params, &p, &complaint) == ST_OK,
                "%s", complaint.text);
            check_program(&p);
            prove(&p, kernels[k], &problem);
            program_fini(&p);
        }
        free(params);
    }
}
END_TEST

START_TEST(orders_are_permutations)
{
    static const struct {
        enum tile_order order;
        bool own_last;
    } orders[] = {
        {ORDER_OWNER, false}, {ORDER_OWNER, true}, {ORDER_STAGE, false},
        {ORDER_ALL, true},    {ORDER_ALL, false},  {ORDER_RANK, true},
    };
    const struct shape_case *c = &cases[_i];
    uint64_t elements = c->problem.m * c->problem.n;

    for (uint32_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        for (uint64_t group = 1; group <= 4; group++) {
            struct tile_grid g = {c->world, c->problem.m, c->problem.n,    4,
                                  16,       group,        orders[o].order, orders[o].own_last};
            uint32_t rank = world_ranks(c->world) / 2;
            char *seen = calloc(1, elements);
            uint64_t covered = 0;

            tile_grid_init(&g);
            for (uint64_t i = 0; i < tile_grid_tiles(&g); i++) {
                struct tile t = {0}, same = {0};

                tile_grid_at(&g, rank, i, &t);
                tile_grid_slot(&g, t.owner, t.slot, &same);
                ck_assert_mem_eq(&t, &same, sizeof t);
                for (uint64_t r = t.row; r < t.row + t.rows; r++) {
                    for (uint64_t col = t.col; col < t.col + t.cols; col++) {
                        ck_assert(!seen[r * c->problem.n + col]);
                        seen[r * c->problem.n + col] = 1;
                        covered++;
                    }
                }
            }
            ck_assert_uint_eq(covered, elements);
            free(seen);
        }
    }
}
END_TEST

START_TEST(own_rows_come_first_or_last)
{
    struct tile_grid g = {{2, 4}, 256, 64, 16, 32, 2, ORDER_OWNER, false};
    struct tile t;

    tile_grid_init(&g);
    tile_grid_at(&g, 5, 0, &t);
    ck_assert_uint_eq(t.owner, 5);
    g.own_last = true;
    tile_grid_at(&g, 5, tile_grid_tiles(&g) - 1, &t);
    ck_assert_uint_eq(t.owner, 5);
    tile_grid_at(&g, 5, 0, &t);
    ck_assert_uint_eq(world_node(g.world, t.owner), 0); /* the other node's rows travel furthest */
}
END_TEST

START_TEST(tile_counts_beyond_32_bits_stay_exact)
{
    /* 2^33 tiles a rank: every product must be 64 bits wide */
    struct tile_grid g = {{2, 8}, 1ull << 36, 1ull << 11, 8, 8, 8, ORDER_OWNER, false};
    struct tile t;

    tile_grid_init(&g);
    ck_assert_uint_eq(tile_grid_tiles(&g), 1ull << 41);
    tile_grid_at(&g, 0, (1ull << 41) - 1, &t);
    ck_assert_uint_eq(t.col, (1ull << 11) - 8);
    ck_assert_uint_eq(t.slot, (1ull << 37) - 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("kernels");
    TCase *tc = tcase_create("programs");

    tcase_set_timeout(tc, 120);
    shard_add_loop_test(tc, flags_get_their_totals_and_operands_fit, (int)(CASES * SETTINGS));
    shard_add_loop_test(tc, orders_are_permutations, (int)CASES);
    tcase_add_test(tc, own_rows_come_first_or_last);
    tcase_add_test(tc, tile_counts_beyond_32_bits_stay_exact);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
