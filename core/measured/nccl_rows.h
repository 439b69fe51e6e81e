/* NCCL times that were published or measured, as far as a machine file describes their hardware.  A table
 * (nccl-sources.csv) says of each hardware text which machine file it is, whose constants it shares, and what is left
 * out and why. */
#ifndef CORE_MEASURED_NCCL_ROWS_H
#define CORE_MEASURED_NCCL_ROWS_H

#include "core/validate/validate.h"

#define NCCL_SOURCES_MAX 128 /* rows of nccl-sources.csv, and so many machines at most */

/* A measurement, in place and out of place taken together. */
struct nccl_row {
    struct validate_row row;
    const struct machine *machine; /* as its file has it */
    char constants[VALIDATE_TEXT]; /* kind of node, whose constants it shares: "hopper" */
    char network[VALIDATE_TEXT];   /* kind of network, across nodes: "cx7" */
    char algorithm[16];            /* that it was forced to; "": NCCL's choice */
    enum collective what;
    double sum_us;
    uint32_t times;
};

struct nccl_rows {
    const struct backend *backend; /* whose models are asked */
    struct machine machines[NCCL_SOURCES_MAX];
    uint32_t machine_count;
    struct nccl_row *rows;
    uint32_t count, capacity, skipped;
};

/* Reads the tables in `folder` (results/reference) and says in `said` (NULL: nowhere) what is left out.
 * Large: to be allocated, zeroed. */
enum status nccl_rows_read(const struct registry *r, const char *folder, FILE *said, struct nccl_rows *out);
void nccl_rows_free(struct nccl_rows *c); /* safe on a zeroed one */

/* The row's time on machine `m`; false: NCCL does not have that algorithm there. */
bool nccl_row_predict(const struct nccl_rows *c, const struct nccl_row *s, const struct machine *m,
                      struct collective_times *out);

/* Both GPUs of a machine of two. */
bool nccl_row_is_pair(const struct nccl_row *s);

#endif
