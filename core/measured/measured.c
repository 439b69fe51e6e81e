#include "core/measured/measured.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/run/run.h"
#include "core/statistics/stats.h"

void measured_add(struct measured_rows *rows, const struct measured *row)
{
    assert(row->value > 0);
    if (rows->count == rows->capacity) {
        rows->capacity = rows->capacity > 0 ? 2 * rows->capacity : 64;
        rows->rows = realloc(rows->rows, rows->capacity * sizeof(rows->rows[0]));
        assert(rows->rows != NULL);
    }
    rows->rows[rows->count++] = *row;
}

void measured_free(struct measured_rows *rows)
{
    free(rows->rows);
    *rows = (struct measured_rows){0};
}

const char *measured_kind_name(enum measured_kind kind)
{
    static const char *const names[] = {[MEASURED_GEMM] = "gemm",
                                        [MEASURED_ATTENTION] = "attention",
                                        [MEASURED_COPY] = "copy",
                                        [MEASURED_QUANTITY] = "quantity"};

    return names[kind];
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);

    return size > end_size && strcmp(text + size - end_size, end) == 0;
}

enum status measured_read(const char *path, const struct machine *m, struct measured_rows *rows)
{
    uint32_t before = rows->count;

    if (ends_with(path, ".jsonl"))
        TRY(measured_read_records(path, m, rows));
    else if (ends_with(path, ".csv"))
        TRY(measured_read_table(path, rows));
    if (rows->count > before)
        return ST_OK;
    log_error("%s: no plain GEMM, attention, copy or quantity in it; expected records of bench_cuda or "
              "bench_attention (*.jsonl), or a table (*.csv) as docs/calibration.md describes them",
              path);
    return ST_INPUT;
}

/* ---- who predicts ---- */

static const struct kernel *find_kernel(const struct registry *r, const char *name)
{
    for (uint32_t i = 0; r->kernels[i] != NULL; i++)
        if (strcmp(r->kernels[i]->name, name) == 0)
            return r->kernels[i];
    return NULL;
}

/* Runs go on in this process, where SimGrid could run once: links are shared by our own solver. */
static void choose_engine(struct measured_model *model)
{
    const struct option *engine = option_find(model->backend->options, "engine");
    char why[200];

    option_defaults(model->backend->options, model->options);
    enum status st = option_parse(engine, model->options, "fluid", NULL, why, sizeof why);
    assert(st == ST_OK);
}

void measured_model_open(const struct registry *r, struct measured_model *out)
{
    *out = (struct measured_model){.gemm = find_kernel(r, "ag_gemm"), .attention = find_kernel(r, "ring_attention")};
    for (uint32_t i = 0; r->backends[i] != NULL && out->backend == NULL; i++)
        if (r->backends[i]->collective != NULL)
            out->backend = r->backends[i];
    assert(out->backend && out->gemm && out->attention);
    out->options = calloc(1, out->backend->options_size);
    assert(out->options);
    choose_engine(out);
}

void measured_model_close(struct measured_model *model)
{
    free(model->options);
    *model = (struct measured_model){0};
}

/* ---- one GPU's work, by a kernel's program or by the library ---- */

static double kernel_us(const struct measured_model *model, const struct measured *row, const struct machine *m)
{
    const struct kernel *k = row->kind == MEASURED_GEMM ? model->gemm : model->attention;
    struct point p = {.kernel = k,
                      .problem = row->problem,
                      .world = {1, 1},
                      .machine = m,
                      .program = row->program,
                      .timing = {.mode = TIMING_ISOLATED, .iterations = 1}};
    struct run_unit u = {
        .point = &p, .problem = row->problem, .backend = model->backend, .options = model->options, .timing = p.timing};
    struct run_result result = {.status = ST_OK};

    p.params = calloc(1, k->params_size + 1);
    assert(p.params);
    option_defaults(k->options, p.params);
    run_unit_execute(&u, NULL, &result);
    free(p.params);
    if (result.status < 0) {
        log_error("%s %s on machine %s: %s", measured_kind_name(row->kind), row->detail, m->name,
                  result.report[0] ? result.report : status_text(result.status));
        return 0;
    }
    return (double)stats_of(result.sample_ps, result.sample_count).median / 1e6;
}

double measured_predict(const struct measured_model *model, const struct measured *row, const struct machine *m)
{
    switch (row->kind) {
    case MEASURED_GEMM:
    case MEASURED_ATTENTION: return kernel_us(model, row, m);
    case MEASURED_COPY: return copy_run_us(model, &row->copy, m);
    case MEASURED_QUANTITY: return row->quantity->of(m, row->bytes);
    case MEASURED_KINDS: break;
    }
    assert(!"a kind without a model");
    return 0;
}
