#include "core/imports/nccl_tests.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/imports/nccl_tests_rows.h"

enum status nccl_tests_refuse(const struct nccl_tests_reader *r, const char *what, const char *value)
{
    if (r->line > 0)
        log_error("%s:%zu: %s%s%.60s%s", r->path, r->line, what, value ? " \"" : "", value ? value : "",
                  value ? "\"" : "");
    else
        log_error("%s: %s%s%.60s%s", r->path, what, value ? " \"" : "", value ? value : "", value ? "\"" : "");
    return ST_INPUT;
}

void nccl_tests_name(struct nccl_tests_reader *r, const char *program)
{
    const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
    size_t size = strlen(name);

    if (size <= 5 || size - 5 >= sizeof r->collective || strcmp(name + size - 5, "_perf") != 0)
        return;
    if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz_")] != 0)
        return;
    memcpy(r->collective, name, size - 5);
    r->collective[size - 5] = 0;
}

enum status nccl_tests_device(struct nccl_tests_reader *r, const char *host, const char *gpu)
{
    struct nccl_tests *t = r->out;
    uint32_t i = 0;

    t->ranks++;
    if (!t->gpu[0])
        snprintf(t->gpu, sizeof t->gpu, "%s", gpu);
    while (i < t->nodes && strncmp(r->hosts[i], host, sizeof r->hosts[i] - 1) != 0)
        i++;
    if (i < t->nodes)
        return ST_OK;
    if (t->nodes == sizeof r->hosts / sizeof r->hosts[0])
        return nccl_tests_refuse(r, "expected at most 64 hosts, found one more:", host);
    snprintf(r->hosts[t->nodes++], sizeof r->hosts[0], "%s", host);
    return ST_OK;
}

/* Printed to two decimals, or to three digits where large. */
static bool fits(double algbw, double expected)
{
    return fabs(algbw - expected) <= 0.011 + 0.05 * expected;
}

static enum status check_row(const struct nccl_tests_reader *r, const struct nccl_tests_row *row)
{
    bool numbers =
        isfinite(row->time_us) && isfinite(row->algbw) && isfinite(row->busbw) && row->algbw >= 0 && row->busbw >= 0;

    if (!numbers || row->time_us <= 0 || row->time_us > 1e12)
        return nccl_tests_refuse(r, "expected a time above 0 us and bandwidths in GB/s", NULL);
    if (!row->collective[0])
        return nccl_tests_refuse(r, "which collective? The file does not name its test; --collective NAME does", NULL);
    if (!fits(row->algbw, (double)row->bytes / row->time_us / 1e3))
        return nccl_tests_refuse(r,
                                 "algbw is not size / time; expected the columns size, time, algbw, busbw as "
                                 "nccl-tests prints them",
                                 NULL);
    return ST_OK;
}

enum status nccl_tests_row_add(struct nccl_tests_reader *r, const struct nccl_tests_row *row)
{
    struct nccl_tests *t = r->out;

    TRY(check_row(r, row));
    if (t->count == NCCL_TESTS_ROWS_MAX)
        return nccl_tests_refuse(r, "expected at most 100000 results", NULL);
    if (t->count == t->space) {
        t->space = t->space ? 2 * t->space : 64;
        t->rows = realloc(t->rows, t->space * sizeof *t->rows);
        assert(t->rows);
    }
    t->rows[t->count++] = *row;
    return ST_OK;
}

static enum status parse(struct nccl_tests_reader *r, const char *text, size_t text_bytes)
{
    struct nccl_tests *t = r->out;
    size_t space = strspn(text, " \t\r\n");

    TRY(text[space] == '{' ? nccl_tests_read_json(r, text, text_bytes) : nccl_tests_read_text(r, text, text_bytes));
    r->line = 0;
    if (t->count == 0)
        return nccl_tests_refuse(r, "no result in it; expected what nccl-tests prints, or writes with -J", NULL);
    if (t->nodes > 0 && t->ranks % t->nodes != 0)
        return nccl_tests_refuse(r, "expected as many GPUs on each host", NULL);
    return ST_OK;
}

enum status nccl_tests_parse(const char *path, const char *text, size_t text_bytes, const char *collective,
                             struct nccl_tests *out)
{
    struct nccl_tests_reader *r = calloc(1, sizeof *r);
    enum status st;

    assert(r);
    *out = (struct nccl_tests){0};
    r->path = path;
    r->out = out;
    if (collective)
        snprintf(r->collective, sizeof r->collective, "%s", collective);
    st = parse(r, text, text_bytes);
    free(r);
    if (st < 0)
        nccl_tests_fini(out);
    return st;
}

void nccl_tests_fini(struct nccl_tests *t)
{
    free(t->rows);
    *t = (struct nccl_tests){0};
}
