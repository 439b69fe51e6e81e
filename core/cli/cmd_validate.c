#include <stdlib.h>
#include <string.h>

#include "core/cli/args.h"
#include "core/cli/commands.h"
#include "core/log.h"
#include "core/run/run.h"
#include "core/shipped.h"
#include "core/validate/validate.h"

struct request {
    const char *results, *scenarios, *output, *bounds;
    bool record;
};

static const struct flag flags[] = {
    {"--results", "FOLDER", "where calibration.csv and reference/ are (default: as shipped)", FLAG_TEXT,
     offsetof(struct request, results), 0, 0},
    {"--scenarios", "FOLDER", "what fused times are simulated by (default: as shipped)", FLAG_TEXT,
     offsetof(struct request, scenarios), 0, 0},
    {"--output", "FOLDER", "for rows.csv, summary.csv, errors.svg; \"none\": none (default: results/validation)",
     FLAG_TEXT, offsetof(struct request, output), 0, 0},
    {"--bounds", "FILE", "largest errors allowed (default: as shipped)", FLAG_TEXT, offsetof(struct request, bounds), 0,
     0},
    {"--record", NULL, "write that file anew from what is reached now", FLAG_SWITCH, offsetof(struct request, record),
     0, 0},
    {0},
};

static const struct usage usage = {
    .name = "validate",
    .takes = "[options]",
    .about = "Replays every measurement there is and prints how far the models are from it: published NCCL\n"
             "times (by constants fitted to other sources), GEMMs, attention, copies and fused kernels on H200s.\n"
             "Exit code 1 when an error is above its recorded bound.",
    .example = "mkernel validate",
    .flags = flags,
};

static enum status replay(const struct request *q, const struct registry *r, struct validation *v)
{
    char reference[1024];

    snprintf(reference, sizeof reference, "%s/reference", q->results);
    TRY(validate_nccl(r, reference, v));
    TRY(validate_measured(r, q->results, v));
    return validate_fused(r, reference, q->scenarios, v);
}

static enum status conclude(const struct request *q, const struct validation *v)
{
    uint32_t count;
    struct validate_group *groups = validate_groups(v, &count);
    enum status st = ST_OK;

    validate_print(groups, count, stdout);
    fflush(stdout);
    if (strcmp(q->output, "none") != 0)
        st = validate_write(v, groups, count, q->output);
    if (st >= 0)
        st = q->record ? validate_record(groups, count, q->bounds) : validate_bounds(groups, count, q->bounds);
    free(groups);
    return st;
}

static enum status validate(const struct request *q, const struct registry *r)
{
    struct validation v = {.rows = NULL};
    enum status st;

    st = replay(q, r, &v);
    if (st >= 0)
        st = conclude(q, &v);
    validation_free(&v);
    return st;
}

int cmd_validate(int argc, char **argv, const struct registry *r)
{
    char results[SHIPPED_PATH_BYTES], scenarios[SHIPPED_PATH_BYTES], bounds[SHIPPED_PATH_BYTES];
    struct request q = {.results = results, .scenarios = scenarios, .output = "results/validation", .bounds = bounds};
    struct args a;
    int code = args_parse(&a, &usage, argc, argv, &q);

    snprintf(results, sizeof results, "%s/results", shipped_folder());
    snprintf(scenarios, sizeof scenarios, "%s/scenarios", shipped_folder());
    snprintf(bounds, sizeof bounds, "%s/results/validation/bounds.csv", shipped_folder());
    if (code < 0)
        code = status_exit_code(validate(&q, r));
    args_fini(&a);
    return code;
}
