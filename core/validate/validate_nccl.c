/* NCCL's times: each row predicted by constants fitted to the rows of other sources. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/calibrate/nccl_fit.h"
#include "core/validate/validate.h"

/* A fit serves all rows of its source on machines of that kind. */
static bool same_fit(const struct nccl_row *a, const struct nccl_row *b)
{
    return strcmp(a->row.source, b->row.source) == 0 && (a->row.nodes > 1) == (b->row.nodes > 1) &&
           strcmp(a->constants, b->constants) == 0 && strcmp(a->network, b->network) == 0 && a->machine == b->machine;
}

static void predict_row(const struct nccl_rows *c, struct nccl_row *s, const struct machine *m, bool held_out)
{
    struct collective_times times;

    if (!nccl_row_predict(c, s, m, &times)) {
        log_warn("%s, %s, %u x %u GPUs, %llu bytes: no model of %s for it", s->row.source, s->row.what, s->row.nodes,
                 s->row.gpus_per_node, (unsigned long long)s->row.bytes, s->algorithm[0] ? s->algorithm : "NCCL");
        return;
    }
    s->row.held_out = held_out;
    s->row.predicted_us = (double)times.flow_ps / 1e6;
    s->row.bare_us = (double)times.model_ps / 1e6;
    s->row.corrected_us = (double)times.corrected_ps / 1e6;
    snprintf(s->row.choice, sizeof s->row.choice, "%s", times.choice);
}

/* All rows that the fit of `first` serves. */
static void predict_rows(struct nccl_rows *c, struct nccl_fits *fits, uint32_t first, bool *done)
{
    const struct nccl_row *like = &c->rows[first];
    const struct nccl_fit *fit = nccl_fit_of(fits, like, like->row.source);
    struct machine m = *like->machine;

    m.nccl_flow = fit->machine.nccl_flow;
    for (uint32_t i = first; i < c->count; i++) {
        if (done[i] || !same_fit(&c->rows[i], like))
            continue;
        done[i] = true;
        predict_row(c, &c->rows[i], &m, fit->row_count > 0);
    }
}

static void predict_all(struct nccl_rows *c)
{
    struct nccl_fits fits = {.rows = c};
    bool *done = calloc(c->count + 1, sizeof(done[0]));

    assert(done != NULL);
    for (uint32_t i = 0; i < c->count; i++)
        if (!done[i])
            predict_rows(c, &fits, i, done);
    nccl_fits_free(&fits);
    free(done);
}

enum status validate_nccl(const struct registry *r, const char *folder, struct validation *v)
{
    struct nccl_rows *c = calloc(1, sizeof(*c));

    assert(c != NULL);
    enum status st = nccl_rows_read(r, folder, stdout, c);
    if (st >= 0)
        predict_all(c);
    for (uint32_t i = 0; st >= 0 && i < c->count; i++)
        if (c->rows[i].row.predicted_us > 0)
            validation_add(v, &c->rows[i].row);
    v->skipped += c->skipped;
    nccl_rows_free(c);
    free(c);
    return st;
}
