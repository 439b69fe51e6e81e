/* Constants of a machine file, fitted to rows of measurements that a model predicts from them. */
#ifndef CORE_CALIBRATE_CONSTANTS_H
#define CORE_CALIBRATE_CONSTANTS_H

#include "core/statistics/fit.h"
#include "core/machine/machine.h"

/* A time, a rate or a ratio of a machine. */
struct constant {
    char name[OPTION_TEXT_BYTES]; /* as machine files write it: "copy.push_rate", "gemm.steps.0.82ms" */
    enum option_type type;        /* OPTION_TIME, OPTION_RATE or OPTION_NUMBER */
    size_t offset;                /* in struct machine */
    double guess;                 /* where its fit starts, ps, bytes/s or a ratio; 0: at the machine's value */
};

/* By the key's name, which must exist. */
struct constant constant_of_key(const char *key, double guess);
/* Row `index` of gemm.steps. */
struct constant constant_of_step(const struct machine *m, uint32_t index);

double constant_get(const struct constant *c, const struct machine *m);
void constant_set(const struct constant *c, struct machine *m, double value);
/* "0.739us", "37.5GB/s": four digits, as machine files are written by hand.  Returns `out`. */
const char *constant_print(const struct constant *c, double value, char *out, size_t out_bytes);
/* To those four digits. */
double constant_round(const struct constant *c, double value);

struct constants_fit {
    const struct constant *constants;
    uint32_t count; /* at most FIT_PARAMETERS_MAX */
    /* The row's time or rate on a machine, over what was measured. */
    double (*ratio)(void *arg, uint32_t row, const struct machine *m);
    void *arg;
    uint32_t row_count;
    const double *weights; /* of rows; NULL: all the same */
    uint32_t rounds;
    double knee, prior; /* as in core/statistics/fit.h */
};

/* Fits the constants in *m.  There must be rows. */
void constants_fit_run(const struct constants_fit *f, struct machine *m);
/* What the rows say of the constants around those of *m. */
void constants_fit_spread(const struct constants_fit *f, const struct machine *m, struct fit_spread *out);

#endif
