#include "core/cli/commands.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli/args.h"
#include "core/cli/export.h"
#include "core/parse/option.h"

enum { OUTPUT, WORLD, SET, POINT };

static const struct flag flags[] = {
    [OUTPUT] = {"--output", "FILE", "where to; an existing file is kept (platform: default standard output)"},
    [WORLD] = {"--world", "NODESxGPUS", "platform: default two nodes, or one without a network"},
    [SET] = {"--set", "KEY=VALUE", "goal: override a key of the scenario; may be repeated"},
    [POINT] = {"--point", "INDEX", "goal: of this point (default: the first that has a program)"},
    {NULL, NULL, NULL},
};

static const struct usage usage = {
    .line = "export platform MACHINE | export goal SCENARIO --output FILE [options]",
    .about = "platform: a machine as SimGrid platform XML.  goal: simulates one point and writes what its workers did\n"
             "as a GOAL schedule, which LogGOPSim, ATLAHS and others replay (docs/export.md).\n"
             "Graphviz of a small program: mkernel show FILE --dot.",
    .example = "mkernel export platform hgx-h200-cx7 --world 2x8 --output hgx.xml",
    .flags = flags,
};

struct order {
    const char  *words[2], *output;
    int          word_count, set_count;
    const char **sets;
    struct world world;
    bool         has_point;
    uint64_t     point;
};

static int take_world(const struct args *a, struct order *o)
{
    int end = 0;

    if (sscanf(a->value, "%5ux%4u%n", &o->world.nodes, &o->world.gpus_per_node, &end) != 2 || a->value[end] ||
        o->world.nodes == 0 || o->world.gpus_per_node == 0)
        return args_error(a, "--world %s: expected NODESxGPUS, for example 2x8", a->value);
    return 0;
}

static int take_point(const struct args *a, struct order *o)
{
    static const struct option row = {.name = "--point", .type = OPTION_COUNT, .max = 1e15};
    char why[300];

    o->has_point = true;
    if (option_parse(&row, &o->point, a->value, NULL, why, sizeof why) == ST_OK)
        return 0;
    return args_error(a, "--point %s: %s", a->value, why);
}

static int take_flag(const struct args *a, int flag, struct order *o)
{
    switch (flag) {
    case OUTPUT: o->output = a->value; return 0;
    case WORLD:  return take_world(a, o);
    case SET:    o->sets[o->set_count++] = a->value; return 0;
    case POINT:  return take_point(a, o);
    case ARGS_WORD:
        if (o->word_count == 2)
            return args_error(a, "unexpected word \"%s\"", a->value);
        o->words[o->word_count++] = a->value;
        return 0;
    default:
        return status_exit_code(ST_INPUT); /* ARGS_BAD: logged */
    }
}

static int run(const struct args *a, const struct order *o, const struct registry *r)
{
    const char *what = o->word_count > 0 ? o->words[0] : "";

    if (strcmp(what, "platform") == 0 && o->word_count == 2)
        return status_exit_code(export_platform(&(struct export_platform){
            .machine = o->words[1], .world = o->world, .output = o->output}));
    if (strcmp(what, "goal") == 0 && o->word_count == 2 && o->output)
        return status_exit_code(export_goal(&(struct export_goal){
            .scenario = o->words[1], .sets = o->sets, .set_count = (uint32_t)o->set_count,
            .has_point = o->has_point, .point = o->point, .output = o->output, .registry = r}));
    if (strcmp(what, "goal") == 0 && o->word_count == 2)
        return args_error(a, "where to? --output FILE");
    if (strcmp(what, "platform") == 0 || strcmp(what, "goal") == 0)
        return args_error(a, "of which %s? mkernel %s", what[0] == 'p' ? "machine" : "scenario", usage.line);
    return args_error(a, "expected platform or goal%s%s%s: mkernel %s", *what ? ", found \"" : "", what,
                      *what ? "\"" : "", usage.line);
}

static int parse_and_run(int argc, char **argv, struct order *o, const struct registry *r)
{
    struct args a;
    int flag;

    args_begin(&a, &usage, argc, argv);
    while ((flag = args_next(&a)) != ARGS_END) {
        int code = flag == ARGS_HELP ? 0 : take_flag(&a, flag, o);

        if (flag == ARGS_HELP || code != 0)
            return code;
    }
    return run(&a, o, r);
}

int cmd_export(int argc, char **argv, const struct registry *r)
{
    struct order o = {.sets = calloc((size_t)argc, sizeof *o.sets)};
    int code;

    assert(o.sets);
    code = parse_and_run(argc, argv, &o, r);
    free(o.sets);
    return code;
}
