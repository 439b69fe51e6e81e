#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli/args.h"
#include "core/cli/choose_point.h"
#include "core/cli/commands.h"
#include "core/cli/show.h"
#include "core/log.h"
#include "core/parse/option.h"

enum { BACKEND, SET, PROGRAM, POINT, TASKS, DOT };

static const struct flag flags[] = {
    [BACKEND] = {"--backend", "NAME", "resolve for this backend instead of the scenario's"},
    [SET] = {"--set", "KEY=VALUE", "override a key of the scenario; may be repeated"},
    [PROGRAM] = {"--program", "RANK", "print this rank's program instead"},
    [POINT] = {"--point", "INDEX", "of this point (default: the first that has a program)"},
    [TASKS] = {"--tasks", "N", "print N tasks of each queue, or \"all\" (default: 8)"},
    [DOT] = {"--dot", NULL, "print a small program as a Graphviz graph: signals solid, queues dashed"},
    {NULL, NULL, NULL},
};

static const struct usage usage = {
    .line = "show FILE [options]",
    .about = "Prints what a scenario resolves to and how many points that makes, or a rank's program:\n"
             "buffers, flags, crews, queues and tasks with their waits and signals by name.",
    .example = "mkernel show scenarios/quickstart.yaml --program 0",
    .flags = flags,
};

struct request {
    const char  *file, *backend;
    const char **sets;
    uint32_t     set_count;
    bool         program, point, dot;
    uint64_t     rank, point_index, tasks;
};

static const struct option numbers[] = {
    {"--program", OPTION_COUNT, offsetof(struct request, rank), "0", 0, 1e9, NULL, ""},
    {"--point", OPTION_COUNT, offsetof(struct request, point_index), "0", 0, 1e15, NULL, ""},
    {"--tasks", OPTION_COUNT, offsetof(struct request, tasks), "8", 0, 1e15, NULL, ""},
    {0},
};

static int take_number(const struct args *a, int flag, struct request *q)
{
    const struct option *o = option_find(numbers, flags[flag].name);
    char                 why[256];

    q->program |= flag == PROGRAM;
    q->point |= flag == POINT;
    if (flag == TASKS && strcmp(a->value, "all") == 0) {
        q->tasks = SHOW_ALL_TASKS;
        return -1;
    }
    if (option_parse(o, q, a->value, NULL, why, sizeof why) >= 0)
        return -1;
    return args_error(a, "%s %s: %s", o->name, a->value, why);
}

/* -1: go on; else the exit code. */
static int take_flag(const struct args *a, int flag, struct request *q)
{
    switch (flag) {
    case ARGS_HELP: return 0;
    case ARGS_BAD:  return status_exit_code(ST_INPUT);
    case ARGS_WORD:
        if (q->file)
            return args_error(a, "one file at a time, \"%s\" is a second", a->value);
        q->file = a->value;
        return -1;
    case BACKEND: q->backend = a->value; return -1;
    case SET:     q->sets[q->set_count++] = a->value; return -1;
    case DOT:     q->dot = true; return -1;
    default:      return take_number(a, flag, q);
    }
}

static int parse(int argc, char **argv, struct request *q)
{
    struct args a;
    int         flag, code;

    args_begin(&a, &usage, argc, argv);
    while ((flag = args_next(&a)) != ARGS_END)
        if ((code = take_flag(&a, flag, q)) >= 0)
            return code;
    return q->file ? -1 : args_error(&a, "which scenario? mkernel %s", usage.line);
}

static enum status choose(const struct request *q, const struct scenario *s, const struct point **out)
{
    TRY(choose_point("show", s, q->point, q->point_index, out));
    if (q->rank < world_ranks((*out)->world))
        return ST_OK;
    log_error("show: --program %" PRIu64 ": the ranks are 0..%" PRIu32, q->rank, world_ranks((*out)->world) - 1);
    return ST_INPUT;
}

static enum status show_point(const struct request *q, const struct scenario *s)
{
    const struct point *p;
    struct program      program = {0};
    struct complaint    c = {0};
    enum status         st;

    TRY(choose(q, s, &p));
    st = p->kernel->emit(&p->problem, p->world, p->machine,
                         p->program == PROGRAM_FUSED ? FORM_FUSED : FORM_UNFUSED, p->params, &program,
                         &c);
    if (st < 0) {
        scenario_complain(s, p, &c);
        return st;
    }
    if (q->dot)
        st = show_dot(&program, stdout);
    else
        show_program(&program, (uint32_t)q->rank, q->tasks, stdout);
    program_fini(&program);
    return st;
}

static enum status show(const struct request *q, const struct registry *r)
{
    struct scenario s = {0};
    enum status     st = scenario_load(q->file, r, q->backend, q->sets, q->set_count, &s);

    if (st >= 0 && (q->program || q->dot))
        st = show_point(q, &s);
    else if (st >= 0)
        show_points(&s, stdout);
    scenario_fini(&s);
    return st;
}

int cmd_show(int argc, char **argv, const struct registry *r)
{
    struct request q = {.tasks = 8};
    int            code;

    q.sets = calloc((size_t)argc, sizeof *q.sets);
    assert(q.sets);
    code = parse(argc, argv, &q);
    if (code < 0)
        code = status_exit_code(show(&q, r));
    free(q.sets);
    return code;
}
