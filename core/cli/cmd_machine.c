#include "core/cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "core/cli/args.h"
#include "core/cli/machine_new.h"
#include "core/log.h"

struct order {
    struct machine_request request;
    const char *output;
    bool detect;
};

enum { GPU, GPUS, NICS, GBPS, NODES, NAME, OUTPUT, DETECT };

#define REQUEST(member) offsetof(struct order, request.member)

static const struct flag flags[] = {
    [GPU] = {"--gpu", "MODEL", "GPU model: H100 or H200", FLAG_TEXT, REQUEST(gpu), 0, 0},
    [GPUS] = {"--gpus", "N", "GPUs in a node, 1 to 8", FLAG_COUNT, REQUEST(gpus), 0, 0},
    [NICS] = {"--nics", "N", "NICs in a node, a multiple of the GPUs; 0: no network", FLAG_COUNT, REQUEST(nics), 0, 0},
    [GBPS] = {"--gbps", "N", "gigabits per second of one NIC", FLAG_COUNT, REQUEST(gbps), 0, 0},
    [NODES] = {"--nodes", "N", "nodes that a world may have; default 1024, without NICs 1", FLAG_COUNT, REQUEST(nodes),
               0, 0},
    [NAME] = {"--name", "NAME", "the machine's name; default from its parts", FLAG_TEXT, REQUEST(name), 0, 0},
    [OUTPUT] = {"--output", "FILE", "default NAME.yaml; - is standard output", FLAG_TEXT,
                offsetof(struct order, output), 0, 0},
    [DETECT] = {"--detect", NULL, "ask nvidia-smi and /sys/class/infiniband for what is not given", FLAG_SWITCH,
                offsetof(struct order, detect), 0, 0},
    {0},
};

static const struct usage usages[] = {
    {
        .name = "machine new",
        .takes = "[options]",
        .about = "Writes a commented machine file from what is known of a box, never over another.",
        .example = "mkernel machine new --gpu H200 --gpus 8 --nics 8 --gbps 400 --output mine.yaml",
        .flags = flags,
    },
    {0},
};

static enum status write_order(struct order *o)
{
    struct machine m;
    char origin[1024];

    if (o->detect)
        TRY(machine_detect(&o->request));
    TRY(machine_from_request(&o->request, &m, origin, sizeof origin));
    return machine_save(&m, origin, o->output);
}

int cmd_machine(int argc, char **argv, const struct registry *r)
{
    struct order order = {.output = NULL};
    struct args a;
    int code;

    (void)r;
    if (!args_choose(usages, argc, argv, &code))
        return code;
    code = args_parse(&a, usages, argc, argv, &order);
    if (code < 0) {
        order.request.nics_known = args_given(&a, NICS);
        code = status_exit_code(write_order(&order));
    }
    args_fini(&a);
    return code;
}
