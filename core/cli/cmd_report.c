#include "core/cli/commands.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cli/args.h"
#include "core/cli/page.h"
#include "core/log.h"
#include "core/parse/option.h"
#include "core/results/result.h"

enum { OUTPUT, OUTPUT_SHORT, TRACE, RANK, PUBLISHED };

static const struct flag flags[] = {
    [OUTPUT] = {"--output", "FILE", "where to (default: report.html); an existing file is kept"},
    [OUTPUT_SHORT] = {"-o", "FILE", "the same"},
    [TRACE] = {"--trace", "FILE", "show a rank of this trace (default: the first that the results name)"},
    [RANK] = {"--rank", "N", "which rank of the trace (default: 0)"},
    [PUBLISHED] = {"--published", "FILE", "published results to show beside (default: those of this repository)"},
    {NULL, NULL, NULL},
};

static const struct usage usage = {
    .line = "report RESULTS... [options]",
    .about = "Writes one HTML file that needs no network: scenario and machine in words, the table, plots of time,\n"
             "speed-up, splits, crews and links, a timeline where there is a trace, and the command that repeats\n"
             "it (docs/report.md).",
    .example = "mkernel report results/local/quickstart-*.jsonl -o report.html",
    .flags = flags,
};

struct request {
    const char **paths;
    size_t       path_count;
    const char  *output, *trace, *published;
    uint64_t     rank;
};

static int take_rank(const struct args *a, struct request *q)
{
    static const struct option row = {.name = "--rank", .type = OPTION_COUNT, .max = 1e6};
    char why[300];

    if (option_parse(&row, &q->rank, a->value, NULL, why, sizeof why) == ST_OK)
        return 0;
    return args_error(a, "--rank %s: %s", a->value, why);
}

static int take_flag(const struct args *a, int flag, struct request *q)
{
    switch (flag) {
    case OUTPUT:
    case OUTPUT_SHORT: q->output = a->value; return 0;
    case TRACE:        q->trace = a->value; return 0;
    case RANK:         return take_rank(a, q);
    case PUBLISHED:    q->published = a->value; return 0;
    case ARGS_WORD:    q->paths[q->path_count++] = a->value; return 0;
    default:           return status_exit_code(ST_INPUT); /* ARGS_BAD: logged */
    }
}

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
    const char *path = q->trace ? q->trace : find_trace(files, q->path_count);
    json_t *timeline;

    if (!path)
        return ST_OK;
    TRY(page_timeline(path, (uint32_t)q->rank, &timeline));
    json_object_set_new(data, "timeline", timeline);
    return ST_OK;
}

static enum status add_published(const struct request *q, const struct records *files, json_t *data)
{
    const char *path = q->published ? q->published : MKERNEL_SOURCE_DIR "/results/reference/fused-published.csv";
    json_t *rows;

    if (q->published && access(path, R_OK) != 0) {
        log_error("%s: cannot be read; expected a table like results/reference/fused-published.csv", path);
        return ST_INPUT;
    }
    TRY(page_published(path, files, q->path_count, &rows));
    json_object_set_new(data, "published", rows);
    return ST_OK;
}

static enum status write_report(const struct request *q, const struct records *files)
{
    json_t *data = page_data(files, q->path_count);
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
    struct records *files = calloc(q->path_count, sizeof *files);
    enum status st = ST_OK;

    assert(files);
    for (size_t i = 0; st >= 0 && i < q->path_count; i++)
        st = records_load(q->paths[i], &files[i]);
    if (st >= 0)
        st = write_report(q, files);
    for (size_t i = 0; i < q->path_count; i++)
        records_fini(&files[i]);
    free(files);
    return st;
}

static int parse(int argc, char **argv, struct request *q)
{
    struct args a;
    int flag;

    args_begin(&a, &usage, argc, argv);
    while ((flag = args_next(&a)) != ARGS_END) {
        int code = flag == ARGS_HELP ? 0 : take_flag(&a, flag, q);

        if (flag == ARGS_HELP || code != 0)
            return code;
    }
    if (q->path_count == 0)
        return args_error(&a, "of which results? mkernel %s", usage.line);
    return -1;
}

int cmd_report(int argc, char **argv, const struct registry *r)
{
    struct request q = {.paths = calloc((size_t)argc, sizeof *q.paths), .output = "report.html"};
    int code;

    (void)r;
    assert(q.paths);
    code = parse(argc, argv, &q);
    if (code < 0)
        code = status_exit_code(report_files(&q));
    free(q.paths);
    return code;
}
