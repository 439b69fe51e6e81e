/* A result file: written beside its final place, made durable, then given its name.  It appears whole or
 * not at all and never replaces another: a taken name gets ".1", ".2", ... */
#ifndef CORE_RESULTS_RESULT_H
#define CORE_RESULTS_RESULT_H

#include <stdio.h>

#include "core/status.h"

#define RESULT_PATH_BYTES 1024

struct result_file {
    FILE *file; /* NULL: nothing is kept */
    char path[RESULT_PATH_BYTES];
    char temporary[RESULT_PATH_BYTES + 16];
    enum status status; /* the first failure, already logged */
};

/* Creates missing folders and the temporary file. */
enum status result_open(struct result_file *f, const char *path);

/* Appends one record.  Failures are remembered for result_commit(). */
void result_write(struct result_file *f, const char *line);

/* Makes the file durable and gives it its name; path_out (RESULT_PATH_BYTES) says which.  On failure
 * nothing is left behind. */
enum status result_commit(struct result_file *f, char *path_out);

/* Removes what was written; safe on a zeroed file and after commit. */
void result_close(struct result_file *f);

#endif
