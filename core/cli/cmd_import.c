#include "core/cli/commands.h"

#include <stddef.h>
#include <string.h>

#include "core/cli/args.h"
#include "core/cli/import.h"

static const struct flag topology_flags[] = {
    {"--output", "FILE", "default NAME.yaml; - is standard output; an existing file is kept", FLAG_TEXT,
     offsetof(struct import_topology, output), 0, 0},
    {"--name", "NAME", "the machine's name; default from its parts", FLAG_TEXT, offsetof(struct import_topology, name),
     0, 0},
    {"--gpu", "MODEL", "take the costs of an H100 or H200; default by the file's GPU", FLAG_TEXT,
     offsetof(struct import_topology, gpu), 0, 0},
    {"--nodes", "N", "nodes that a world may have; default 1024, without NICs 1", FLAG_COUNT,
     offsetof(struct import_topology, nodes), 1, 65536},
    {0},
};

static const struct flag nccl_tests_flags[] = {
    {"--output", "FILE", "default results/local/NAME-DATE.jsonl; an existing file is kept", FLAG_TEXT,
     offsetof(struct import_nccl_tests, output), 0, 0},
    {"--collective", "NAME", "all_gather, ..., where the file does not say", FLAG_TEXT,
     offsetof(struct import_nccl_tests, collective), 0, 0},
    {"--machine", "NAME", "name of the machine in the results; default the GPU's", FLAG_TEXT,
     offsetof(struct import_nccl_tests, machine), 0, 0},
    {"--world", "NODESxGPUS", "where the file has no list of devices", FLAG_WORLD,
     offsetof(struct import_nccl_tests, world), 0, 0},
    {0},
};

enum { TOPOLOGY, NCCL_TESTS };

static const struct usage usages[] = {
    [TOPOLOGY] =
        {
            .name = "import topology",
            .takes = "FILE.xml [GRAPH.xml] [options]",
            .about = "Writes a machine file from what NCCL dumps of a node (NCCL_TOPO_DUMP_FILE) and of its graphs\n"
                     "(NCCL_GRAPH_DUMP_FILE); docs/import.md says what becomes of what.",
            .example = "mkernel import topology topo.xml graph.xml --output mine.yaml",
            .flags = topology_flags,
            .words = "file",
            .words_min = 1,
            .words_max = 2,
        },
    [NCCL_TESTS] =
        {
            .name = "import nccl-tests",
            .takes = "FILE [options]",
            .about = "Writes a result file from the text or JSON output of nccl-tests, which compare and report take\n"
                     "beside simulated ones (docs/import.md).",
            .example = "mkernel import nccl-tests all_gather.txt --output measured.jsonl",
            .flags = nccl_tests_flags,
            .words = "file",
            .words_min = 1,
            .words_max = 1,
        },
    {0},
};

static int topology(int argc, char **argv)
{
    struct import_topology q = {.paths = NULL};
    struct args a;
    int code = args_parse(&a, &usages[TOPOLOGY], argc, argv, &q);

    if (code < 0) {
        q.paths = a.words;
        q.path_count = a.word_count;
        code = status_exit_code(import_topology(&q));
    }
    args_fini(&a);
    return code;
}

static bool names_a_collective(const char *text)
{
    size_t size = strlen(text);

    return size <= 24 && strspn(text, "abcdefghijklmnopqrstuvwxyz_") == size;
}

static int nccl_tests(int argc, char **argv)
{
    struct import_nccl_tests q = {.argc = argc, .argv = argv};
    struct args a;
    int code = args_parse(&a, &usages[NCCL_TESTS], argc, argv, &q);

    if (code < 0 && q.collective && !names_a_collective(q.collective))
        code = args_error(&a, "--collective %s: expected a name such as all_gather", q.collective);
    if (code < 0) {
        q.path = a.words[0];
        code = status_exit_code(import_nccl_tests(&q));
    }
    args_fini(&a);
    return code;
}

int cmd_import(int argc, char **argv, const struct registry *r)
{
    int code;
    const struct usage *usage = args_choose(usages, argc, argv, &code);

    (void)r;
    if (!usage)
        return code;
    return usage == &usages[TOPOLOGY] ? topology(argc, argv) : nccl_tests(argc, argv);
}
