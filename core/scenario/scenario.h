/* A scenario file: what to run, on which machine, in which variants.  Lists sweep and multiply into
 * points.  docs/scenarios.md describes the format; `mkernel show FILE` prints what a file resolves to. */
#ifndef CORE_SCENARIO_SCENARIO_H
#define CORE_SCENARIO_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/backend.h"
#include "core/kernel.h"
#include "core/machine/machine.h"
#include "core/parse/place.h"
#include "core/problem.h"
#include "core/status.h"

enum program_choice { PROGRAM_FUSED, PROGRAM_UNFUSED, PROGRAM_NCCL, PROGRAM_STREAMS };

/* One run of the sweep, fully resolved. */
struct point {
    const struct kernel *kernel;
    struct problem problem;
    struct world world;
    const struct machine *machine;
    char variant[OPTION_TEXT_BYTES]; /* the label in the file */
    enum program_choice program;
    void *params; /* kernel->params_size bytes, owned by the scenario */
    struct timing timing;
    uint64_t seed;
    struct place variant_place, problem_place, world_place;
};

/* The correctness run before the timed ones: the same programs with real data at a size that threads can
 * compute. */
struct check_plan {
    bool wanted;
    const struct backend *backend;
    struct problem problem;
    uint32_t epochs;
};

struct scenario {
    char path[512];
    char name[OPTION_TEXT_BYTES]; /* the file's name without .yaml */
    const struct backend *backend;
    void *backend_options; /* backend->options_size bytes: what `backend` runs with */
    void *check_options;   /* the check backend's */
    struct machine machine;
    const struct problem_family *family; /* of all its kernels */
    struct check_plan check;
    double threshold; /* 0: none; else exit 3 when the best fused speed-up over nccl is below */
    struct point *points;
    uint64_t point_count;
    struct published *published; /* core/results/published.h; NULL: nothing stands beside */
    struct yaml *source;         /* the file's tree: places point into it */
    char *text;                  /* the file, word for word, as it was read */
};

struct launcher; /* core/run/nodes.h */

/* Which kernels and backends exist: arrays that end with NULL, handed in because core knows none. */
struct registry {
    const struct kernel *const *kernels;
    const struct backend *const *backends;
    const struct launcher *launcher; /* NULL: everything stays in this process */
};

/* `sets` are "key=value" strings from --set, applied over the file ("problem.m=4096",
 * "variants.fused.comm_sms=8", "timing.mode=pipelined").  *out must stay where it is:
 * points refer to its machine. */
enum status scenario_load(const char *path, const struct registry *registry, const char *backend_override,
                          const char *const *sets, uint32_t set_count, struct scenario *out);
/* The same for text that is already in memory; `path` names it in messages. */
enum status scenario_parse(const char *path, const char *text, size_t text_bytes, const struct registry *registry,
                           const char *backend_override, const char *const *sets, uint32_t set_count,
                           struct scenario *out);
void scenario_fini(struct scenario *s); /* safe on a zeroed scenario */

/* Logs "file:line:column: key: text" for what a generator refused about this point. */
void scenario_complain(const struct scenario *s, const struct point *p, const struct complaint *c);

/* The resolved point, defaults included, as key and value in a fixed order: what a record keeps.
 * Kernel parameters are "params.NAME", absent for the programs that have none. */
typedef void scenario_key_fn(void *arg, const char *key, const char *value);
void scenario_point_keys(const struct scenario *s, const struct point *p, scenario_key_fn *fn, void *arg);

/* Help on every key a scenario may hold, those of kernels and backends included. */
void scenario_help(const struct registry *registry, FILE *f);

#endif
