/* Mutation tests of the verifier: every program of every kernel is damaged in one way at a time, and the
 * verifier must refuse it.  A survivor must be on the list of waits that are redundant by proof. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mutants/mutant.h"
#include "../shard.h"
#include "../suite.h"
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

    return verify_program(&p, global, 1024, &report) != ST_OK;
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

int main(void)
{
    Suite *s = suite_create("mutations");
    TCase *tc = tcase_create("verifier");
    int kernel_count = 0;

    while (kernels[kernel_count])
        kernel_count++;
    tcase_set_timeout(tc, 300);
    shard_add_loop_test(tc, every_mutation_is_refused, 2 * kernel_count);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
