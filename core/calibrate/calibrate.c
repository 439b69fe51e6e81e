#include "core/calibrate/calibrate.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

#define ROUNDS 15
#define KNEE 0.1

/* Which keys rows of a kind are explained by. */
static const struct part {
    enum measured_kind kind;
    bool steps;  /* the rows of gemm.steps, too */
    bool direct; /* each is read off benchmarks of its own */
    const char *keys[FIT_PARAMETERS_MAX];
} parts[] = {
    {MEASURED_GEMM, true, false, {"gemm.fixed"}},
    {MEASURED_ATTENTION,
     false,
     false,
     {"attention.fixed", "attention.step_64", "attention.step_128", "program.attention", "program.attention_64"}},
    {MEASURED_COPY, false, false, {"copy.push_rate", "copy.pull_rate", "copy.drained", "copy.pipelined"}},
    {MEASURED_QUANTITY,
     false,
     true,
     {"host.launch", "host.issue", "host.event", "flag.dispatch", "flag.local", "flag.peer", "gemm.flush",
      "attention.carry", "copy.reduce_rate", "gpu.memory_rate", "nvlink.rate", "nvlink.engine_rate", "nvlink.engine"}},
};

_Static_assert(1 + MACHINE_TABLE_MAX <= FIT_PARAMETERS_MAX, "gemm.fixed and all steps are fitted at once");

void calibrate_add_row(struct calibration *c, const struct calibrated_row *row)
{
    c->rows = realloc(c->rows, (c->row_count + 1) * sizeof(c->rows[0]));
    assert(c->rows);
    c->rows[c->row_count++] = *row;
}

void calibrate_free(struct calibration *c)
{
    free(c->rows);
    *c = (struct calibration){0};
}

uint32_t calibrate_fitted_count(const struct calibration *c)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < c->value_count; i++)
        count += c->values[i].state != CALIBRATED_OPEN && !c->values[i].direct;
    return count;
}

/* ---- one part ---- */

struct fitting {
    const struct measured_model *model;
    const struct measured **rows;
};

static double ratio(void *arg, uint32_t row, const struct machine *m)
{
    const struct fitting *f = arg;
    double predicted = measured_predict(f->model, f->rows[row], m);

    return predicted > 0 ? predicted / f->rows[row]->value : 1;
}

static uint32_t part_constants(const struct part *p, const struct machine *m, struct constant *out)
{
    uint32_t count = 0;

    for (; count < FIT_PARAMETERS_MAX && p->keys[count]; count++)
        out[count] = constant_of_key(p->keys[count], 0);
    for (uint32_t i = 0; p->steps && i < m->gemm.step_count; i++)
        out[count++] = constant_of_step(m, i);
    return count;
}

/* A value of 0 says that there is no such thing: nothing to fit. */
static uint32_t drop_absent(struct constant *constants, uint32_t count, const struct machine *m)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++)
        if (constant_get(&constants[i], m) > 0)
            constants[kept++] = constants[i];
    return kept;
}

static void fit_part(const struct measured_model *model, const struct part *p, const struct measured_rows *all,
                     struct calibration *c)
{
    struct constant constants[FIT_PARAMETERS_MAX + MACHINE_TABLE_MAX];
    struct fitting fitting = {.model = model, .rows = calloc(all->count + 1, sizeof(void *))};
    struct constants_fit fit = {
        .constants = constants, .ratio = ratio, .arg = &fitting, .rounds = ROUNDS, .knee = KNEE};

    assert(fitting.rows);
    for (uint32_t i = 0; i < all->count; i++)
        if (all->rows[i].kind == p->kind && all->rows[i].fitted)
            fitting.rows[fit.row_count++] = &all->rows[i];
    fit.count = drop_absent(constants, part_constants(p, &c->machine, constants), &c->machine);
    if (fit.row_count > 0 && fit.count > 0)
        calibrate_fit(c, &fit, p->direct);
    free(fitting.rows);
}

/* ---- rows ---- */

struct reading {
    const struct calibrate_request *request;
    struct calibration *calibration;
    struct measured_rows *rows;
};

static void note_file(struct calibration *c, const char *path)
{
    if (c->file_count < CALIBRATE_FILES_MAX)
        snprintf(c->files[c->file_count++], sizeof c->files[0], "%s", path);
}

static enum status read_file(struct reading *r, const char *path, bool fit)
{
    uint32_t first = r->rows->count;

    TRY(measured_read(path, &r->calibration->machine, r->rows));
    for (uint32_t i = first; i < r->rows->count; i++)
        r->rows->rows[i].fitted = r->rows->rows[i].fitted && fit;
    note_file(r->calibration, path);
    return ST_OK;
}

static enum status read_listed(void *arg, const struct measured_file *file)
{
    struct reading *r = arg;

    if (strcmp(file->machine, r->calibration->machine.name) != 0)
        return ST_OK;
    return read_file(r, file->path, file->fit);
}

static enum status read_rows(struct reading *r)
{
    const struct calibrate_request *q = r->request;

    if (q->file_count == 0)
        return measured_each_file(q->results, read_listed, r);
    for (uint32_t i = 0; i < q->file_count; i++)
        TRY(read_file(r, q->files[i], true));
    return ST_OK;
}

/* Of every row, before and after. */
static enum status predict_rows(const struct measured_model *model, const struct measured_rows *rows,
                                const struct machine *before, struct calibration *c)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct measured *m = &rows->rows[i];
        struct calibrated_row row = {.fitted = m->fitted, .measured = m->value};

        snprintf(row.part, sizeof row.part, "%s", measured_kind_name(m->kind));
        snprintf(row.text, sizeof row.text, "%s%s%s", m->what, m->detail[0] ? ", " : "", m->detail);
        row.before = measured_predict(model, m, before);
        row.after = measured_predict(model, m, &c->machine);
        if (row.before <= 0 || row.after <= 0)
            return ST_INPUT;
        calibrate_add_row(c, &row);
    }
    return ST_OK;
}

/* ---- all of it ---- */

/* Everything must run on the machine before anything is fitted to it. */
static enum status check_rows(const struct measured_model *model, const struct measured_rows *rows,
                              const struct machine *m)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        if (rows->rows[i].kind == MEASURED_COPY && m->gpus_per_node < 2) {
            log_error("%s: copies between GPUs were measured, and machine %s has one GPU a node", rows->rows[i].detail,
                      m->name);
            return ST_INPUT;
        }
        if (measured_predict(model, &rows->rows[i], m) <= 0)
            return ST_INPUT;
    }
    return ST_OK;
}

static enum status calibrate_measured(const struct registry *r, const struct calibrate_request *q,
                                      struct calibration *c)
{
    struct measured_rows rows = {0};
    struct reading reading = {q, c, &rows};
    const struct machine before = c->machine;
    struct measured_model model;
    enum status st = read_rows(&reading);

    measured_model_open(r, &model);
    if (st >= 0)
        st = check_rows(&model, &rows, &before);
    for (size_t i = 0; st >= 0 && i < sizeof parts / sizeof *parts; i++)
        fit_part(&model, &parts[i], &rows, c);
    if (st >= 0)
        st = predict_rows(&model, &rows, &before, c);
    measured_model_close(&model);
    measured_free(&rows);
    return st;
}

static enum status refuse_none(const struct calibrate_request *q, const struct calibration *c)
{
    log_error("%s: nothing measured on machine %s is listed in %s/calibration.csv or %s/reference/nccl-sources.csv; "
              "expected a line there, or files of measurements: mkernel calibrate %s FILE...",
              q->machine, c->machine.name, q->results, q->results, q->machine);
    return ST_INPUT;
}

enum status calibrate_run(const struct registry *r, const struct calibrate_request *q, struct calibration *out)
{
    char folder[1024];
    enum status st;

    *out = (struct calibration){0};
    snprintf(out->base, sizeof out->base, "%s", q->machine);
    snprintf(folder, sizeof folder, "%s/reference", q->results);
    TRY(machine_load(q->machine, &out->machine));
    st = calibrate_measured(r, q, out);
    if (st >= 0 && q->file_count == 0)
        st = calibrate_nccl(r, folder, out);
    if (st >= 0 && out->row_count == 0)
        st = refuse_none(q, out);
    if (st < 0)
        calibrate_free(out);
    return st;
}
