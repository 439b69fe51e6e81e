/* Predictions against everything that was measured: published NCCL times, plain GEMMs, attention, copies
 * over NVLink, fused kernels.  The models are reached through the contracts of backends, so nothing here knows one.
 *
 * Held out.  NCCL's constants are fitted to sources of published rows (a source: one author).  The
 * rows of a source are predicted by a fit that did not see it; where it is the only source, by the
 * machine file, and that is said. */
#ifndef CORE_VALIDATE_VALIDATE_H
#define CORE_VALIDATE_VALIDATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/scenario/scenario.h"
#include "core/status.h"

#define VALIDATE_TEXT 64

struct validate_row {
    char set[16];             /* "nccl", "gemm", "attention", "copy", "fused" */
    char place[24];           /* "in a node", "across nodes", "two GPUs" */
    char size[24];            /* class: ">= 1 MiB" */
    char what[VALIDATE_TEXT]; /* collective, kernel and variant, way of copying */
    char machine[OPTION_TEXT_BYTES], source[VALIDATE_TEXT];
    uint32_t nodes, gpus_per_node;
    uint64_t bytes;
    double measured_us, predicted_us;
    double bare_us, corrected_us; /* by NCCL's own cost model, without and with correction; 0: none */
    bool held_out;
    char choice[VALIDATE_TEXT];
};

struct validation {
    struct validate_row *rows;
    uint32_t count, capacity;
    uint32_t skipped; /* measured rows that no model is asked for */
};

void validation_add(struct validation *v, const struct validate_row *row);
void validation_free(struct validation *v);

/* Each appends the rows of its tables in `folder` (results/reference).  What is left out is said on
 * stdout with the reason. */
enum status validate_nccl(const struct registry *r, const char *folder, struct validation *v);
/* Plain GEMMs, attention and copies in the files that FOLDER/calibration.csv lists (results). */
enum status validate_measured(const struct registry *r, const char *folder, struct validation *v);
/* Runs the scenarios SCENARIOS/KERNEL/nvlink2.yaml at the shapes that were measured. */
enum status validate_fused(const struct registry *r, const char *folder, const char *scenarios, struct validation *v);

/* Absolute errors of some rows, per cent. */
struct validate_group {
    char by[16]; /* what its rows have in common: "class", "what", "machine", "source" */
    char name[160];
    uint32_t count;
    double median, p90, worst;
    double bare_median; /* of NCCL's own cost model; < 0: none */
    bool held_out;      /* all rows were */
};

/* All groups, in the order in which their first rows come; to be freed. */
struct validate_group *validate_groups(const struct validation *v, uint32_t *count_out);

void validate_print(const struct validate_group *groups, uint32_t count, FILE *f);
/* Replaces FOLDER/rows.csv, summary.csv and, where gnuplot is found, errors.svg, each as a whole. */
enum status validate_write(const struct validation *v, const struct validate_group *groups, uint32_t count,
                           const char *folder);

/* Each class against its bounds in `path` (columns name, median, p90; per cent).  ST_WRONG, with a
 * line for each on stderr, where an error is above its bound, and where a bound has no class. */
enum status validate_bounds(const struct validate_group *groups, uint32_t count, const char *path);
/* Writes that file anew: what was reached and a tenth more. */
enum status validate_record(const struct validate_group *groups, uint32_t count, const char *path);

#endif
