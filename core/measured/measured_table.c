/* Tables of measurements: copies, plain GEMMs, quantities; and the list of files that hold measurements. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/parse/csv.h"
#include "core/log.h"
#include "core/measured/measured.h"

static bool has_column(const struct csv *csv, const char *name, uint32_t *out)
{
    for (uint32_t i = 0; i < csv->column_count; i++)
        if (strcmp(csv_field(csv, 0, i), name) == 0) {
            *out = i;
            return true;
        }
    return false;
}

/* A whole number in a range. */
static enum status read_count(const struct csv *csv, uint32_t row, const char *column, double max, uint64_t *out)
{
    uint32_t index;
    double value;

    TRY(csv_column(csv, column, &index));
    TRY(csv_number(csv, row, index, &value));
    if (value < 1 || value > max || value != (double)(uint64_t)value) {
        log_error("%s:%u: %s: %s is no whole number from 1 to %.0f", csv->path, row + 1, column,
                  csv_field(csv, row, index), max);
        return ST_INPUT;
    }
    *out = (uint64_t)value;
    return ST_OK;
}

static enum status read_positive(const struct csv *csv, uint32_t row, const char *column, double *out)
{
    uint32_t index;

    TRY(csv_column(csv, column, &index));
    TRY(csv_number(csv, row, index, out));
    if (*out > 1e-6 && *out < 1e12)
        return ST_OK;
    log_error("%s:%u: %s: %s is no time or rate that was measured", csv->path, row + 1, column,
              csv_field(csv, row, index));
    return ST_INPUT;
}

/* One of two words. */
static enum status read_word(const struct csv *csv, uint32_t row, const char *column, const char *yes, const char *no,
                             bool *out)
{
    const char *text;
    uint32_t index;

    TRY(csv_column(csv, column, &index));
    text = csv_field(csv, row, index);
    *out = strcmp(text, yes) == 0;
    if (*out || strcmp(text, no) == 0)
        return ST_OK;
    log_error("%s:%u: %s: expected %s or %s, not \"%.40s\"", csv->path, row + 1, column, yes, no, text);
    return ST_INPUT;
}

/* ---- the three forms ---- */

static enum status read_copy(const struct csv *csv, uint32_t row, struct measured_rows *rows)
{
    struct measured r = {.kind = MEASURED_COPY, .fitted = true};
    uint64_t ctas;
    double low, high;

    TRY(read_word(csv, row, "method", "pull", "push", &r.copy.pull));
    TRY(read_word(csv, row, "mode", "drained", "pipelined", &r.copy.drained));
    TRY(read_count(csv, row, "ctas", 128, &ctas));
    TRY(read_count(csv, row, "size_kib", (double)(COPY_RUN_BYTES / 1024), &r.copy.kib));
    TRY(read_positive(csv, row, "low_gb_per_s", &low));
    TRY(read_positive(csv, row, "high_gb_per_s", &high));
    r.copy.ctas = (uint32_t)ctas;
    /* Where runs differed, the middle of them. */
    r.value = (double)(COPY_RUN_BYTES / (r.copy.kib * 1024) * r.copy.kib * 1024) / ((low + high) / 2 * 1e3);
    snprintf(r.what, sizeof r.what, "%s, %s", r.copy.pull ? "pull" : "push", r.copy.drained ? "drained" : "pipelined");
    snprintf(r.detail, sizeof r.detail, "%u CTAs, %llu KiB", r.copy.ctas, (unsigned long long)r.copy.kib);
    measured_add(rows, &r);
    return ST_OK;
}

static enum status add_gemm(const struct csv *csv, uint32_t row, const char *column, const struct measured *like,
                            struct measured_rows *rows)
{
    struct measured r = *like;
    double ms;

    TRY(read_positive(csv, row, column, &ms));
    r.value = ms * 1e3;
    measured_add(rows, &r);
    return ST_OK;
}

/* The GEMM alone, by what runs programs and by the library. */
static enum status read_gemm(const struct csv *csv, uint32_t row, struct measured_rows *rows)
{
    struct measured program = {.kind = MEASURED_GEMM, .what = "program", .fitted = true, .program = PROGRAM_FUSED};
    struct measured library;

    TRY(read_count(csv, row, "m", 1e6, &program.problem.m));
    TRY(read_count(csv, row, "n", 1e6, &program.problem.n));
    TRY(read_count(csv, row, "k", 1e6, &program.problem.k));
    snprintf(program.detail, sizeof program.detail, "%llu x %llu x %llu", (unsigned long long)program.problem.m,
             (unsigned long long)program.problem.n, (unsigned long long)program.problem.k);
    library = program;
    library.program = PROGRAM_NCCL;
    library.fitted = false;
    snprintf(library.what, sizeof library.what, "cuBLAS");
    TRY(add_gemm(csv, row, "interpreter_alone_ms", &program, rows));
    return add_gemm(csv, row, "cublas_alone_ms", &library, rows);
}

static enum status read_quantity(const struct csv *csv, uint32_t row, struct measured_rows *rows)
{
    struct measured r = {.kind = MEASURED_QUANTITY, .fitted = true};
    uint32_t name, unit, bytes;

    TRY(csv_column(csv, "quantity", &name));
    TRY(csv_column(csv, "unit", &unit));
    TRY(csv_column(csv, "bytes", &bytes));
    r.quantity = quantity_find(csv_field(csv, row, name));
    if (!r.quantity || strcmp(r.quantity->unit, csv_field(csv, row, unit)) != 0) {
        log_error("%s:%u: %s", csv->path, row + 1, r.quantity ? "wrong unit" : "unknown quantity");
        return ST_INPUT;
    }
    if (csv_field(csv, row, bytes)[0])
        TRY(read_count(csv, row, "bytes", 1e12, &r.bytes));
    TRY(read_positive(csv, row, "value", &r.value));
    snprintf(r.what, sizeof r.what, "%s", r.quantity->name);
    if (r.bytes)
        snprintf(r.detail, sizeof r.detail, "%llu bytes", (unsigned long long)r.bytes);
    measured_add(rows, &r);
    return ST_OK;
}

static const struct {
    const char *column; /* which only tables of this form have */
    enum status (*read)(const struct csv *csv, uint32_t row, struct measured_rows *rows);
} forms[] = {{"size_kib", read_copy}, {"interpreter_alone_ms", read_gemm}, {"quantity", read_quantity}};

enum status measured_read_table(const char *path, struct measured_rows *rows)
{
    struct csv csv = {0};
    uint32_t column;
    enum status st = csv_read(path, &csv);

    for (size_t f = 0; st >= 0 && f < sizeof forms / sizeof *forms; f++)
        if (has_column(&csv, forms[f].column, &column))
            for (uint32_t i = 1; st >= 0 && i < csv.row_count; i++)
                st = forms[f].read(&csv, i, rows);
    csv_free(&csv);
    return st;
}

/* ---- the list ---- */

enum status measured_each_file(const char *folder, measured_file_fn *fn, void *arg)
{
    struct csv csv = {0};
    char path[1024];
    uint32_t machine, file;
    enum status st;

    snprintf(path, sizeof path, "%s/calibration.csv", folder);
    TRY(csv_read(path, &csv));
    st = csv_column(&csv, "machine", &machine);
    if (st >= 0)
        st = csv_column(&csv, "file", &file);
    for (uint32_t i = 1; st >= 0 && i < csv.row_count; i++) {
        struct measured_file f;
        snprintf(f.machine, sizeof f.machine, "%s", csv_field(&csv, i, machine));
        snprintf(f.path, sizeof f.path, "%s/%s", folder, csv_field(&csv, i, file));
        st = read_word(&csv, i, "use", "fit", "predict", &f.fit);
        if (st >= 0)
            st = fn(arg, &f);
    }
    csv_free(&csv);
    return st;
}
