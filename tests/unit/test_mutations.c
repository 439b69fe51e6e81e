/* Mutation tests of the verifier: every program of every kernel is damaged in one way at a time, and the
 * verifier must refuse it.  A survivor must be on the list of waits that are redundant by proof. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mutants/mutant.h"
#include "../shard.h"
#include "../suite.h"
#include "core/route.h"
#include "core/verify/verify.h"
#include "kernels/kernels.h"

/* A mutation counts over all shapes, worlds and settings: what is damaged is needed if one of them needs it.
 * (With one tile on every rank, data that flows both ways often stands in for a credit.) */
struct tally {
    uint32_t tried, refused;
};

static bool is_refused(struct mutant *m, const struct problem *global)
{
    struct program p = mutant_program(m);
    struct verify_report report;

    if (verify_program(&p, global, 1024, &report) == ST_OK)
        return false;
    ck_assert_msg(strstr(report.text, ", queue ") || strstr(report.text, "no task waits for it"),
                  "no task is named:\n%s", report.text);
    return true;
}

static uint32_t name_index(const char **names, uint32_t room, const char *name)
{
    for (uint32_t i = 0; i < room; i++) {
        if (!names[i])
            names[i] = name;
        if (strcmp(names[i], name) == 0)
            return i;
    }
    ck_abort_msg("too many names");
}

static const char *queue_names[PROGRAM_QUEUES_MAX], *kind_names[2][32];

static void mutate_program(const struct kernel *k, const struct problem *problem, const struct program *inner,
                           struct tally (*board)[PROGRAM_QUEUES_MAX][32])
{
    struct problem global = k->global(problem, inner->world);
    struct mutant m = {.inner = *inner};

    for (m.mutation = 0; m.mutation < MUTATIONS; m.mutation++) {
        bool by_group = mutation_by_group(m.mutation);
        uint32_t kinds = by_group ? inner->flag_group_count : inner->buffer_count;

        for (m.queue = 0; m.queue < inner->queue_count; m.queue++) {
            for (uint32_t kind = 0; kind < kinds; kind++) {
                struct tally *t;

                m.group = by_group ? kind : 0;
                m.buffer = by_group ? UINT32_MAX : kind;
                t = &board[m.mutation][name_index(queue_names, PROGRAM_QUEUES_MAX, inner->queues[m.queue].name)]
                          [name_index(kind_names[by_group], 32,
                                      by_group ? inner->flag_groups[kind].name : inner->buffers[kind].name)];
                if (t->refused || !mutant_applies(&m))
                    continue; /* one refusal is enough */
                t->tried++;
                t->refused += is_refused(&m, &global);
            }
        }
    }
}

/* Survivors that are understood.
 *
 * gemm_ar: redundant, which the verifier's acceptance of the damaged program proves.  In an all-reduce
 * each rank's result depends on every rank's input and the closing task waits for all of it, so a rank in epoch
 * e + 1 knows that epoch e's data are read everywhere: the credits of depth 1, a second copy of the receive
 * buffers and the completion of puts are implied.  They stay, because they make the order of two epochs a
 * matter of one wait, for a reader as for the verifier.
 *
 * moe_dispatch_gemm, moe_dispatch_ffn_combine: what stands where follows from work lists and index lists, and coverage
 * is not traced through these (docs/verifier.md); runs with data find this damage (tests/conformance/test_moe.c).  In
 * unfused programs a barrier orders whatever is exchanged before it. */
static const struct {
    const char *kernel;
    enum mutation mutation;
    const char *queue, *kind;
} explained[] = {
    {"gemm_ar", DROP_WAIT, "compute", "open"},
    {"gemm_ar", DROP_WAIT, "scatter", "open"},
    {"gemm_ar", DROP_WAIT, "send", "rail_open"},
    {"gemm_ar", DROP_WAIT, "share", "sent"},
    {"gemm_ar", SHALLOW, "compute", "inbox"},
    {"gemm_ar", SHALLOW, "compute", "landing"},
    {"moe_dispatch_gemm", SWAP_TARGETS, "compute", "C"},
    {"moe_dispatch_ffn_combine", SWAP_TARGETS, "compute", "expert"},
    {"moe_dispatch_ffn_combine", SWAP_TARGETS, "combine", "Y"},
    {"moe_dispatch_ffn_combine", SWAP_TARGETS, "finish", "Y"},
    {"moe_dispatch_ffn_combine", SWAP_TARGETS, "gather", "rows"},
    {"moe_dispatch_ffn_combine", SHIFT_SOURCE, "compute", "rows"},
};

static bool is_explained(const struct kernel *k, int mutation, const char *queue, const char *kind)
{
    for (size_t i = 0; i < sizeof explained / sizeof *explained; i++)
        if (strcmp(explained[i].kernel, k->name) == 0 && (int)explained[i].mutation == mutation &&
            strcmp(explained[i].queue, queue) == 0 && strcmp(explained[i].kind, kind) == 0)
            return true;
    return false;
}

/* Prints the kill rate; returns how many mutations nothing refused and nothing explains. */
static uint32_t report_board(const struct kernel *k, const char *form, struct tally (*board)[PROGRAM_QUEUES_MAX][32])
{
    uint32_t survivors = 0;

    for (int m = 0; m < MUTATIONS; m++) {
        uint32_t tried = 0, refused = 0, known = 0;

        for (uint32_t q = 0; q < PROGRAM_QUEUES_MAX; q++) {
            for (uint32_t kind = 0; kind < 32; kind++) {
                const struct tally *t = &board[m][q][kind];
                const char *name = kind_names[mutation_by_group(m)][kind];

                tried += t->tried > 0;
                refused += t->refused > 0;
                if (!t->tried || t->refused)
                    continue;
                if (is_explained(k, m, queue_names[q], name))
                    known++;
                else
                    printf("# survivor: %s %s: %s, queue %s, %s (in %u programs)\n", k->name, form, mutation_names[m],
                           queue_names[q], name, t->tried);
            }
        }
        printf("# %s %s: %-14s %u of %u refused, %u explained\n", k->name, form, mutation_names[m], refused, tried,
               known);
        survivors += tried - refused - known;
    }
    return survivors;
}

START_TEST(every_mutation_is_refused)
{
    static struct tally board[MUTATIONS][PROGRAM_QUEUES_MAX][32]; /* a fork each: starts at zero */
    const struct kernel *k = kernels[_i / 2];
    enum form form = _i % 2 ? FORM_UNFUSED : FORM_FUSED;
    uint32_t survivors;

    for (int i = 0; i < mutant_shape_count; i++) {
        struct program p;

        if (!mutant_shape_emit(k, form, &mutant_shapes[i], &mutant_machine, &p))
            continue;
        mutate_program(k, &mutant_shapes[i].problem, &p, board);
        program_fini(&p);
    }
    survivors = report_board(k, form == FORM_FUSED ? "fused" : "unfused", board);
    fflush(stdout);
    ck_assert_uint_eq(survivors, 0);
}
END_TEST

/* A GEMM's indexed wait alone, whatever other forms of the same program would show.  _i: kernel, and where it reads. */
START_TEST(a_gemm_by_index_needs_its_indexed_wait)
{
    static const char *const settings[] = {"rows=once", "rows=in_place"}, *const groups[] = {"gathered", "ready"};
    const struct kernel *k = _i / 2 ? &moe_dispatch_ffn_combine_kernel : &moe_dispatch_gemm_kernel;
    struct mutant m = {.mutation = DROP_WAIT, .buffer = UINT32_MAX};
    struct mutant_shape shape = mutant_shapes[0];
    struct verify_report report;
    struct problem global;
    struct program p;

    shape.world = (struct world){2, 2};
    shape.setting = settings[_i % 2];
    ck_assert(mutant_shape_emit(k, FORM_FUSED, &shape, &mutant_machine, &m.inner));
    global = k->global(&shape.problem, shape.world);
    ck_assert_int_eq(verify_program(&m.inner, &global, 1024, &report), ST_OK);
    while (strcmp(m.inner.queues[m.queue].name, "compute") != 0)
        m.queue++;
    while (strcmp(m.inner.flag_groups[m.group].name, groups[_i % 2]) != 0)
        m.group++;
    for (m.mutation = DROP_WAIT; m.mutation <= HALVE_WAIT; m.mutation++) {
        if (m.mutation == DROP_SIGNAL || !mutant_applies(&m))
            continue;
        p = mutant_program(&m);
        ck_assert_int_eq(verify_program(&p, &global, 1024, &report), ST_WRONG);
        ck_assert_ptr_nonnull(strstr(report.text, m.mutation == DROP_WAIT ? "race: " : "fewer flags"));
    }
    program_fini(&m.inner);
}
END_TEST

/* ---- what a GEMM by index, and a list of pulls, must not be ---- */

static struct program straight;

enum bend { BY_INDEX_COPY, BY_INDEX_TABLE, BY_INDEX_F32, LIMIT_TOO_HIGH, FLAGS_TOO_FEW, PULLS_WITHOUT_COUNT, BENDS };

static enum bend bend;

static void bent_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *t)
{
    static struct route bent;

    (void)p;
    program_task(&straight, rank, queue, index, t);
    t->by_index |= bend == BY_INDEX_COPY && t->op == OP_COPY;
    if (bend == PULLS_WITHOUT_COUNT && t->op == OP_ROUTE) {
        bent = *t->route;
        bent.pull_count = NO_BUFFER;
        t->route = &bent;
    }
    if (t->op != OP_GEMM || !t->by_index)
        return;
    t->index_limit += bend == LIMIT_TOO_HIGH;
    t->indexed.count -= bend == FLAGS_TOO_FEW;
    if (bend == BY_INDEX_TABLE)
        t->segment_table = 0;
}

static uint64_t straight_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    (void)p;
    return program_queue_length(&straight, rank, queue);
}

static uint64_t straight_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    (void)p;
    return program_flag_total(&straight, rank, flag);
}

START_TEST(what_is_not_as_it_must_be_is_refused)
{
    static const struct program_ops ops = {
        .queue_length = straight_length, .task = bent_task, .flag_total = straight_total};
    static const char *const says[BENDS] = {"only a gemm finds", "do not go together", "are of bf16",
                                            "inside its buffer", "fewer flags",        "no room"};
    struct mutant_shape shape = mutant_shapes[0];
    struct verify_report report;
    struct program p;

    bend = (enum bend)_i;
    shape.setting = "rows=once";
    ck_assert(mutant_shape_emit(&moe_dispatch_gemm_kernel, FORM_FUSED, &shape, &mutant_machine, &straight));
    p = straight;
    p.ops = &ops;
    for (uint32_t b = 0; bend == BY_INDEX_F32 && b < p.buffer_count; b++)
        if (strcmp(p.buffers[b].name, "rows") == 0)
            p.buffers[b].dtype = DTYPE_F32;
    ck_assert_int_eq(verify_program(&p, NULL, 1024, &report), ST_WRONG);
    ck_assert_msg(strstr(report.text, says[_i]) != NULL, "%s", report.text);
    program_fini(&straight);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mutations");
    TCase *tc = tcase_create("verifier");
    int kernel_count = 0;

    while (kernels[kernel_count])
        kernel_count++;
    tcase_set_timeout(tc, 300);
    shard_add_loop_test(tc, every_mutation_is_refused, 2 * kernel_count);
    tcase_add_loop_test(tc, a_gemm_by_index_needs_its_indexed_wait, 0, 4);
    tcase_add_loop_test(tc, what_is_not_as_it_must_be_is_refused, 0, BENDS);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
