#include "core/statistics/fit.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define STEP 0.02 /* of a parameter, for its slope */
#define GAIN 1e-5 /* a round that lowers the sum by less is the last */

struct state {
    const struct fit *fit;
    double start[FIT_PARAMETERS_MAX]; /* logarithms */
    double *residuals, *other;        /* residual_count each */
    double *slopes;                   /* parameter * residual_count + residual */
};

/* Huber's loss and weight. */
static double loss_of(double r, double knee)
{
    double a = fabs(r);

    return a <= knee ? a * a : 2 * knee * a - knee * knee;
}

static double weight_of(double r, double knee)
{
    double a = fabs(r);

    return a <= knee ? 1 : knee / a;
}

static void residuals_at(struct state *s, const double *logs, double *out)
{
    double parameters[FIT_PARAMETERS_MAX];

    for (uint32_t i = 0; i < s->fit->parameter_count; i++)
        parameters[i] = exp(logs[i]);
    s->fit->fn(s->fit->arg, parameters, out);
}

static double pull(const struct state *s, const double *logs, uint32_t i)
{
    return s->fit->prior * (logs[i] - s->start[i]);
}

static double total(const struct state *s, const double *logs, const double *residuals)
{
    double sum = 0;

    for (uint32_t i = 0; i < s->fit->residual_count; i++)
        sum += loss_of(residuals[i], s->fit->knee);
    for (uint32_t i = 0; i < s->fit->parameter_count; i++)
        sum += pull(s, logs, i) * pull(s, logs, i);
    return sum;
}

static void find_slopes(struct state *s, const double *logs)
{
    uint32_t n = s->fit->residual_count;
    double moved[FIT_PARAMETERS_MAX];

    for (uint32_t p = 0; p < s->fit->parameter_count; p++) {
        memcpy(moved, logs, sizeof moved);
        moved[p] += STEP;
        residuals_at(s, moved, s->other);
        for (uint32_t i = 0; i < n; i++)
            s->slopes[p * n + i] = (s->other[i] - s->residuals[i]) / STEP;
    }
}

/* Solves a x = b for a symmetric positive matrix of `n` rows, by elimination with pivots. */
static void solve(double a[FIT_PARAMETERS_MAX][FIT_PARAMETERS_MAX + 1], uint32_t n, double *x)
{
    for (uint32_t k = 0; k < n; k++) {
        uint32_t pivot = k;
        for (uint32_t r = k + 1; r < n; r++)
            if (fabs(a[r][k]) > fabs(a[pivot][k]))
                pivot = r;
        for (uint32_t c = 0; c <= n; c++) {
            double t = a[k][c];
            a[k][c] = a[pivot][c];
            a[pivot][c] = t;
        }
        for (uint32_t r = k + 1; r < n; r++) {
            double f = a[k][k] != 0 ? a[r][k] / a[k][k] : 0;
            for (uint32_t c = k; c <= n; c++)
                a[r][c] -= f * a[k][c];
        }
    }
    for (uint32_t k = n; k-- > 0;) {
        double sum = a[k][n];
        for (uint32_t c = k + 1; c < n; c++)
            sum -= a[k][c] * x[c];
        x[k] = a[k][k] != 0 ? sum / a[k][k] : 0;
    }
}

/* The damped step from the weighed normal equations. */
static void find_step(const struct state *s, const double *logs, double damping, double *step_out)
{
    uint32_t n = s->fit->residual_count, count = s->fit->parameter_count;
    double a[FIT_PARAMETERS_MAX][FIT_PARAMETERS_MAX + 1] = {{0}};

    for (uint32_t p = 0; p < count; p++) {
        for (uint32_t i = 0; i < n; i++) {
            double w = weight_of(s->residuals[i], s->fit->knee);
            for (uint32_t q = 0; q < count; q++)
                a[p][q] += w * s->slopes[p * n + i] * s->slopes[q * n + i];
            a[p][count] -= w * s->slopes[p * n + i] * s->residuals[i];
        }
        a[p][count] -= s->fit->prior * pull(s, logs, p);
        a[p][p] += s->fit->prior * s->fit->prior;
        a[p][p] *= 1 + damping;
        a[p][p] += 1e-9;
    }
    solve(a, count, step_out);
}

/* False: nothing is gained any more. */
static bool fit_round(struct state *s, double *logs, double *damping)
{
    double step[FIT_PARAMETERS_MAX], next[FIT_PARAMETERS_MAX];
    double before = total(s, logs, s->residuals);

    find_slopes(s, logs);
    for (uint32_t tries = 0; tries < 5; tries++) {
        find_step(s, logs, *damping, step);
        for (uint32_t i = 0; i < s->fit->parameter_count; i++)
            next[i] = logs[i] + fmax(-0.5, fmin(0.5, step[i]));
        residuals_at(s, next, s->other);
        double after = total(s, next, s->other);
        if (after < before) {
            memcpy(logs, next, s->fit->parameter_count * sizeof(logs[0]));
            memcpy(s->residuals, s->other, s->fit->residual_count * sizeof(s->other[0]));
            *damping /= 3;
            return after < before * (1 - GAIN);
        }
        *damping *= 4;
    }
    return false;
}

static void state_open(struct state *s, const struct fit *f, const double *parameters, double *logs)
{
    uint32_t n = f->residual_count;

    assert(f->parameter_count > 0 && f->parameter_count <= FIT_PARAMETERS_MAX && n > 0);
    s->fit = f;
    s->residuals = calloc(n, sizeof(double));
    s->other = calloc(n, sizeof(double));
    s->slopes = calloc((size_t)n * f->parameter_count, sizeof(double));
    assert(s->residuals != NULL && s->other != NULL && s->slopes != NULL);
    for (uint32_t i = 0; i < f->parameter_count; i++)
        s->start[i] = logs[i] = log(parameters[i]);
    residuals_at(s, logs, s->residuals);
}

static void state_close(struct state *s)
{
    free(s->residuals);
    free(s->other);
    free(s->slopes);
}

double fit_run(const struct fit *f, double *parameters)
{
    struct state s;
    double logs[FIT_PARAMETERS_MAX], damping = 0.01;

    state_open(&s, f, parameters, logs);
    for (uint32_t round = 0; round < f->rounds && fit_round(&s, logs, &damping); round++)
        ;
    for (uint32_t i = 0; i < f->parameter_count; i++)
        parameters[i] = exp(logs[i]);
    double left = total(&s, logs, s.residuals) / f->residual_count;
    state_close(&s);
    return left;
}

/* ---- how far to trust it ---- */

/* Mean square of what is left, for as many residuals as parameters do not use up. */
static double variance(const struct state *s)
{
    uint32_t n = s->fit->residual_count, used = s->fit->parameter_count;
    double sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += loss_of(s->residuals[i], s->fit->knee);
    return fmax(n > used ? sum / (n - used) : 0, FIT_NOISE * FIT_NOISE);
}

static double slopes_product(const struct state *s, uint32_t p, uint32_t q)
{
    uint32_t n = s->fit->residual_count;
    double sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += s->slopes[p * n + i] * s->slopes[q * n + i];
    return sum;
}

/* Row `p` of the inverse of the slopes' products, of which the element on the diagonal is wanted. */
static double inverse_diagonal(const struct state *s, uint32_t p)
{
    uint32_t count = s->fit->parameter_count;
    double a[FIT_PARAMETERS_MAX][FIT_PARAMETERS_MAX + 1] = {{0}}, x[FIT_PARAMETERS_MAX];

    for (uint32_t r = 0; r < count; r++) {
        for (uint32_t c = 0; c < count; c++)
            a[r][c] = slopes_product(s, r, c);
        a[r][r] = a[r][r] * (1 + 1e-9) + 1e-12; /* what nothing moves with must not spoil the others */
        a[r][count] = r == p ? 1 : 0;
    }
    solve(a, count, x);
    return x[p];
}

static uint32_t count_moved(const struct state *s, uint32_t p)
{
    uint32_t n = s->fit->residual_count, moved = 0;

    for (uint32_t i = 0; i < n; i++)
        moved += fabs(s->slopes[p * n + i]) >= 0.05;
    return moved;
}

void fit_spread(const struct fit *f, const double *parameters, struct fit_spread *out)
{
    struct state s;
    double logs[FIT_PARAMETERS_MAX], scale;

    state_open(&s, f, parameters, logs);
    find_slopes(&s, logs);
    scale = variance(&s);
    for (uint32_t p = 0; p < f->parameter_count; p++) {
        bool moves = slopes_product(&s, p, p) > 1e-9;
        out->count[p] = count_moved(&s, p);
        out->relative[p] = moves ? sqrt(fabs(inverse_diagonal(&s, p)) * scale) : INFINITY;
    }
    state_close(&s);
}
