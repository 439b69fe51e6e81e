#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/cli/args.h"
#include "core/cli/choose_point.h"
#include "core/cli/commands.h"
#include "core/cli/show.h"
#include "core/log.h"
#include "core/parse/option.h"

struct request {
    const struct args *args; /* the scenario and its sets */
    const char *backend, *tasks_text;
    bool dot;
    uint64_t rank, point_index, tasks;
};

enum { BACKEND, SET, PROGRAM, POINT, TASKS, DOT };

static const struct flag flags[] = {
    [BACKEND] = {"--backend", "NAME", "resolve for this backend instead of the scenario's", FLAG_TEXT,
                 offsetof(struct request, backend), 0, 0},
    [SET] = FLAG_SET_ROW,
    [PROGRAM] = {"--program", "RANK", "print this rank's program instead", FLAG_COUNT, offsetof(struct request, rank),
                 0, 1e9},
    [POINT] = {"--point", "INDEX", "of this point (default: the first that has a program)", FLAG_COUNT,
               offsetof(struct request, point_index), 0, 1e15},
    [TASKS] = {"--tasks", "N", "print N tasks of each queue, or \"all\" (default: 8)", FLAG_TEXT,
               offsetof(struct request, tasks_text), 0, 0},
    [DOT] = {"--dot", NULL, "print a small program as a Graphviz graph: signals solid, queues dashed", FLAG_SWITCH,
             offsetof(struct request, dot), 0, 0},
    {0},
};

static const struct usage usage = {
    .name = "show",
    .takes = "FILE [options]",
    .about = "Prints what a scenario resolves to and how many points that makes, or a rank's program:\n"
             "buffers, flags, crews, queues and tasks with their waits and signals by name.",
    .example = "mkernel show scenarios/quickstart.yaml --program 0",
    .flags = flags,
    .words = "scenario",
    .words_min = 1,
    .words_max = 1,
};

/* -1: go on; else the exit code. */
static int read_tasks(const struct args *a, struct request *q)
{
    static const struct option row = {.name = "--tasks", .type = OPTION_COUNT, .max = 1e15};
    char why[256];

    if (strcmp(q->tasks_text, "all") == 0)
        q->tasks = SHOW_ALL_TASKS;
    else if (option_parse(&row, &q->tasks, q->tasks_text, NULL, why, sizeof why) < 0)
        return args_error(a, "--tasks %s: %s, or \"all\"", q->tasks_text, why);
    return -1;
}

static int parse(struct args *a, int argc, char **argv, struct request *q)
{
    int code = args_parse(a, &usage, argc, argv, q);

    if (code < 0 && args_given(a, PROGRAM) && q->dot)
        return args_error(a, "--dot draws all ranks; expected it without --program");
    if (code < 0 && args_given(a, POINT) && !args_given(a, PROGRAM) && !q->dot)
        return args_error(a, "--point is about a program; expected --program RANK or --dot as well");
    if (code < 0 && args_given(a, TASKS) && !args_given(a, PROGRAM))
        return args_error(a, "--tasks is about a program; expected --program RANK as well");
    return code < 0 ? read_tasks(a, q) : code;
}

static enum status choose(const struct request *q, const struct scenario *s, const struct point **out)
{
    TRY(choose_point("show", s, args_given(q->args, POINT), q->point_index, out));
    if (q->rank < world_ranks((*out)->world))
        return ST_OK;
    log_error("show: --program %" PRIu64 ": the ranks are 0..%" PRIu32, q->rank, world_ranks((*out)->world) - 1);
    return ST_INPUT;
}

static enum status show_point(const struct request *q, const struct scenario *s)
{
    const struct point *p;
    struct program program = {0};
    struct complaint c = {0};
    enum status st;

    TRY(choose(q, s, &p));
    st = p->kernel->emit(&p->problem, p->world, p->machine, p->program == PROGRAM_FUSED ? FORM_FUSED : FORM_UNFUSED,
                         p->params, &program, &c);
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
    enum status st = scenario_load(q->args->words[0], r, q->backend, q->args->sets, q->args->set_count, &s);

    if (st >= 0 && (args_given(q->args, PROGRAM) || q->dot))
        st = show_point(q, &s);
    else if (st >= 0)
        show_points(&s, stdout);
    scenario_fini(&s);
    return st;
}

int cmd_show(int argc, char **argv, const struct registry *r)
{
    struct args a;
    struct request q = {.args = &a, .tasks_text = "8"};
    int code = parse(&a, argc, argv, &q);

    if (code < 0)
        code = status_exit_code(show(&q, r));
    args_fini(&a);
    return code;
}
