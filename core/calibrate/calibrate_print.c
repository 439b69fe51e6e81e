/* What a calibration found, for people and as a machine file. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/build.h"
#include "core/calibrate/calibrate.h"
#include "core/file.h"

/* ---- values ---- */

static void print_verdict(const struct calibrated *v, FILE *f)
{
    if (v->state == CALIBRATED_REPLACED)
        fprintf(f, "%s", v->direct ? "replaced (read off)" : "replaced");
    else if (v->state == CALIBRATED_KEPT)
        fprintf(f, "%s", v->direct ? "kept: within two spreads (read off)" : "kept: within two spreads");
    else if (isinf(v->spread))
        fprintf(f, "not determined: no row depends on it; unchanged");
    else
        fprintf(f, "not determined by these rows; unchanged");
}

static void print_value(const struct calibrated *v, FILE *f)
{
    char before[32], fitted[32] = "-", spread[16] = "-";

    constant_print(&v->constant, v->before, before, sizeof before);
    if (!isinf(v->spread)) {
        constant_print(&v->constant, v->fitted, fitted, sizeof fitted);
        snprintf(spread, sizeof spread, "%.1f", v->spread * 100);
    }
    fprintf(f, " %-22s %12s %12s %8s %6u  ", v->constant.name, before, fitted, spread, v->rows);
    print_verdict(v, f);
    fputc('\n', f);
}

static void print_values(const struct calibration *c, FILE *f)
{
    fprintf(f, "# value: of the machine file; fitted: to the rows below; spread: standard error, per cent;\n"
               "# rows: measurements that move with the value\n"
               "#\n"
               "# constant                    value       fitted   spread   rows  verdict\n");
    for (uint32_t i = 0; i < c->value_count; i++)
        print_value(&c->values[i], f);
    fprintf(f,
            "#\n# %u constants fitted, at most %d are wanted for a machine; those read off benchmarks of their own "
            "do not count\n",
            calibrate_fitted_count(c), CALIBRATE_FITTED_MAX);
}

/* ---- rows ---- */

static double error_of(double predicted, double measured)
{
    return (predicted / measured - 1) * 100;
}

static void print_rows(const struct calibration *c, FILE *f)
{
    fprintf(f, "#\n# us, or GB/s                                                              measured    "
               "before  error %%     after  error %%\n");
    for (uint32_t i = 0; i < c->row_count; i++) {
        const struct calibrated_row *r = &c->rows[i];
        fprintf(f, " %-19s %-50s %10.4g %9.4g %8.1f %9.4g %8.1f  %s\n", r->part, r->text, r->measured, r->before,
                error_of(r->before, r->measured), r->after, error_of(r->after, r->measured),
                r->fitted ? "fitted" : "predicted");
    }
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Absolute errors of a part's rows, sorted; their number. */
static uint32_t part_errors(const struct calibration *c, const struct calibrated_row *like, bool after, double *out)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < c->row_count; i++) {
        const struct calibrated_row *r = &c->rows[i];
        if (strcmp(r->part, like->part) == 0 && r->fitted == like->fitted)
            out[count++] = fabs(error_of(after ? r->after : r->before, r->measured));
    }
    qsort(out, count, sizeof(out[0]), compare_double);
    return count;
}

static bool is_first(const struct calibration *c, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (strcmp(c->rows[i].part, c->rows[index].part) == 0 && c->rows[i].fitted == c->rows[index].fitted)
            return false;
    return true;
}

/* The smallest error that nine of ten, or half, do not exceed. */
static double quantile(const double *sorted, uint32_t count, double share)
{
    return sorted[(uint32_t)ceil(share * count) - 1];
}

static void print_residuals(const struct calibration *c, FILE *f)
{
    double *errors = calloc(c->row_count + 1, sizeof(errors[0]));

    assert(errors);
    fprintf(f, "#\n# absolute errors, per cent             rows  before: median   p90  worst   after: median   p90  "
               "worst\n");
    for (uint32_t i = 0; i < c->row_count; i++) {
        if (!is_first(c, i))
            continue;
        fprintf(f, " %-20s %-12s", c->rows[i].part, c->rows[i].fitted ? "fitted" : "predicted");
        for (int after = 0; after < 2; after++) {
            uint32_t n = part_errors(c, &c->rows[i], after, errors);
            if (!after)
                fprintf(f, " %8u ", n);
            fprintf(f, " %14.1f %5.1f %6.1f ", quantile(errors, n, 0.5), quantile(errors, n, 0.9), errors[n - 1]);
        }
        fputc('\n', f);
    }
    free(errors);
}

void calibrate_print(const struct calibration *c, FILE *f)
{
    fprintf(f, "# machine %s, calibrated\n", c->machine.name);
    for (uint32_t i = 0; i < c->file_count; i++)
        fprintf(f, "# from %s\n", c->files[i]);
    print_values(c, f);
    print_rows(c, f);
    print_residuals(c, f);
}

/* ---- a machine file ---- */

static void write_origin(const struct calibration *c, FILE *f)
{
    fprintf(f, "# What differs from machine %s, found by `mkernel calibrate` (mkernel %s)", c->base, build_version);
    for (uint32_t i = 0; i < c->file_count; i++)
        fprintf(f, "%s\n#   %s", i == 0 ? " from" : "", c->files[i]);
    fprintf(f,
            "\n# \"fitted\": to so many rows, with the standard error; \"kept\": the old value, which the rows do not "
            "tell from the fitted one.\n\n");
    if (c->machine.derived)
        fprintf(f, "# %s has a base itself, so that it cannot be one: put these sections into its file.\n", c->base);
    else
        fprintf(f, "base: %s\n", c->base);
}

static void write_value(const struct calibrated *v, const char *key, const char *indent, FILE *f)
{
    char value[32], fitted[32];
    int used;

    constant_print(&v->constant, v->after, value, sizeof value);
    constant_print(&v->constant, v->fitted, fitted, sizeof fitted);
    used = fprintf(f, "%s%s: %s", indent, key, value);
    fprintf(f, "%*s# ", used < 29 ? 30 - used : 1, "");
    if (v->state == CALIBRATED_KEPT)
        fprintf(f, "kept; ");
    fprintf(f, "%s %s +- %.1f %%, %u rows\n", v->direct ? "read off:" : "fitted", fitted, v->spread * 100, v->rows);
}

static bool same_section(const char *a, const char *b)
{
    size_t size = strcspn(a, ".");

    return strcspn(b, ".") == size && strncmp(a, b, size) == 0;
}

#define STEPS "gemm.steps." /* and a duration: a row of the map */

static bool is_step(const struct calibrated *v)
{
    return strncmp(v->constant.name, STEPS, sizeof STEPS - 1) == 0;
}

/* The map is written whole, with rows that were not determined, or not at all. */
static void write_steps(const struct calibration *c, FILE *f)
{
    char value[32];
    bool any = false;

    for (uint32_t i = 0; i < c->value_count; i++)
        any |= is_step(&c->values[i]) && c->values[i].state != CALIBRATED_OPEN;
    if (any)
        fprintf(f, "  steps:\n");
    for (uint32_t i = 0; any && i < c->value_count; i++) {
        const struct calibrated *v = &c->values[i];
        const char *duration = v->constant.name + sizeof STEPS - 1;

        if (is_step(v) && v->state != CALIBRATED_OPEN)
            write_value(v, duration, "    ", f);
        else if (is_step(v))
            fprintf(f, "    %s: %s # not determined\n", duration,
                    constant_print(&v->constant, v->after, value, sizeof value));
    }
}

static void write_section(const struct calibration *c, const char *name, FILE *f)
{
    fprintf(f, "%.*s:\n", (int)strcspn(name, "."), name);
    for (uint32_t i = 0; i < c->value_count; i++) {
        const struct calibrated *v = &c->values[i];

        if (same_section(v->constant.name, name) && v->state != CALIBRATED_OPEN && !is_step(v))
            write_value(v, strchr(v->constant.name, '.') + 1, "  ", f);
    }
    if (same_section(STEPS, name))
        write_steps(c, f);
}

static bool opens_section(const struct calibration *c, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (c->values[i].state != CALIBRATED_OPEN &&
            same_section(c->values[i].constant.name, c->values[index].constant.name))
            return false;
    return c->values[index].state != CALIBRATED_OPEN;
}

static void write_machine(void *arg, FILE *f)
{
    const struct calibration *c = arg;

    write_origin(c, f);
    for (uint32_t i = 0; i < c->value_count; i++)
        if (opens_section(c, i))
            write_section(c, c->values[i].constant.name, f);
}

enum status calibrate_write(const struct calibration *c, const char *path)
{
    return file_create(path, write_machine, (void *)c);
}
