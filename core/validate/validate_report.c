/* What `mkernel validate` prints and writes. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"
#include "core/validate/validate.h"

#define PATH_BYTES 1024

static void print_group(const struct validate_group *g, FILE *f)
{
    char bare[16] = "-";

    if (g->bare_median >= 0)
        snprintf(bare, sizeof bare, "%.1f", g->bare_median);
    fprintf(f, " %-7s %-44s %5u %7.1f %7.1f %7.1f %7s  %s\n", g->by, g->name, g->count, g->median, g->p90, g->worst,
            bare, g->held_out ? "yes" : "no");
}

void validate_print(const struct validate_group *groups, uint32_t count, FILE *f)
{
    fprintf(f, "# error: |predicted / measured - 1|, per cent; p90: nine rows of ten are not above\n"
               "# bare: median error of NCCL's own cost model; held out: by constants that were not\n"
               "# fitted to this source\n"
               "#\n"
               "# by      rows                                         count  median     p90   worst"
               "    bare  held out\n");
    for (uint32_t i = 0; i < count; i++)
        print_group(&groups[i], f);
}

/* ---- files that are replaced as a whole ---- */

struct replaced {
    FILE *file;
    char path[PATH_BYTES], temporary[PATH_BYTES + 8];
};

static enum status replace_open(struct replaced *r, const char *folder, const char *name)
{
    if (folder != NULL)
        snprintf(r->path, sizeof(r->path), "%s/%s", folder, name);
    else
        snprintf(r->path, sizeof(r->path), "%s", name);
    snprintf(r->temporary, sizeof(r->temporary), "%s.new", r->path);
    TRY(file_create_folders(r->path));
    r->file = fopen(r->temporary, "w");
    if (r->file != NULL)
        return ST_OK;
    log_error("%s: %s", r->temporary, strerror(errno));
    return ST_IO;
}

static enum status replace_commit(struct replaced *r)
{
    bool written = fflush(r->file) == 0 && fsync(fileno(r->file)) == 0 && !ferror(r->file);

    if (fclose(r->file) == 0 && written && rename(r->temporary, r->path) == 0)
        return ST_OK;
    log_error("%s: %s", r->path, strerror(errno));
    unlink(r->temporary);
    return ST_IO;
}

static void put_text(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', f);
        fputc(*text, f);
    }
    fputc('"', f);
}

static void put_row(FILE *f, const struct validate_row *r)
{
    const char *const texts[] = {r->set, r->place, r->size, r->what, r->machine, r->source, r->choice};

    for (uint32_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        put_text(f, texts[i]);
        fputc(',', f);
    }
    fprintf(f, "%u,%u,%llu,%.2f,%.2f,%.1f,", r->nodes, r->gpus_per_node, (unsigned long long)r->bytes, r->measured_us,
            r->predicted_us, (r->predicted_us / r->measured_us - 1) * 100);
    if (r->bare_us > 0)
        fprintf(f, "%.2f,%.2f,", r->bare_us, r->corrected_us);
    else
        fprintf(f, ",,");
    fprintf(f, "%s\n", r->held_out ? "yes" : "no");
}

static enum status write_rows(const struct validation *v, const char *folder)
{
    struct replaced r;

    TRY(replace_open(&r, folder, "rows.csv"));
    fprintf(r.file, "set,place,size,what,machine,source,choice,nodes,gpus_per_node,bytes,"
                    "measured_us,predicted_us,error_percent,bare_model_us,corrected_model_us,"
                    "held_out\n");
    for (uint32_t i = 0; i < v->count; i++)
        put_row(r.file, &v->rows[i]);
    return replace_commit(&r);
}

static enum status write_summary(const struct validate_group *groups, uint32_t count, const char *folder)
{
    struct replaced r;

    TRY(replace_open(&r, folder, "summary.csv"));
    fprintf(r.file, "by,name,count,median_percent,p90_percent,worst_percent,bare_median_percent,"
                    "held_out\n");
    for (uint32_t i = 0; i < count; i++) {
        const struct validate_group *g = &groups[i];
        fprintf(r.file, "%s,", g->by);
        put_text(r.file, g->name);
        fprintf(r.file, ",%u,%.2f,%.2f,%.2f,", g->count, g->median, g->p90, g->worst);
        if (g->bare_median >= 0)
            fprintf(r.file, "%.2f", g->bare_median);
        fprintf(r.file, ",%s\n", g->held_out ? "yes" : "no");
    }
    return replace_commit(&r);
}

/* ---- plot ---- */

/* A block of data: rows of one place, by NCCL's own cost model or by its simulation.  gnuplot
 * refuses an empty one, so each starts with a point outside the axes. */
static void plot_points(FILE *f, const struct validation *v, const char *place, bool bare)
{
    fprintf(f, "1 0\n");
    for (uint32_t i = 0; i < v->count; i++) {
        const struct validate_row *r = &v->rows[i];
        double us = bare ? r->bare_us : r->predicted_us;
        if (strcmp(r->set, "nccl") == 0 && strcmp(r->place, place) == 0 && us > 0)
            fprintf(f, "%llu %.3f\n", (unsigned long long)r->bytes, (us / r->measured_us - 1) * 100);
    }
    fprintf(f, "e\n");
}

static const char *const places[] = {"in a node", "across nodes", "two GPUs"};
#define PLACES (sizeof(places) / sizeof(places[0]))

static void plot_commands(FILE *f, const struct validation *v, const char *path)
{
    fprintf(f,
            "set terminal svg size 1000,900 name 'errors'\n"
            "set output '%s'\n"
            "set multiplot layout 3,1\n"
            "set logscale x 2\nset xrange [256:34359738368]\nset yrange [-80:80]\n"
            "set format x '%%b%%B'\nset grid\nset key top right\n"
            "set ylabel 'predicted / measured - 1, %%'\n",
            path);
    for (uint32_t i = 0; i < PLACES; i++) {
        fprintf(f, "set title 'NCCL, %s'\n%s", places[i], i + 1 == PLACES ? "set xlabel 'bytes'\n" : "");
        fprintf(f, "plot '-' title 'cost model' pt 6 lc rgb '#999999',"
                   " '-' title 'flow simulation, held out' pt 7 lc rgb '#0055aa',"
                   " 0 notitle lc rgb 'black'\n");
        plot_points(f, v, places[i], true);
        plot_points(f, v, places[i], false);
    }
    fprintf(f, "unset multiplot\n");
}

static bool have_gnuplot(void)
{
    return system("command -v gnuplot >/dev/null 2>&1") == 0;
}

static enum status write_plot(const struct validation *v, const char *folder)
{
    char path[PATH_BYTES], temporary[PATH_BYTES + 8];

    if (!have_gnuplot()) {
        log_warn("no gnuplot here: no plot is drawn (apt-get install gnuplot-nox)");
        return ST_OK;
    }
    snprintf(path, sizeof path, "%s/errors.svg", folder);
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *f = popen("gnuplot", "w");
    if (f == NULL) {
        log_error("gnuplot: %s", strerror(errno));
        return ST_IO;
    }
    plot_commands(f, v, temporary);
    if (pclose(f) == 0 && rename(temporary, path) == 0)
        return ST_OK;
    log_error("%s: gnuplot failed", path);
    unlink(temporary);
    return ST_IO;
}

enum status validate_write(const struct validation *v, const struct validate_group *groups, uint32_t count,
                           const char *folder)
{
    TRY(write_rows(v, folder));
    TRY(write_summary(groups, count, folder));
    return write_plot(v, folder);
}

enum status validate_record(const struct validate_group *groups, uint32_t count, const char *path)
{
    struct replaced r;

    TRY(replace_open(&r, NULL, path));
    fprintf(r.file, "name,median,p90\n");
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(groups[i].by, "class") != 0)
            continue;
        put_text(r.file, groups[i].name);
        fprintf(r.file, ",%.1f,%.1f\n", ceil(groups[i].median * 11) / 10, ceil(groups[i].p90 * 11) / 10);
    }
    return replace_commit(&r);
}
