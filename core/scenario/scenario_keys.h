/* The tables behind scenario files: the keys of each section, and how names in them resolve. */
#ifndef CORE_SCENARIO_SCENARIO_KEYS_H
#define CORE_SCENARIO_SCENARIO_KEYS_H

#include <stdint.h>

#include "core/parse/keys.h"
#include "core/scenario/scenario.h"

struct top_keys {
    char machine[OPTION_TEXT_BYTES]; /* for help alone: a path may be longer than a text */
    char backend[OPTION_TEXT_BYTES];
    uint64_t seed;
    double threshold;
};

enum dtype_choice { PROBLEM_BF16 };

struct problem_keys {
    char kernel[OPTION_TEXT_BYTES];
    uint32_t dtype; /* enum dtype_choice */
};

struct world_keys {
    uint64_t nodes, gpus_per_node;
};

enum launch_choice { LAUNCH_INCLUDED, LAUNCH_EXCLUDED };

struct timing_keys {
    uint32_t mode; /* enum timing_mode */
    uint64_t warmup, iterations;
    uint32_t launch; /* enum launch_choice */
};

struct check_keys {
    char backend[OPTION_TEXT_BYTES];
    uint64_t epochs;
};

struct variant_keys {
    uint32_t program; /* enum program_choice */
};

/* Of problem_options and check_options the family's keys stand behind the first row. */
extern const struct option top_options[], problem_options[], world_options[], timing_options[], check_options[],
    variant_options[];

/* The row named `name`, which must exist. */
const struct option *option_row(const struct option *table, const char *name);

/* Sections of the top level, backends' included; fills `names`, which ends with NULL. */
#define SECTIONS_MAX 32
void scenario_sections(const struct registry *registry, const char *names[SECTIONS_MAX]);

/* Both log at `place`, with a guess, when there is none of that name. */
enum status find_kernel(const struct registry *r, const char *name, struct place place, const struct kernel **out);
enum status find_backend(const struct registry *r, const char *name, struct place place, const char *key,
                         const struct backend **out);

#endif
