/* NCCL's constants of a machine. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/calibrate/calibrate.h"
#include "core/calibrate/nccl_fit.h"

static const struct nccl_row *first_row(const struct nccl_rows *all, const char *machine, bool across)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (strcmp(all->rows[i].machine->name, machine) == 0 && (all->rows[i].row.nodes > 1) == across)
            return &all->rows[i];
    return NULL;
}

static double time_us(const struct nccl_row *r, const struct nccl_rows *all, const struct machine *m)
{
    struct machine own = *r->machine;
    struct collective_times times;

    own.nccl_flow = m->nccl_flow;
    return nccl_row_predict(all, r, &own, &times) ? (double)times.flow_ps / 1e6 : 0;
}

static void add_rows(const struct nccl_fit *fit, const struct machine *before, struct calibration *c)
{
    for (uint32_t i = 0; i < fit->row_count; i++) {
        const struct nccl_row *r = fit->rows[i];
        struct calibrated_row row = {.fitted = true, .measured = r->row.measured_us};

        snprintf(row.part, sizeof row.part, "nccl, %s", r->row.place);
        snprintf(row.text, sizeof row.text, "%s %s, %u x %u, %llu bytes", r->row.source, r->row.what, r->row.nodes,
                 r->row.gpus_per_node, (unsigned long long)r->row.bytes);
        row.before = time_us(r, fit->all, before);
        row.after = time_us(r, fit->all, &c->machine);
        if (row.before > 0)
            calibrate_add_row(c, &row);
    }
}

/* The rows of all machines of its kind: they share these constants. */
static void fit_kind(struct nccl_fits *fits, const struct nccl_row *like, struct calibration *c)
{
    const struct nccl_fit *fit = nccl_fit_of(fits, like, "");
    const struct machine before = c->machine;
    struct constants_fit constants = nccl_fit_constants(fit);

    calibrate_fit(c, &constants, false);
    add_rows(fit, &before, c);
}

enum status calibrate_nccl(const struct registry *r, const char *folder, struct calibration *c)
{
    struct nccl_rows *all = calloc(1, sizeof *all);
    enum status st;

    assert(all);
    st = nccl_rows_read(r, folder, NULL, all);
    struct nccl_fits fits = {.rows = all};
    for (int across = 0; st >= 0 && across < 2; across++) {
        const struct nccl_row *like = first_row(all, c->machine.name, across);
        if (like)
            fit_kind(&fits, like, c);
    }
    nccl_fits_free(&fits);
    nccl_rows_free(all);
    free(all);
    return st;
}
