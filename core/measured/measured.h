/* What was measured of a GPU and its links piece by piece: plain GEMMs, attention, copies by CTAs, and single
 * quantities such as a flag's hop; and what the models make of each on any machine.  Nothing here is fused: these
 * are what the constants of a machine file may be fitted to.
 *
 * Files: records of the cuda backend's benchmarks (*.jsonl), and tables (*.csv) of one of three forms, told apart by
 * their columns: copies (method, ctas, size_kib, ...), GEMMs (m, n, k, interpreter_alone_ms, ...) and quantities
 * (quantity, bytes, value, unit). */
#ifndef CORE_MEASURED_MEASURED_H
#define CORE_MEASURED_MEASURED_H

#include "core/scenario/scenario.h"

enum measured_kind { MEASURED_GEMM, MEASURED_ATTENTION, MEASURED_COPY, MEASURED_QUANTITY, MEASURED_KINDS };

/* One number that a few values of a machine file add up to. */
struct quantity {
    const char *name, *unit;                               /* "us", "GB/s" */
    double (*of)(const struct machine *m, uint64_t bytes); /* in that unit */
};

struct copy_run {
    bool pull;    /* or push */
    bool drained; /* each copy is complete before the CTA starts the next */
    uint32_t ctas;
    uint64_t kib; /* of one copy */
};

struct measured {
    enum measured_kind kind;
    char what[40];    /* "program", "cuBLAS", "pull, drained" */
    char detail[104]; /* "8192 x 8192 x 8192", "8 CTAs, 64 KiB" */
    bool fitted;      /* constants are fitted to such rows; others are only predicted */
    double value;     /* us; of a quantity in its own unit */

    struct problem problem;      /* GEMM, attention: on one GPU */
    enum program_choice program; /* the same: fused is what runs programs, nccl the library */
    struct copy_run copy;
    const struct quantity *quantity;
    uint64_t bytes; /* of the quantity */
};

struct measured_rows {
    struct measured *rows;
    uint32_t count, capacity;
};

void measured_add(struct measured_rows *rows, const struct measured *row);
void measured_free(struct measured_rows *rows); /* safe on a zeroed one */

/* Appends what a file holds.  ST_INPUT (logged): it is none of those files, a value is absurd, or it was measured on
 * another GPU than `m`'s. */
enum status measured_read(const char *path, const struct machine *m, struct measured_rows *rows);

/* A line of FOLDER/calibration.csv: which file holds measurements of which machine. */
struct measured_file {
    char machine[OPTION_TEXT_BYTES];
    char path[1024];
    bool fit; /* constants are fitted to it; else it is held out, to be predicted only */
};

typedef enum status measured_file_fn(void *arg, const struct measured_file *file);

/* Calls fn for each line, until one fails. */
enum status measured_each_file(const char *folder, measured_file_fn *fn, void *arg);

/* "gemm", "attention", "copy", "quantity" */
const char *measured_kind_name(enum measured_kind kind);

/* Who predicts: the registry's simulator and its kernels. */
struct measured_model {
    const struct backend *backend;
    void *options; /* the backend's */
    const struct kernel *gemm, *attention;
};

void measured_model_open(const struct registry *r, struct measured_model *out);
void measured_model_close(struct measured_model *model);

/* What the row would have been on that machine; 0 (logged): it cannot be run there. */
double measured_predict(const struct measured_model *model, const struct measured *row, const struct machine *m);

/* ---- parts of the above ---- */

const struct quantity *quantity_find(const char *name); /* NULL (logged): there is none */
/* Needs no program_fini(); *copy must outlive it. */
void copy_run_emit(const struct copy_run *copy, struct program *out);
double copy_run_us(const struct measured_model *model, const struct copy_run *copy, const struct machine *m);
#define COPY_RUN_BYTES (UINT64_C(64) << 20) /* that a copy run moves, each way */

enum status measured_read_records(const char *path, const struct machine *m, struct measured_rows *rows);
enum status measured_read_table(const char *path, struct measured_rows *rows);

#endif
