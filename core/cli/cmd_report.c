#include "core/cli/commands.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cli/args.h"
#include "core/cli/page.h"
#include "core/log.h"
#include "core/results/result.h"
#include "core/shipped.h"

struct request {
    const struct args *args; /* the result files */
    const char *output, *trace, *published;
    uint64_t rank;
};

static const struct flag flags[] = {
    {"--output", "FILE", "where to (default: report.html); an existing file is kept", FLAG_TEXT,
     offsetof(struct request, output), 0, 0},
    {"-o", "FILE", "the same", FLAG_TEXT, offsetof(struct request, output), 0, 0},
    {"--trace", "FILE", "show a rank of this trace (default: the first that the results name)", FLAG_TEXT,
     offsetof(struct request, trace), 0, 0},
    {"--rank", "N", "which rank of the trace (default: 0)", FLAG_COUNT, offsetof(struct request, rank), 0, 1e6},
    {"--published", "FILE", "published results to show beside (default: as shipped)", FLAG_TEXT,
     offsetof(struct request, published), 0, 0},
    {0},
};

static const struct usage usage = {
    .name = "report",
    .takes = "RESULTS... [options]",
    .about = "Writes one HTML file that needs no network: scenario and machine in words, the table, plots of time,\n"
             "speed-up, splits, crews and links, a timeline where there is a trace, and the command that repeats\n"
             "it (docs/report.md).",
    .example = "mkernel report results/local/quickstart-*.jsonl -o report.html",
    .flags = flags,
    .words = "result files",
    .words_min = 1,
    .words_max = WORDS_ANY,
};

/* ---- what goes in ---- */

/* The first trace that a point names and that is still there. */
static const char *find_trace(const struct records *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < files[i].point_count; k++) {
            const char *path = json_string_value(json_object_get(files[i].points[k].json, "trace"));

            if (path && access(path, R_OK) == 0)
                return path;
        }
    return NULL;
}

static enum status add_timeline(const struct request *q, const struct records *files, json_t *data)
{
    const char *path = q->trace ? q->trace : find_trace(files, q->args->word_count);
    json_t *timeline;

    if (!path)
        return ST_OK;
    TRY(page_timeline(path, (uint32_t)q->rank, &timeline));
    json_object_set_new(data, "timeline", timeline);
    return ST_OK;
}

static enum status add_published(const struct request *q, const struct records *files, json_t *data)
{
    char shipped[SHIPPED_PATH_BYTES];
    const char *path = q->published ? q->published : shipped;
    json_t *rows;

    snprintf(shipped, sizeof shipped, "%s/results/reference/fused-published.csv", shipped_folder());
    if (q->published && access(path, R_OK) != 0) {
        log_error("%s: cannot be read; expected a table like results/reference/fused-published.csv", path);
        return ST_INPUT;
    }
    TRY(page_published(path, files, q->args->word_count, &rows));
    json_object_set_new(data, "published", rows);
    return ST_OK;
}

static enum status write_report(const struct request *q, const struct records *files)
{
    json_t *data = page_data(files, q->args->word_count);
    char path[RESULT_PATH_BYTES];
    enum status st = ST_OK;

    if (json_array_size(json_object_get(data, "points")) == 0) {
        log_error("report: no point in any of the files");
        st = ST_INPUT;
    }
    if (st >= 0)
        st = add_timeline(q, files, data);
    if (st >= 0)
        st = add_published(q, files, data);
    if (st >= 0)
        st = page_write(data, q->output, path);
    if (st >= 0)
        log_info("report: %s", path);
    json_decref(data);
    return st;
}

static enum status report_files(const struct request *q)
{
    struct records *files = calloc(q->args->word_count, sizeof *files);
    enum status st = ST_OK;

    assert(files);
    for (size_t i = 0; st >= 0 && i < q->args->word_count; i++)
        st = records_load(q->args->words[i], &files[i]);
    if (st >= 0)
        st = write_report(q, files);
    for (size_t i = 0; i < q->args->word_count; i++)
        records_fini(&files[i]);
    free(files);
    return st;
}

int cmd_report(int argc, char **argv, const struct registry *r)
{
    struct args a;
    struct request q = {.args = &a, .output = "report.html"};
    int code = args_parse(&a, &usage, argc, argv, &q);

    (void)r;
    if (code < 0)
        code = status_exit_code(report_files(&q));
    args_fini(&a);
    return code;
}
