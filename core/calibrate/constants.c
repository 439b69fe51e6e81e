#include "core/calibrate/constants.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/parse/units.h"

struct constant constant_of_key(const char *key, double guess)
{
    const struct option *o = option_find(machine_options, key);
    struct constant c = {.guess = guess};

    assert(o && (o->type == OPTION_TIME || o->type == OPTION_RATE || o->type == OPTION_NUMBER));
    snprintf(c.name, sizeof c.name, "%s", key);
    c.type = o->type;
    c.offset = o->offset;
    return c;
}

struct constant constant_of_step(const struct machine *m, uint32_t index)
{
    const struct step_cost *step = &m->gemm.steps[index];
    struct constant c = {.type = OPTION_TIME};
    char duration[32];

    assert(index < m->gemm.step_count);
    units_print(QUANTITY_TIME, step->duration_ps, duration, sizeof duration);
    snprintf(c.name, sizeof c.name, "gemm.steps.%s", duration);
    c.offset = (size_t)((const char *)&step->step_ps - (const char *)m);
    return c;
}

double constant_get(const struct constant *c, const struct machine *m)
{
    const void *at = (const char *)m + c->offset;

    return c->type == OPTION_TIME ? (double)*(const uint64_t *)at : *(const double *)at;
}

void constant_set(const struct constant *c, struct machine *m, double value)
{
    void *at = (char *)m + c->offset;

    if (c->type == OPTION_TIME)
        *(uint64_t *)at = (uint64_t)(value + 0.5);
    else
        *(double *)at = value;
}

/* Of what machine files write: us, GB/s. */
static double unit_of(const struct constant *c)
{
    return c->type == OPTION_TIME ? 1e6 : c->type == OPTION_RATE ? 1e9 : 1;
}

const char *constant_print(const struct constant *c, double value, char *out, size_t out_bytes)
{
    const char *unit = c->type == OPTION_TIME ? "us" : c->type == OPTION_RATE ? "GB/s" : "";

    snprintf(out, out_bytes, "%.4g%s", value / unit_of(c), unit);
    return out;
}

double constant_round(const struct constant *c, double value)
{
    char text[40];

    snprintf(text, sizeof text, "%.4g", value / unit_of(c));
    return strtod(text, NULL) * unit_of(c);
}

/* ---- fit ---- */

struct fitting {
    const struct constants_fit *fit;
    struct machine machine; /* what is not fitted */
};

static void residuals(void *arg, const double *parameters, double *residuals_out)
{
    struct fitting *s = arg;
    const struct constants_fit *f = s->fit;

    for (uint32_t i = 0; i < f->count; i++)
        constant_set(&f->constants[i], &s->machine, parameters[i]);
    for (uint32_t i = 0; i < f->row_count; i++)
        residuals_out[i] = (f->weights ? f->weights[i] : 1) * log(f->ratio(f->arg, i, &s->machine));
}

static struct fit begin(const struct constants_fit *f, struct fitting *s)
{
    return (struct fit){.fn = residuals,
                        .arg = s,
                        .parameter_count = f->count,
                        .residual_count = f->row_count,
                        .rounds = f->rounds,
                        .knee = f->knee,
                        .prior = f->prior};
}

void constants_fit_run(const struct constants_fit *f, struct machine *m)
{
    struct fitting s = {.fit = f, .machine = *m};
    struct fit fit = begin(f, &s);
    double parameters[FIT_PARAMETERS_MAX];

    for (uint32_t i = 0; i < f->count; i++)
        parameters[i] = f->constants[i].guess > 0 ? f->constants[i].guess : constant_get(&f->constants[i], m);
    fit_run(&fit, parameters);
    for (uint32_t i = 0; i < f->count; i++)
        constant_set(&f->constants[i], m, parameters[i]);
}

void constants_fit_spread(const struct constants_fit *f, const struct machine *m, struct fit_spread *out)
{
    struct fitting s = {.fit = f, .machine = *m};
    struct fit fit = begin(f, &s);
    double parameters[FIT_PARAMETERS_MAX];

    for (uint32_t i = 0; i < f->count; i++)
        parameters[i] = constant_get(&f->constants[i], m);
    fit_spread(&fit, parameters, out);
}
