#include "core/cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "core/cli/args.h"
#include "core/cli/machine_new.h"
#include "core/log.h"

enum { GPU, GPUS, NICS, GBPS, NODES, NAME, OUTPUT, DETECT };

static const struct flag flags[] = {
    [GPU] = {"--gpu", "MODEL", "GPU model: H100 or H200"},
    [GPUS] = {"--gpus", "N", "GPUs in a node, 1 to 8"},
    [NICS] = {"--nics", "N", "NICs in a node, a multiple of the GPUs; 0: no network"},
    [GBPS] = {"--gbps", "N", "gigabits per second of one NIC"},
    [NODES] = {"--nodes", "N", "nodes that a world may have; default 1024, without NICs 1"},
    [NAME] = {"--name", "NAME", "the machine's name; default from its parts"},
    [OUTPUT] = {"--output", "FILE", "default NAME.yaml; - is standard output"},
    [DETECT] = {"--detect", NULL, "ask nvidia-smi and /sys/class/infiniband for what is not given"},
    {0},
};

static const struct usage usage = {
    .line = "machine new [options]",
    .about = "Writes a commented machine file from what is known of a box, never over another.",
    .example = "mkernel machine new --gpu H200 --gpus 8 --nics 8 --gbps 400 --output mine.yaml",
    .flags = flags,
};

struct order {
    struct machine_request request;
    const char            *output;
    bool                   detect;
};

static int take_count(const struct args *a, int flag, uint64_t *out)
{
    static const struct option row = {.type = OPTION_COUNT};
    char why[300];

    if (option_parse(&row, out, a->value, NULL, why, sizeof why) == ST_OK)
        return 0;
    return args_error(a, "%s: %s", flags[flag].name, why);
}

static int take_text(const struct args *a, int flag, char out[OPTION_TEXT_BYTES])
{
    size_t size = strlen(a->value);

    if (size == 0 || size >= OPTION_TEXT_BYTES)
        return args_error(a, "%s is empty or too long", flags[flag].name);
    memcpy(out, a->value, size + 1);
    return 0;
}

static int take_flag(const struct args *a, int flag, struct order *o)
{
    switch (flag) {
    case GPU:
        return take_text(a, flag, o->request.gpu);
    case GPUS:
        return take_count(a, flag, &o->request.gpus);
    case NICS:
        o->request.nics_known = true;
        return take_count(a, flag, &o->request.nics);
    case GBPS:
        return take_count(a, flag, &o->request.gbps);
    case NODES:
        return take_count(a, flag, &o->request.nodes);
    case NAME:
        return take_text(a, flag, o->request.name);
    case OUTPUT:
        o->output = a->value;
        return 0;
    case DETECT:
        o->detect = true;
        return 0;
    case ARGS_WORD:
        return args_error(a, "unexpected word \"%s\"", a->value);
    default:
        return status_exit_code(ST_INPUT); /* ARGS_BAD: logged */
    }
}

static enum status write_order(struct order *o)
{
    struct machine m;
    char origin[1024], path[OPTION_TEXT_BYTES + 8];

    if (o->detect)
        TRY(machine_detect(&o->request));
    machine_request_name(&o->request);
    TRY(machine_from_request(&o->request, &m, origin, sizeof origin));
    snprintf(path, sizeof path, "%s.yaml", o->request.name);
    if (!o->output)
        o->output = path;
    if (strcmp(o->output, "-") == 0)
        return machine_write(&m, origin, NULL);
    TRY(machine_write(&m, origin, o->output));
    log_info("wrote %s: use it as \"machine: %s\" in a scenario", o->output, o->output);
    return ST_OK;
}

int cmd_machine(int argc, char **argv, const struct registry *r)
{
    struct order order = {.output = NULL};
    struct args a;
    bool has_verb = argc >= 2 && strcmp(argv[1], "new") == 0;
    int flag;

    (void)r;
    args_begin(&a, &usage, argc, argv);
    if (has_verb)
        a.next = 2;
    while ((flag = args_next(&a)) != ARGS_END) {
        int code = flag == ARGS_HELP ? 0 : take_flag(&a, flag, &order);

        if (flag == ARGS_HELP || code != 0)
            return code;
    }
    if (!has_verb)
        return args_error(&a, "lacks its verb: mkernel %s", usage.line);
    return status_exit_code(write_order(&order));
}
