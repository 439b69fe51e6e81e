/* What was measured piece by piece, on the machines that results/calibration.csv names: rows that constants were fitted
 * to, and those that were held out. */
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/measured/measured.h"
#include "core/validate/validate.h"

struct replay {
    const struct measured_model *model;
    struct validation *validation;
};

static const char *size_class(const struct measured *m)
{
    if (m->kind != MEASURED_ATTENTION)
        return "all sizes";
    return m->problem.attention.causal ? "causal" : "no mask";
}

static enum status add_row(struct replay *r, const struct machine *m, const struct measured *row, bool fit)
{
    struct validate_row out = {.source = "own measurements",
                               .nodes = 1,
                               .gpus_per_node = (uint32_t)m->gpus_per_node,
                               .measured_us = row->value,
                               .predicted_us = measured_predict(r->model, row, m),
                               .held_out = !(row->fitted && fit)};

    if (out.predicted_us <= 0)
        return ST_INPUT;
    snprintf(out.set, sizeof out.set, "%s", measured_kind_name(row->kind));
    snprintf(out.place, sizeof out.place, "%s", m->gpus_per_node > 1 ? "two GPUs" : "one GPU");
    snprintf(out.size, sizeof out.size, "%s", size_class(row));
    snprintf(out.what, sizeof out.what, "%s", row->what);
    snprintf(out.machine, sizeof out.machine, "%s", m->name);
    snprintf(out.choice, sizeof out.choice, "%.63s", row->detail);
    validation_add(r->validation, &out);
    return ST_OK;
}

/* Single quantities are values of the machine file, or sums of two: there is no model to judge. */
static enum status replay_file(void *arg, const struct measured_file *file)
{
    struct replay *r = arg;
    struct measured_rows rows = {0};
    struct machine m;
    enum status st;

    TRY(machine_load(file->machine, &m));
    st = measured_read(file->path, &m, &rows);
    for (uint32_t i = 0; st >= 0 && i < rows.count; i++)
        if (rows.rows[i].kind != MEASURED_QUANTITY)
            st = add_row(r, &m, &rows.rows[i], file->fit);
    measured_free(&rows);
    return st;
}

enum status validate_measured(const struct registry *r, const char *folder, struct validation *v)
{
    struct measured_model model;
    struct replay replay = {&model, v};

    measured_model_open(r, &model);
    enum status st = measured_each_file(folder, replay_file, &replay);
    measured_model_close(&model);
    return st;
}
