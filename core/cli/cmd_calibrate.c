#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/calibrate/calibrate.h"
#include "core/cli/args.h"
#include "core/cli/commands.h"
#include "core/log.h"
#include "core/shipped.h"

struct order {
    struct calibrate_request request;
    const char *output;
};

static const struct flag flags[] = {
    {"--output", "FILE", "write the values as a machine file; an existing file is kept", FLAG_TEXT,
     offsetof(struct order, output), 0, 0},
    {"-o", "FILE", "the same", FLAG_TEXT, offsetof(struct order, output), 0, 0},
    {"--results", "FOLDER", "where calibration.csv and reference/ are (default: as shipped)", FLAG_TEXT,
     offsetof(struct order, request.results), 0, 0},
    {0},
};

static const struct usage usage = {
    .name = "calibrate",
    .takes = "MACHINE [FILE...] [options]",
    .about = "Fits the constants of a machine file to what was measured on it: plain GEMMs, attention, copies by\n"
             "CTAs, single quantities, NCCL's times; never to fused kernels.  Prints each constant, old and fitted,\n"
             "with its spread, and every row's error before and after.  FILEs are records of the cuda backend's\n"
             "benchmarks (*.jsonl) or tables (*.csv, docs/calibration.md); without any, those that\n"
             "results/calibration.csv lists for the machine, and NCCL's in results/reference.",
    .example = "mkernel calibrate h200-1 -o h200-1-fitted.yaml",
    .flags = flags,
    .words = "machine",
    .words_min = 1,
    .words_max = 1 + CALIBRATE_FILES_MAX,
};

static enum status calibrate(const struct order *o, const struct registry *r)
{
    static struct calibration c;
    enum status st = calibrate_run(r, &o->request, &c);

    if (st >= 0) {
        calibrate_print(&c, stdout);
        fflush(stdout);
    }
    if (st >= 0 && calibrate_fitted_count(&c) > CALIBRATE_FITTED_MAX)
        log_warn("%u constants were fitted; so many describe the noise of one machine, too",
                 calibrate_fitted_count(&c));
    if (st >= 0 && o->output)
        st = calibrate_write(&c, o->output);
    if (st >= 0 && o->output)
        log_info("wrote %s: use it as \"machine: %s\" in a scenario", o->output, o->output);
    calibrate_free(&c);
    return st;
}

int cmd_calibrate(int argc, char **argv, const struct registry *r)
{
    char shipped[SHIPPED_PATH_BYTES];
    struct order o = {.request = {.results = shipped}};
    struct args a;
    int code = args_parse(&a, &usage, argc, argv, &o);

    snprintf(shipped, sizeof shipped, "%s/results", shipped_folder());
    if (code < 0 && o.output && strcmp(o.output, "-") == 0)
        code = args_error(&a, "--output -: the tables go to standard output; expected the name of a file");
    if (code < 0) {
        o.request.machine = a.words[0];
        o.request.files = a.words + 1;
        o.request.file_count = a.word_count - 1;
        code = status_exit_code(calibrate(&o, r));
    }
    args_fini(&a);
    return code;
}
