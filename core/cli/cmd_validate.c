#include <stdlib.h>
#include <string.h>

#include "core/cli/args.h"
#include "core/cli/commands.h"
#include "core/log.h"
#include "core/run/run.h"
#include "core/validate/validate.h"

enum { FLAG_RESULTS, FLAG_SCENARIOS, FLAG_OUTPUT, FLAG_BOUNDS, FLAG_RECORD };

static const struct flag flags[] = {
    [FLAG_RESULTS] = {"--results", "FOLDER", "where calibration.csv and reference/ are (default: results)"},
    [FLAG_SCENARIOS] = {"--scenarios", "FOLDER", "what fused times are simulated by (default: scenarios)"},
    [FLAG_OUTPUT] = {"--output", "FOLDER", "for rows.csv, summary.csv, errors.svg; \"none\": none (default: "
                                           "results/validation)"},
    [FLAG_BOUNDS] = {"--bounds", "FILE", "largest errors allowed (default: results/validation/bounds.csv)"},
    [FLAG_RECORD] = {"--record", NULL, "write that file anew from what is reached now"},
    {NULL, NULL, NULL},
};

static const struct usage usage = {
    .line = "validate [options]",
    .about = "Replays every measurement there is and prints how far the models are from it: published NCCL\n"
             "times (by constants fitted to other sources), GEMMs, attention, copies and fused kernels on H200s.\n"
             "Exit code 1 when an error is above its recorded bound.",
    .example = "mkernel validate",
    .flags = flags,
};

struct request {
    const char *results, *scenarios, *output, *bounds;
    bool record;
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
        st = q->record ? validate_record(groups, count, q->bounds)
                       : validate_bounds(groups, count, q->bounds);
    free(groups);
    return st;
}

static int read_arguments(int argc, char **argv, struct request *q)
{
    struct args a;

    args_begin(&a, &usage, argc, argv);
    for (int flag; (flag = args_next(&a)) != ARGS_END;) {
        if (flag == ARGS_HELP)
            return 0;
        if (flag == ARGS_BAD)
            return status_exit_code(ST_INPUT);
        if (flag == ARGS_WORD)
            return args_error(&a, "unexpected argument \"%s\"", a.value);
        switch (flag) {
        case FLAG_RESULTS:
            q->results = a.value;
            break;
        case FLAG_SCENARIOS:
            q->scenarios = a.value;
            break;
        case FLAG_OUTPUT:
            q->output = a.value;
            break;
        case FLAG_BOUNDS:
            q->bounds = a.value;
            break;
        case FLAG_RECORD:
            q->record = true;
            break;
        }
    }
    return -1;
}

int cmd_validate(int argc, char **argv, const struct registry *r)
{
    struct request q = {.results = "results",
                        .scenarios = "scenarios",
                        .output = "results/validation",
                        .bounds = "results/validation/bounds.csv"};
    struct validation v = {.rows = NULL};
    int code = read_arguments(argc, argv, &q);

    if (code >= 0)
        return code;
    enum status st = replay(&q, r, &v);
    if (st >= 0)
        st = conclude(&q, &v);
    validation_free(&v);
    return status_exit_code(st);
}
