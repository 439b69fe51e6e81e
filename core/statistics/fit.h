/* Fits a few positive parameters to measurements by least squares, robustly: residuals beyond a
 * few per cent weigh less, so that one bad series does not bend all. */
#ifndef CORE_STATISTICS_FIT_H
#define CORE_STATISTICS_FIT_H

#include <stdint.h>

#define FIT_PARAMETERS_MAX 16

/* Writes `count` residuals for `parameters`: log(model / measured). */
typedef void fit_fn(void *arg, const double *parameters, double *residuals_out);

struct fit {
    fit_fn *fn;
    void *arg;
    uint32_t parameter_count, residual_count;
    uint32_t rounds; /* of Levenberg and Marquardt's method, at most */
    double knee;     /* residuals beyond it weigh less */
    double prior;    /* pull towards the start, as a residual for each factor of e */
};

/* Improves `parameters` in place and returns what is left: the mean of the weighed squares.  They
 * stay positive: steps are taken in their logarithm. */
double fit_run(const struct fit *f, double *parameters);

#define FIT_NOISE 0.01 /* no measurement repeats itself better */

/* How well the residuals determine each parameter. */
struct fit_spread {
    double relative[FIT_PARAMETERS_MAX]; /* standard error of its logarithm; INFINITY: nothing moves with it */
    uint32_t count[FIT_PARAMETERS_MAX];  /* residuals that move by a twentieth or more of what it moves */
};

void fit_spread(const struct fit *f, const double *parameters, struct fit_spread *out);

#endif
