/* Mutation tests of the verifier: every program of every kernel is damaged in one way at a time, and the
 * verifier must refuse it.  A survivor must be on the list of waits that are redundant by proof. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/verify.h"
#include "kernels/kernels.h"

#include "../moe_like.h"

enum mutation {
    DROP_WAIT,    /* all waits for one flag group by tasks of one queue */
    DROP_SIGNAL,  /* all signals to one flag group by tasks of one queue */
    HALVE_WAIT,   /* half of a wait for several flags */
    EARLY_REUSE,  /* credits one epoch too old: a buffer is written while the last epoch still reads it */
    SHALLOW,      /* a buffer with one copy less than its credits assume */
    SHIFT_SOURCE, /* sources one row off */
    SHIFT_TARGET, /* targets one row off */
    MUTATIONS,
};

static const char *const mutation_names[MUTATIONS] = {
    "drop wait", "drop signal", "halve wait", "early reuse", "shallow buffer", "shift source", "shift target",
};

/* A program that differs from `inner` in one way.  `state` of the mutant. */
struct mutant {
    struct program inner;
    enum mutation  mutation;
    uint32_t       queue, group, buffer;
    uint64_t       hits; /* how much was changed */
};

static bool in_group(const struct mutant *m, uint32_t flag)
{
    const struct flag_group *g = &m->inner.flag_groups[m->group];

    return flag - g->first < g->count;
}

static void mutate_waits(struct mutant *m, struct task *t)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < t->wait_count; i++) {
        struct wait w = t->waits[i];

        if (in_group(m, w.flag)) {
            if (m->mutation == DROP_WAIT) {
                m->hits++;
                continue;
            }
            if (m->mutation == HALVE_WAIT && w.count > 1) {
                m->hits++;
                w.count /= 2;
            }
            if (m->mutation == EARLY_REUSE && w.lag > 0) {
                m->hits++;
                w.lag++;
            }
        }
        t->waits[kept++] = w;
    }
    t->wait_count = kept;
    if (t->indexed.count == 0 || !in_group(m, t->indexed.first) || m->mutation == EARLY_REUSE)
        return;
    t->indexed.count = m->mutation == DROP_WAIT ? 0 : t->indexed.count / 2;
    m->hits++;
}

static void mutate_signals(struct mutant *m, struct task *t)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < t->signal_count; i++) {
        if (in_group(m, t->signals[i].flag))
            m->hits++;
        else
            t->signals[kept++] = t->signals[i];
    }
    t->signal_count = kept;
}

static void shift(struct mutant *m, struct operand *o, uint64_t rows)
{
    const struct buffer *b = &m->inner.buffers[o->buffer];
    uint64_t row = o->offset / b->cols;

    if (o->buffer != m->buffer || rows == 0)
        return;
    if (row > 0)
        o->offset -= b->cols;
    else if (row + rows < b->rows)
        o->offset += b->cols;
    else
        return;
    m->hits++;
}

/* Keys (whose segments begin `a_offset` further on), queries, and what the tile's chain hands on. */
static void shift_attention(struct mutant *m, struct task *t)
{
    if (t->a.buffer == m->buffer) {
        t->a.offset += m->inner.buffers[t->a.buffer].cols;
        m->hits++;
    }
    shift(m, &t->attention.q, t->m);
    if (t->addend_count)
        shift(m, &t->addend, t->m);
    if (t->addend_count || t->attention.leaves)
        shift(m, &t->attention.lse, t->m);
}

static void mutant_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index,
                        struct task *t)
{
    struct mutant *m = p->state;

    program_task(&m->inner, rank, queue, index, t);
    if (queue != m->queue)
        return;
    if (m->mutation == DROP_WAIT || m->mutation == HALVE_WAIT || m->mutation == EARLY_REUSE)
        mutate_waits(m, t);
    else if (m->mutation == DROP_SIGNAL)
        mutate_signals(m, t);
    else if (m->mutation == SHIFT_SOURCE && (t->op == OP_COPY || t->op == OP_PUT))
        shift(m, &t->a, t->m);
    else if (m->mutation == SHIFT_SOURCE && t->op == OP_REDUCE)
        shift(m, &t->addend, t->m);
    else if (m->mutation == SHIFT_SOURCE && t->op == OP_GEMM)
        shift(m, &t->a, t->m);
    else if (m->mutation == SHIFT_SOURCE && t->op == OP_ATTENTION)
        shift_attention(m, t);
    else if (m->mutation == SHIFT_TARGET)
        for (uint32_t i = 0; i < t->out_count; i++)
            shift(m, &t->out[i], t->m);
}

static uint64_t mutant_queue_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    return program_queue_length(&((struct mutant *)p->state)->inner, rank, queue);
}

static uint64_t mutant_flag_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    struct mutant *m = p->state;
    uint64_t total = program_flag_total(&m->inner, rank, flag);

    return total;
}

static uint32_t mutant_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    return program_io(&((struct mutant *)p->state)->inner, rank, out);
}

static uint32_t mutant_table_size(const struct program *p, uint32_t rank, uint32_t table)
{
    const struct program *inner = &((struct mutant *)p->state)->inner;

    return inner->ops->segment_table_size(inner, rank, table);
}

static void mutant_segment(const struct program *p, uint32_t rank, uint32_t table, uint32_t index,
                           struct segment *out)
{
    struct mutant *m = p->state;

    m->inner.ops->segment(&m->inner, rank, table, index, out);
    if (m->queue == 0 && in_group(m, out->wait.flag)) {
        if (m->mutation == DROP_WAIT && out->wait.count) {
            out->wait.count = 0;
            m->hits++;
        }
        if (m->mutation == HALVE_WAIT && out->wait.count > 1) {
            out->wait.count /= 2;
            m->hits++;
        }
    }
}

static const struct program_ops mutant_ops = {
    .queue_length = mutant_queue_length,
    .task = mutant_task,
    .flag_total = mutant_flag_total,
    .io = mutant_io,
    .segment_table_size = mutant_table_size,
    .segment = mutant_segment,
};

/* A mutation counts over all shapes, worlds and settings: what is damaged is needed if one of them needs it.
 * (With one tile on every rank, data that flows both ways often stands in for a credit.) */
struct tally {
    uint32_t tried, refused;
};


/* Returns false when the mutation changes nothing. */
static bool survives(struct mutant *m, const struct problem *global, bool *alive_out,
                     struct verify_report *report)
{
    struct program p = m->inner;

    p.ops = &mutant_ops;
    p.state = m;
    m->hits = 0;
    if (m->mutation == SHALLOW) {
        if (p.buffers[m->buffer].depth < 2 || m->queue)
            return false;
        p.buffers[m->buffer].depth--;
        m->hits = 1;
    }
    *alive_out = verify_program(&p, global, 1024, report) == ST_OK;
    return m->hits > 0;
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

static void mutate_program(const struct kernel *k, const struct problem *problem,
                           const struct program *inner, struct tally (*board)[PROGRAM_QUEUES_MAX][32])
{
    struct problem global = k->global(problem, inner->world);
    struct mutant m = {.inner = *inner};

    for (m.mutation = 0; m.mutation < MUTATIONS; m.mutation++) {
        bool by_group = m.mutation <= EARLY_REUSE;
        uint32_t kinds = by_group ? inner->flag_group_count : inner->buffer_count;

        for (m.queue = 0; m.queue < inner->queue_count; m.queue++) {
            for (uint32_t kind = 0; kind < kinds; kind++) {
                struct verify_report report;
                struct tally *t;
                bool alive;

                m.group = by_group ? kind : 0;
                m.buffer = by_group ? UINT32_MAX : kind;
                if (!survives(&m, &global, &alive, &report))
                    continue;
                t = &board[m.mutation]
                          [name_index(queue_names, PROGRAM_QUEUES_MAX, inner->queues[m.queue].name)]
                          [name_index(kind_names[by_group], 32,
                                      by_group ? inner->flag_groups[kind].name
                                               : inner->buffers[kind].name)];
                t->tried++;
                t->refused += !alive;
            }
        }
    }
}

/* Prints the kill rate; returns how many mutations nothing refused. */
static uint32_t report_board(const struct kernel *k, const char *form,
                             struct tally (*board)[PROGRAM_QUEUES_MAX][32])
{
    uint32_t survivors = 0;

    for (int m = 0; m < MUTATIONS; m++) {
        uint32_t tried = 0, refused = 0;

        for (uint32_t q = 0; q < PROGRAM_QUEUES_MAX; q++) {
            for (uint32_t kind = 0; kind < 32; kind++) {
                const struct tally *t = &board[m][q][kind];

                tried += t->tried > 0;
                refused += t->refused > 0;
                if (t->tried && !t->refused)
                    printf("# survivor: %s %s: %s, queue %s, %s (in %u programs)\n", k->name, form,
                           mutation_names[m], queue_names[q], kind_names[m <= EARLY_REUSE][kind],
                           t->tried);
            }
        }
        printf("# %s %s: %-14s %u of %u refused\n", k->name, form, mutation_names[m], refused, tried);
        survivors += tried - refused;
    }
    return survivors;
}

static const struct machine test_machine = {.gpu = {.model = "test", .sms = 32}};

static const char *const settings[] = {
    "",           "depth=1",     "panels=2", "inter=direct",  "inter=ring",
    "reduce=crew", "join=false", "split=1",  "layout=zigzag",
};

static const struct world worlds[] = {{1, 3}, {3, 1}, {3, 2}};

/* The second of each: empty shards. */
#define PROBLEMS 2
static const struct problem gemms[PROBLEMS] = {{.m = 96, .n = 40, .k = 130}, {.m = 1, .n = 40, .k = 130}};
static const struct problem attentions[PROBLEMS] = {
    {.attention = {.seq = 99, .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 64}},
    {.attention = {.seq = 7, .batch = 2, .heads = 1, .kv_heads = 1, .head_dim = 64, .causal = true}},
};

static bool fill_params(const struct kernel *k, const char *setting, void *params)
{
    char text[64], why[256], *value;
    const struct option *o;

    static const char *const small[][2] = {{"tile_m", "8"}, {"tile_n", "16"}, {"chunk", "512B"}};

    option_defaults(k->options, params);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        if ((o = option_find(k->options, small[i][0])) != NULL)
            option_parse(o, params, small[i][1], NULL, why, sizeof why);
    snprintf(text, sizeof text, "%s", setting);
    value = strchr(text, '=');
    if (!value)
        return true;
    *value++ = '\0';
    o = option_find(k->options, text);
    return o && option_parse(o, params, value, NULL, why, sizeof why) == ST_OK;
}

START_TEST(every_mutation_is_refused)
{
    static struct tally board[MUTATIONS][PROGRAM_QUEUES_MAX][32]; /* a fork each: starts at zero */
    const struct kernel *k = kernels[_i / 2];
    enum form form = _i % 2 ? FORM_UNFUSED : FORM_FUSED;
    void *params = calloc(1, k->params_size);
    uint32_t survivors;

    const struct problem *problems = k->family == &problem_attention ? attentions : gemms;

    for (uint32_t w = 0; w < sizeof worlds / sizeof *worlds; w++) {
        for (uint32_t s = 0; s < sizeof settings / sizeof *settings; s++) {
            for (uint32_t i = 0; i < PROBLEMS; i++) {
                struct problem problem = k->family == &problem_moe ? moe_like(problems[i]) : problems[i];
                struct complaint complaint;
                struct program p;

                problem.moe.tokens = ceil_div(problem.moe.tokens, 4); /* each is several rows */
                if (!fill_params(k, settings[s], params))
                    continue;
                ck_assert(k->emit(&problem, worlds[w], &test_machine, form, params, &p,
                                  &complaint) == ST_OK);
                mutate_program(k, &problem, &p, board);
                program_fini(&p);
            }
        }
    }
    free(params);
    survivors = report_board(k, form == FORM_FUSED ? "fused" : "unfused", board);
    fflush(stdout);
    ck_assert_uint_eq(survivors, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mutations");
    TCase *tc = tcase_create("verifier");
    SRunner *runner;
    int failed, kernel_count = 0;

    while (kernels[kernel_count])
        kernel_count++;
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, every_mutation_is_refused, 0, 2 * kernel_count);
    suite_add_tcase(s, tc);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
