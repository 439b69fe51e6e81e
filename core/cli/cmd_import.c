#include "core/cli/commands.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli/args.h"
#include "core/cli/import.h"
#include "core/parse/option.h"

enum { OUTPUT, NAME, GPU, NODES, COLLECTIVE, MACHINE, WORLD };

static const struct flag flags[] = {
    [OUTPUT] = {"--output", "FILE", "where to; an existing file is kept"},
    [NAME] = {"--name", "NAME", "topology: the machine's name; default from its parts"},
    [GPU] = {"--gpu", "MODEL", "topology: take the costs of an H100 or H200; default by the file's GPU"},
    [NODES] = {"--nodes", "N", "topology: nodes that a world may have; default 1024, without NICs 1"},
    [COLLECTIVE] = {"--collective", "NAME", "nccl-tests: all_gather, ..., where the file does not say"},
    [MACHINE] = {"--machine", "NAME", "nccl-tests: name of the machine in the results; default the GPU's"},
    [WORLD] = {"--world", "NODESxGPUS", "nccl-tests: where the file has no list of devices"},
    {NULL, NULL, NULL},
};

static const struct usage usage = {
    .line = "import topology FILE.xml [GRAPH.xml] | import nccl-tests FILE [options]",
    .about = "topology: writes a machine file from what NCCL dumps of a node (NCCL_TOPO_DUMP_FILE) and of its\n"
             "graphs (NCCL_GRAPH_DUMP_FILE).  nccl-tests: writes a result file from its text or JSON output,\n"
             "which compare and report take beside simulated ones (docs/import.md).",
    .example = "mkernel import topology topo.xml graph.xml --output mine.yaml",
    .flags = flags,
};

#define WORDS_MAX 3

struct order {
    const char *words[WORDS_MAX];
    size_t      word_count;
    const char *output, *name, *gpu, *collective, *machine;
    uint64_t    nodes, world_nodes, world_gpus;
};

static int take_nodes(const struct args *a, struct order *o)
{
    static const struct option row = {.name = "--nodes", .type = OPTION_COUNT, .min = 1, .max = 65536};
    char why[300];

    if (option_parse(&row, &o->nodes, a->value, NULL, why, sizeof why) == ST_OK)
        return 0;
    return args_error(a, "--nodes: %s", why);
}

static int take_world(const struct args *a, struct order *o)
{
    unsigned nodes, gpus;
    int end = 0;

    if (sscanf(a->value, "%5ux%4u%n", &nodes, &gpus, &end) != 2 || a->value[end] || nodes == 0 || gpus == 0)
        return args_error(a, "--world %s: expected NODESxGPUS, for example 2x8", a->value);
    o->world_nodes = nodes;
    o->world_gpus = gpus;
    return 0;
}

static int take_collective(const struct args *a, struct order *o)
{
    size_t size = strlen(a->value);

    if (size == 0 || size > 24 || strspn(a->value, "abcdefghijklmnopqrstuvwxyz_") != size)
        return args_error(a, "--collective %s: expected a name such as all_gather", a->value);
    o->collective = a->value;
    return 0;
}

static int take_flag(const struct args *a, int flag, struct order *o)
{
    switch (flag) {
    case OUTPUT:     o->output = a->value; return 0;
    case NAME:       o->name = a->value; return 0;
    case GPU:        o->gpu = a->value; return 0;
    case NODES:      return take_nodes(a, o);
    case COLLECTIVE: return take_collective(a, o);
    case MACHINE:    o->machine = a->value; return 0;
    case WORLD:      return take_world(a, o);
    case ARGS_WORD:
        if (o->word_count == WORDS_MAX)
            return args_error(a, "unexpected word \"%s\"", a->value);
        o->words[o->word_count++] = a->value;
        return 0;
    default:
        return status_exit_code(ST_INPUT); /* ARGS_BAD: logged */
    }
}

static int run(const struct args *a, const struct order *o)
{
    const char *what = o->word_count > 0 ? o->words[0] : "";

    if (strcmp(what, "topology") == 0 && o->word_count >= 2)
        return status_exit_code(import_topology(&(struct import_topology){
            .paths = o->words + 1, .path_count = o->word_count - 1, .gpu = o->gpu, .name = o->name,
            .output = o->output, .nodes = o->nodes}));
    if (strcmp(what, "nccl-tests") == 0 && o->word_count == 2)
        return status_exit_code(import_nccl_tests(&(struct import_nccl_tests){
            .path = o->words[1], .collective = o->collective, .machine = o->machine, .output = o->output,
            .nodes = o->world_nodes, .gpus_per_node = o->world_gpus, .argc = a->argc, .argv = a->argv}));
    if (strcmp(what, "topology") == 0 || strcmp(what, "nccl-tests") == 0)
        return args_error(a, "which file? mkernel %s", usage.line);
    return args_error(a, "expected topology or nccl-tests%s%s%s: mkernel %s", *what ? ", found \"" : "", what,
                      *what ? "\"" : "", usage.line);
}

int cmd_import(int argc, char **argv, const struct registry *r)
{
    struct order o = {0};
    struct args a;
    int flag;

    (void)r;
    args_begin(&a, &usage, argc, argv);
    while ((flag = args_next(&a)) != ARGS_END) {
        int code = flag == ARGS_HELP ? 0 : take_flag(&a, flag, &o);

        if (flag == ARGS_HELP || code != 0)
            return code;
    }
    return run(&a, &o);
}
