#include "core/scenario/scenario_keys.h"

#include <assert.h>
#include <string.h>

#include "core/parse/nearest.h"

const struct option top_options[] = {
    {.name = "machine",
     .type = OPTION_TEXT,
     .offset = offsetof(struct top_keys, machine),
     .help = "a machine's name, or the path of its file ending in .yaml"},
    {.name = "backend",
     .type = OPTION_TEXT,
     .offset = offsetof(struct top_keys, backend),
     .initial = "sim",
     .help = "what runs the programs (mkernel list backends)"},
    {.name = "seed",
     .type = OPTION_COUNT,
     .offset = offsetof(struct top_keys, seed),
     .initial = "1",
     .max = 9007199254740991, /* 2^53 - 1: what every reader of JSON keeps exact */
     .help = "of inputs and perturbations; the same seed repeats a run"},
    {.name = "threshold",
     .type = OPTION_NUMBER,
     .offset = offsetof(struct top_keys, threshold),
     .initial = "0",
     .min = 0,
     .max = 1e6,
     .help = "exit code 3 when the best fused speed-up over nccl is below; 0: none"},
    {0},
};

const struct option problem_options[] = {
    {.name = "kernel",
     .type = OPTION_TEXT,
     .offset = offsetof(struct problem_keys, kernel),
     .help = "the fused algorithm (mkernel list kernels)"},
    {.name = "dtype",
     .type = OPTION_CHOICE,
     .offset = offsetof(struct problem_keys, dtype),
     .initial = "bf16",
     .choices = "bf16",
     .help = "element type; sums are f32"},
    {0},
};

const struct option world_options[] = {
    {.name = "nodes",
     .type = OPTION_COUNT,
     .offset = offsetof(struct world_keys, nodes),
     .initial = "1",
     .min = 1,
     .max = 65536,
     .help = "nodes"},
    {.name = "gpus_per_node",
     .type = OPTION_COUNT,
     .offset = offsetof(struct world_keys, gpus_per_node),
     .min = 1,
     .max = 1024,
     .help = "GPUs used in each node"},
    {0},
};

const struct option timing_options[] = {
    {.name = "mode",
     .type = OPTION_CHOICE,
     .offset = offsetof(struct timing_keys, mode),
     .initial = "isolated",
     .choices = "isolated|pipelined",
     .help = "one epoch at a time, ranks aligned; or epochs back to back"},
    {.name = "warmup",
     .type = OPTION_COUNT,
     .offset = offsetof(struct timing_keys, warmup),
     .initial = "2",
     .min = 0,
     .max = 1000,
     .help = "epochs before the first that counts"},
    {.name = "iterations",
     .type = OPTION_COUNT,
     .offset = offsetof(struct timing_keys, iterations),
     .initial = "8",
     .min = 1,
     .max = RESULT_SAMPLES_MAX,
     .help = "epochs that count"},
    {.name = "launch",
     .type = OPTION_CHOICE,
     .offset = offsetof(struct timing_keys, launch),
     .initial = "included",
     .choices = "included|excluded",
     .help = "whether the host's launch cost counts, for every contestant alike"},
    {0},
};

const struct option check_options[] = {
    {.name = "backend",
     .type = OPTION_TEXT,
     .offset = offsetof(struct check_keys, backend),
     .initial = "cpu",
     .help = "what runs the programs with real data"},
    {.name = "epochs",
     .type = OPTION_COUNT,
     .offset = offsetof(struct check_keys, epochs),
     .initial = "3",
     .min = 1,
     .max = 1000,
     .help = "back to back, each with new inputs"},
    {0},
};

const struct option variant_options[] = {
    {.name = "program",
     .type = OPTION_CHOICE,
     .offset = offsetof(struct variant_keys, program),
     .initial = "",
     .choices = "fused|unfused|nccl|streams",
     .help = "which form runs; not needed where the variant's label is one of them"},
    {0},
};

const struct option *option_row(const struct option *table, const char *name)
{
    const struct option *o = option_find(table, name);

    assert(o);
    return o;
}

void scenario_sections(const struct registry *registry, const char *names[SECTIONS_MAX])
{
    static const char *const fixed[] = {"problem", "world", "variants", "timing", "check", "published"};
    size_t count = sizeof fixed / sizeof fixed[0];

    memcpy(names, fixed, sizeof fixed);
    for (size_t i = 0; registry->backends[i] && count < SECTIONS_MAX - 1; i++)
        names[count++] = registry->backends[i]->name;
    names[count] = NULL;
}

/* "no kernel "x"; expected a, b, c; did you mean "b"?" */
static enum status none_of(const char *noun, const char *key, const char *word, const char *const *names,
                           struct place place)
{
    struct nearest near;
    char list[400] = "", guess[100];
    size_t used = 0;

    nearest_begin(&near, word);
    for (size_t i = 0; names[i]; i++) {
        nearest_offer(&near, names[i]);
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", names[i]);
    }
    place_error(&place, "%s: there is no %s \"%.60s\"; expected %s%s", key, noun, word, list,
                nearest_text(&near, guess, sizeof guess));
    return ST_INPUT;
}

enum status find_kernel(const struct registry *r, const char *name, struct place place, const struct kernel **out)
{
    const char *names[64];
    size_t count = 0;

    for (; r->kernels[count] && count < 63; count++) {
        names[count] = r->kernels[count]->name;
        if (strcmp(names[count], name) == 0) {
            *out = r->kernels[count];
            return ST_OK;
        }
    }
    names[count] = NULL;
    return none_of("kernel", "problem.kernel", name, names, place);
}

enum status find_backend(const struct registry *r, const char *name, struct place place, const char *key,
                         const struct backend **out)
{
    const char *names[64];
    size_t count = 0;

    for (; r->backends[count] && count < 63; count++) {
        names[count] = r->backends[count]->name;
        if (strcmp(names[count], name) == 0) {
            *out = r->backends[count];
            return ST_OK;
        }
    }
    names[count] = NULL;
    return none_of("backend", key, name, names, place);
}
