/* Copies between two H200s by CTAs, both directions at once: what a machine file says of one CTA
 * and of the link, against the rates that were measured (h200/copies-2gpu.csv). */
#include <stdio.h>
#include <string.h>

#include "core/parse/csv.h"
#include "core/log.h"
#include "core/validate/validate.h"

#define MACHINE "h200-nvlink2"
#define PATH_BYTES 1024

struct columns {
    uint32_t method, ctas, kib, mode, low, high;
};

static enum status find_columns(const struct csv *csv, struct columns *c)
{
    TRY(csv_column(csv, "method", &c->method));
    TRY(csv_column(csv, "ctas", &c->ctas));
    TRY(csv_column(csv, "size_kib", &c->kib));
    TRY(csv_column(csv, "mode", &c->mode));
    TRY(csv_column(csv, "low_gb_per_s", &c->low));
    return csv_column(csv, "high_gb_per_s", &c->high);
}

/* One instruction of one CTA: a fixed part, and its bytes at the CTA's rate or its share of the
 * link. */
static double instruction_us(const struct machine *m, bool pull, bool drained, double ctas,
                             double bytes)
{
    double rate = pull ? m->copy.pull_rate : m->copy.push_rate;
    double fixed = (double)(drained ? m->copy.drained_ps : m->copy.pipelined_ps) / 1e6;
    double alone = fixed + bytes / rate * 1e6, link = ctas * bytes / m->nvlink.rate * 1e6;

    return alone > link ? alone : link;
}

static enum status read_row(const struct csv *csv, const struct columns *c, uint32_t i,
                            const struct machine *m, struct validate_row *out)
{
    const char *method = csv_field(csv, i, c->method), *mode = csv_field(csv, i, c->mode);
    bool pull = strcmp(method, "pull") == 0, drained = strcmp(mode, "drained") == 0;
    double ctas, kib, low, high, bytes, rate;

    TRY(csv_number(csv, i, c->ctas, &ctas));
    TRY(csv_number(csv, i, c->kib, &kib));
    TRY(csv_number(csv, i, c->low, &low));
    TRY(csv_number(csv, i, c->high, &high));
    bytes = kib * 1024;
    rate = (low + high) / 2; /* where runs differed, the middle of them */
    if (ctas < 1 || bytes < 1 || rate <= 0) {
        log_error("%s:%u: counts, sizes and rates must be positive", csv->path, i + 1);
        return ST_INPUT;
    }
    *out = (struct validate_row){.set = "copy",
                                 .place = "two GPUs",
                                 .size = "all sizes",
                                 .source = "two-h200",
                                 .machine = MACHINE,
                                 .nodes = 1,
                                 .gpus_per_node = 2,
                                 .bytes = (uint64_t)bytes};
    snprintf(out->what, sizeof(out->what), "%s, %s", method, mode);
    snprintf(out->choice, sizeof(out->choice), "%.0f CTAs", ctas);
    out->measured_us = ctas * bytes / (rate * 1e3);
    out->predicted_us = instruction_us(m, pull, drained, ctas, bytes);
    return ST_OK;
}

enum status validate_copies(const char *folder, struct validation *v)
{
    struct columns columns;
    struct machine m;
    struct csv csv = {0};
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/h200/copies-2gpu.csv", folder);
    TRY(machine_load(MACHINE, &m));
    TRY(csv_read(path, &csv));
    enum status st = find_columns(&csv, &columns);
    for (uint32_t i = 1; st >= 0 && i < csv.row_count; i++) {
        struct validate_row row;
        st = read_row(&csv, &columns, i, &m, &row);
        if (st >= 0)
            validation_add(v, &row);
    }
    csv_free(&csv);
    return st;
}
