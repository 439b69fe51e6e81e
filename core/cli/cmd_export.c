#include "core/cli/commands.h"

#include <stddef.h>

#include "core/cli/args.h"
#include "core/cli/export.h"

enum { GOAL_OUTPUT, GOAL_POINT };

static const struct flag platform_flags[] = {
    {"--world", "NODESxGPUS", "default: two nodes, or one without a network", FLAG_WORLD,
     offsetof(struct export_platform, world), 0, 0},
    {"--output", "FILE", "where to (default: standard output); an existing file is kept", FLAG_TEXT,
     offsetof(struct export_platform, output), 0, 0},
    {0},
};

static const struct flag goal_flags[] = {
    [GOAL_OUTPUT] = {"--output", "FILE", "where to; required.  An existing file is kept", FLAG_TEXT,
                     offsetof(struct export_goal, output), 0, 0},
    [GOAL_POINT] = {"--point", "INDEX", "of this point (default: the first that has a program)", FLAG_COUNT,
                    offsetof(struct export_goal, point), 0, 1e15},
    FLAG_SET_ROW,
    {0},
};

enum { PLATFORM, GOAL };

static const struct usage usages[] = {
    [PLATFORM] =
        {
            .name = "export platform",
            .takes = "MACHINE [options]",
            .about = "Writes a machine as SimGrid platform XML (docs/export.md).",
            .example = "mkernel export platform hgx-h200-cx7 --world 2x8 --output hgx.xml",
            .flags = platform_flags,
            .words = "machine",
            .words_min = 1,
            .words_max = 1,
        },
    [GOAL] =
        {
            .name = "export goal",
            .takes = "SCENARIO --output FILE [options]",
            .about =
                "Simulates one point and writes what its workers did as a GOAL schedule, which LogGOPSim, ATLAHS and\n"
                "others replay (docs/export.md).  Graphviz of a small program: mkernel show FILE --dot.",
            .example = "mkernel export goal scenarios/quickstart.yaml --point 0 --output ag.goal",
            .flags = goal_flags,
            .words = "scenario",
            .words_min = 1,
            .words_max = 1,
        },
    {0},
};

static int platform(int argc, char **argv)
{
    struct export_platform q = {.machine = NULL};
    struct args a;
    int code = args_parse(&a, &usages[PLATFORM], argc, argv, &q);

    if (code < 0) {
        q.machine = a.words[0];
        code = status_exit_code(export_platform(&q));
    }
    args_fini(&a);
    return code;
}

static int goal(int argc, char **argv, const struct registry *r)
{
    struct export_goal q = {.registry = r};
    struct args a;
    int code = args_parse(&a, &usages[GOAL], argc, argv, &q);

    if (code < 0 && !q.output)
        code = args_error(&a, "where to? --output FILE");
    if (code < 0) {
        q.scenario = a.words[0];
        q.sets = a.sets;
        q.set_count = a.set_count;
        q.has_point = args_given(&a, GOAL_POINT);
        code = status_exit_code(export_goal(&q));
    }
    args_fini(&a);
    return code;
}

int cmd_export(int argc, char **argv, const struct registry *r)
{
    int code;
    const struct usage *usage = args_choose(usages, argc, argv, &code);

    if (!usage)
        return code;
    return usage == &usages[PLATFORM] ? platform(argc, argv) : goal(argc, argv, r);
}
