/* What `run` prints: the table, the CSV and the sentences at the end. */
#ifndef CORE_CLI_REPORT_H
#define CORE_CLI_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "core/cli/table.h"
#include "core/results/compare.h"
#include "core/results/published.h"
#include "core/run/run.h"

#define REPORT_PARAMS_BYTES 512
#define REPORT_KINDS_MAX 64

/* Which parameters are worth a place in the table: those that any point of a kernel and program sets away
 * from their default. */
struct report_params {
    struct {
        const struct kernel *kernel;
        enum program_choice program;
        uint64_t shown; /* bit i: row i of the kernel's options */
    } kinds[REPORT_KINDS_MAX];
    uint32_t kind_count;
};

/* A table's columns with the family's keys behind the first, and their cells of a row. */
void report_columns(const struct column *columns, const struct problem_family *family,
                    struct column out[TABLE_COLUMNS_MAX]);
void report_add_problem(struct table *t, const struct problem_family *family, const struct problem *p);

/* Bit i: option i of the program's point differs from its default. */
uint64_t report_params_differing(const struct point *p);

void report_params_find(const struct run_plan *plan, struct report_params *out);

/* "comm_sms=8,chunk=1MiB"; "-" for none. */
void report_params_print(const struct report_params *r, const struct point *p, char out[REPORT_PARAMS_BYTES]);

/* "#" comments and the table, in the manner of nccl-tests. */
void report_table(const struct run_plan *plan, const struct compare *c, bool colour, FILE *f);

/* What was proved, a row a program, and one sentence. */
void report_proofs(const struct run_plan *plan, bool quiet, FILE *f);

/* The problem's keys are columns: scenarios of different families need a header each. */
void report_csv_header(const struct problem_family *family, FILE *f);
void report_csv(const struct run_plan *plan, const struct compare *c, FILE *f);

/* Published times beside those of the run, if the scenario names some; adds them to the total.  f NULL: no table. */
void report_published(const struct run_plan *plan, const struct compare *c, struct published_total *total, FILE *f);

/* One plain sentence a kernel: does fused win, by how much, and why. */
void report_conclusion(const struct run_plan *plan, const struct compare *c, FILE *f);

#endif
