/* NCCL's constants, fitted to rows of published times.  Machines of one kind of node ("hopper") share the constants
 * inside a node, those of one kind of network ("cx7") those between nodes; the former are fitted to rows of one node
 * and then held, the latter to rows of several.  Each source weighs the same however many rows it has. */
#ifndef CORE_CALIBRATE_NCCL_FIT_H
#define CORE_CALIBRATE_NCCL_FIT_H

#include "core/calibrate/constants.h"
#include "core/measured/nccl_rows.h"

/* A fit of one kind: which constants, and the rows they are fitted to. */
struct nccl_fit {
    const struct nccl_rows *all;
    char family[VALIDATE_TEXT]; /* kind of node, or, across nodes, of network */
    bool across;
    char without[VALIDATE_TEXT]; /* the source that is left out; "": none */
    struct machine machine;      /* the result: a machine of the kind with its constants */
    struct constant constants[FIT_PARAMETERS_MAX];
    uint32_t constant_count;
    const struct nccl_row **rows;
    double *weights;
    uint32_t row_count; /* 0: there was nothing to fit to */
};

/* All fits made so far. */
struct nccl_fits {
    const struct nccl_rows *rows;
    struct nccl_fit **fits;
    uint32_t count;
};

void nccl_fits_free(struct nccl_fits *f); /* safe on a zeroed one */

/* The fit that serves rows like `like`, `without` a source ("": with all). */
const struct nccl_fit *nccl_fit_of(struct nccl_fits *f, const struct nccl_row *like, const char *without);

/* *m with the constants of a fit. */
void nccl_fit_take(const struct nccl_fit *fit, struct machine *m);

/* The fit as core/calibrate/constants.h has it, for its spread. */
struct constants_fit nccl_fit_constants(const struct nccl_fit *fit);

#endif
