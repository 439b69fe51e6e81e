#include <stdio.h>
#include <string.h>

#include "core/calibrate/calibrate.h"
#include "core/cli/args.h"
#include "core/cli/commands.h"
#include "core/log.h"

enum { OUTPUT, OUTPUT_SHORT, RESULTS };

static const struct flag flags[] = {
    [OUTPUT] = {"--output", "FILE", "write the values as a machine file; an existing file is kept"},
    [OUTPUT_SHORT] = {"-o", "FILE", "the same"},
    [RESULTS] = {"--results", "FOLDER", "where calibration.csv and reference/ are (default: results)"},
    {0},
};

static const struct usage usage = {
    .line = "calibrate MACHINE [FILE...] [options]",
    .about = "Fits the constants of a machine file to what was measured on it: plain GEMMs, attention, copies by\n"
             "CTAs, single quantities, NCCL's times; never to fused kernels.  Prints each constant, old and fitted,\n"
             "with its spread, and every row's error before and after.  FILEs are records of the cuda backend's\n"
             "benchmarks (*.jsonl) or tables (*.csv, docs/calibration.md); without any, those that\n"
             "results/calibration.csv lists for the machine, and NCCL's in results/reference.",
    .example = "mkernel calibrate h200-1 -o h200-1-fitted.yaml",
    .flags = flags,
};

struct order {
    struct calibrate_request request;
    const char              *files[CALIBRATE_FILES_MAX];
    const char              *output;
};

static int take_word(struct args *a, struct order *o)
{
    if (!o->request.machine)
        o->request.machine = a->value;
    else if (o->request.file_count == CALIBRATE_FILES_MAX)
        return args_error(a, "more than %d files", CALIBRATE_FILES_MAX);
    else
        o->files[o->request.file_count++] = a->value;
    return -1;
}

/* -1: go on; else the exit code. */
static int read_arguments(int argc, char **argv, struct order *o)
{
    struct args a;

    args_begin(&a, &usage, argc, argv);
    for (int flag; (flag = args_next(&a)) != ARGS_END;) {
        if (flag == ARGS_HELP)
            return 0;
        if (flag == ARGS_BAD)
            return status_exit_code(ST_INPUT);
        if (flag == ARGS_WORD && take_word(&a, o) >= 0)
            return status_exit_code(ST_INPUT);
        if (flag == OUTPUT || flag == OUTPUT_SHORT)
            o->output = a.value;
        if (flag == RESULTS)
            o->request.results = a.value;
    }
    return o->request.machine ? -1 : args_error(&a, "which machine? mkernel %s", usage.line);
}

int cmd_calibrate(int argc, char **argv, const struct registry *r)
{
    struct order o = {.request = {.results = "results"}};
    static struct calibration c;
    int code = read_arguments(argc, argv, &o);

    if (code >= 0)
        return code;
    o.request.files = o.files;
    enum status st = calibrate_run(r, &o.request, &c);
    if (st >= 0) {
        calibrate_print(&c, stdout);
        fflush(stdout);
    }
    if (st >= 0 && calibrate_fitted_count(&c) > CALIBRATE_FITTED_MAX)
        log_warn("%u constants were fitted; so many describe the noise of one machine, too",
                 calibrate_fitted_count(&c));
    if (st >= 0 && o.output)
        st = calibrate_write(&c, o.output);
    if (st >= 0 && o.output)
        log_info("wrote %s: use it as \"machine: %s\" in a scenario", o.output, o.output);
    calibrate_free(&c);
    return status_exit_code(st);
}
