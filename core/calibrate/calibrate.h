/* Fits the constants of a machine file to what was measured on that machine: micro-benchmarks, plain GEMMs and
 * attention (core/measured/measured.h), and NCCL's times (core/calibrate/nccl_fit.h).  Fused times are predicted, never
 * fitted.
 *
 * A *part* is a group of constants that are fitted together to the rows they explain.  A constant that its rows do not
 * determine (standard error above a quarter) stays as it is, and so does one that lies within two standard errors of
 * the fitted value: the rows do not tell the two apart. */
#ifndef CORE_CALIBRATE_CALIBRATE_H
#define CORE_CALIBRATE_CALIBRATE_H

#include "core/calibrate/constants.h"
#include "core/measured/measured.h"

#define CALIBRATE_FITTED_MAX 10 /* constants of a machine; those read off one benchmark each do not count */
#define CALIBRATE_FILES_MAX 64

enum calibrated_state {
    CALIBRATED_REPLACED, /* by the fitted value */
    CALIBRATED_KEPT,     /* within two standard errors of the fitted one */
    CALIBRATED_OPEN,     /* the rows do not determine it */
};

struct calibrated {
    struct constant constant;
    enum calibrated_state state;
    bool direct;                  /* read off benchmarks of its own */
    double before, fitted, after; /* ps, bytes/s */
    double spread;                /* relative; INFINITY: no row moves with it */
    uint32_t rows;                /* that move with it */
};

/* A row beside what the machine made of it. */
struct calibrated_row {
    char part[40], text[200];
    bool fitted; /* false: predicted only */
    double measured, before, after;
};

struct calibration {
    struct machine machine; /* with the new values */
    char base[256];         /* the machine as it was asked for */
    struct calibrated values[64];
    uint32_t value_count;
    struct calibrated_row *rows;
    uint32_t row_count;
    char files[CALIBRATE_FILES_MAX][1024]; /* that rows came from */
    uint32_t file_count;
};

struct calibrate_request {
    const char *machine;      /* a name or a path */
    const char *const *files; /* of measurements */
    uint32_t file_count;      /* 0: those that RESULTS/calibration.csv lists, and NCCL's */
    const char *results;      /* the folder */
};

/* ST_INPUT (logged): there are no rows for that machine, or what is there cannot be read.  *out is to be freed. */
enum status calibrate_run(const struct registry *r, const struct calibrate_request *q, struct calibration *out);
void calibrate_free(struct calibration *c); /* safe on a zeroed one */

/* Constants that count against CALIBRATE_FITTED_MAX. */
uint32_t calibrate_fitted_count(const struct calibration *c);

void calibrate_print(const struct calibration *c, FILE *f);
/* A machine file with `base` and the values that have rows, each with its source.  Never over another file. */
enum status calibrate_write(const struct calibration *c, const char *path);

/* ---- parts of the above ---- */

void calibrate_add_row(struct calibration *c, const struct calibrated_row *row);
/* Fits the constants of a part in c->machine and adds them to the values. */
void calibrate_fit(struct calibration *c, const struct constants_fit *fit, bool direct);
/* NCCL's rows of that machine in FOLDER (results/reference). */
enum status calibrate_nccl(const struct registry *r, const char *folder, struct calibration *c);

#endif
