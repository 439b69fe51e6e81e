/* One part: which of its constants the rows determine, and which of those they change. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/calibrate/calibrate.h"

#define DETERMINED_WITHIN 0.25 /* standard error, relative */
#define SAME_WITHIN 2          /* standard errors */

/* Constants that are still fitted, and which of the part's each is. */
struct choice {
    struct constant constants[FIT_PARAMETERS_MAX];
    uint32_t which[FIT_PARAMETERS_MAX], count;
};

static void drop(struct choice *c, uint32_t i)
{
    c->count--;
    memmove(&c->constants[i], &c->constants[i + 1], (c->count - i) * sizeof(c->constants[0]));
    memmove(&c->which[i], &c->which[i + 1], (c->count - i) * sizeof(c->which[0]));
}

static struct constants_fit fit_of(const struct constants_fit *whole, const struct choice *c)
{
    struct constants_fit f = *whole;

    f.constants = c->constants;
    f.count = c->count;
    return f;
}

static uint32_t worst(const struct fit_spread *s, uint32_t count)
{
    uint32_t at = 0;

    for (uint32_t i = 1; i < count; i++)
        if (s->relative[i] > s->relative[at])
            at = i;
    return at;
}

/* What no row moves with need not be fitted to be seen. */
static void drop_unmoved(const struct constants_fit *whole, const struct machine *m, struct calibrated *values,
                         struct choice *c)
{
    struct constants_fit f = fit_of(whole, c);
    struct fit_spread s;

    constants_fit_spread(&f, m, &s);
    for (uint32_t i = c->count; i-- > 0;)
        if (isinf(s.relative[i])) {
            values[c->which[i]].spread = INFINITY;
            drop(c, i);
        }
}

/* Fits, leaves out the constant that is determined least, and again, until all that are left are determined.  *m gets
 * their values. */
static void fit_determined(const struct constants_fit *whole, struct machine *m, struct calibrated *values,
                           struct choice *c)
{
    while (c->count > 0) {
        struct constants_fit f = fit_of(whole, c);
        struct machine fitted = *m;
        struct fit_spread s;

        constants_fit_run(&f, &fitted);
        constants_fit_spread(&f, &fitted, &s);
        for (uint32_t i = 0; i < c->count; i++) {
            struct calibrated *v = &values[c->which[i]];
            v->spread = s.relative[i];
            v->rows = s.count[i];
            v->fitted = constant_get(&c->constants[i], &fitted);
        }
        uint32_t at = worst(&s, c->count);
        if (s.relative[at] <= DETERMINED_WITHIN) {
            *m = fitted;
            return;
        }
        drop(c, at);
    }
}

static bool is_same(const struct calibrated *v)
{
    return fabs(log(v->fitted / v->before)) <= SAME_WITHIN * v->spread;
}

/* Those that hardly change go back, and the others are fitted once more beside them. */
static void settle(const struct constants_fit *whole, const struct machine *before, struct machine *m,
                   struct calibrated *values, struct choice *c)
{
    uint32_t count = c->count;

    for (uint32_t i = c->count; i-- > 0;) {
        struct calibrated *v = &values[c->which[i]];
        v->state = is_same(v) ? CALIBRATED_KEPT : CALIBRATED_REPLACED;
        if (v->state == CALIBRATED_KEPT) {
            constant_set(&c->constants[i], m, v->before);
            drop(c, i);
        }
    }
    if (c->count > 0 && c->count < count) {
        struct constants_fit f = fit_of(whole, c);
        constants_fit_run(&f, m);
    }
    for (uint32_t i = 0; i < c->count; i++) {
        double value = constant_round(&c->constants[i], constant_get(&c->constants[i], m));
        constant_set(&c->constants[i], m, value);
    }
    for (uint32_t i = 0; i < whole->count; i++)
        if (values[i].state == CALIBRATED_OPEN)
            assert(constant_get(&whole->constants[i], m) == constant_get(&whole->constants[i], before));
}

void calibrate_fit(struct calibration *c, const struct constants_fit *fit, bool direct)
{
    struct calibrated *values = c->values + c->value_count;
    const struct machine before = c->machine;
    struct choice choice = {.count = fit->count};

    assert(fit->row_count > 0 && c->value_count + fit->count <= sizeof c->values / sizeof c->values[0]);
    for (uint32_t i = 0; i < fit->count; i++) {
        double value = constant_get(&fit->constants[i], &before);
        values[i] = (struct calibrated){.constant = fit->constants[i],
                                        .state = CALIBRATED_OPEN,
                                        .direct = direct,
                                        .before = value,
                                        .fitted = value};
        choice.constants[i] = fit->constants[i];
        choice.which[i] = i;
    }
    drop_unmoved(fit, &before, values, &choice);
    fit_determined(fit, &c->machine, values, &choice);
    settle(fit, &before, &c->machine, values, &choice);
    for (uint32_t i = 0; i < fit->count; i++)
        values[i].after = constant_get(&fit->constants[i], &c->machine);
    c->value_count += fit->count;
}
