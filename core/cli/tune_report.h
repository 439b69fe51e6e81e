/* What `tune` prints and writes. */
#ifndef CORE_CLI_TUNE_REPORT_H
#define CORE_CLI_TUNE_REPORT_H

#include <stdio.h>

#include "core/tune/tune.h"

#define TUNE_TEXT_BYTES 1024

/* "fused comm_sms=8 chunk=1MiB": every parameter of a program that is not at its default. */
void tune_params_text(const struct point *p, char out[TUNE_TEXT_BYTES]);

/* Value by value of every axis: the time of the fastest program that had it, over the fastest of all. */
void tune_report_landscape(const struct tune *t, const struct tune_problem *p, FILE *f);

/* What to run, how it compares, and the --set options that repeat it. */
void tune_report_answer(const struct tune *t, const struct tune_problem *p, FILE *f);

/* The answer of problem `index` as a scenario; never over an existing file. */
enum status tune_write_scenario(const struct tune *t, uint64_t index, const char *path, int argc, char *const *argv);

#endif
