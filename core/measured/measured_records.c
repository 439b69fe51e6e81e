/* Records of the cuda backend's benchmarks, a JSON object a line: plain GEMMs and attention, beside the library, and
 * attention in chains of tasks. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/log.h"
#include "core/measured/measured.h"

#define FILE_BYTES_MAX (64u << 20)

/* Contestants of a benchmark that the models know.  Constants are fitted to what computes with them: GEMM to the
 * programs, attention to the library and to programs over it, without a mask (tasks of a causal one differ in length,
 * and order matters). */
static const struct contestant {
    const char *bench, *name, *what;
    enum measured_kind kind;
    enum program_choice program;
    bool fitted;
} contestants[] = {
    {"gemm", "program", "program", MEASURED_GEMM, PROGRAM_FUSED, true},
    {"gemm", "cublas", "cuBLAS", MEASURED_GEMM, PROGRAM_NCCL, false},
    {"attention", "cudnn", "cuDNN", MEASURED_ATTENTION, PROGRAM_NCCL, true},
    {"attention", "program", "program", MEASURED_ATTENTION, PROGRAM_FUSED, true},
};

static const char *text_of(const json_t *record, const char *key)
{
    const char *text = json_string_value(json_object_get(record, key));

    return text ? text : "";
}

static const struct contestant *find_contestant(const json_t *record)
{
    for (size_t i = 0; i < sizeof contestants / sizeof *contestants; i++)
        if (strcmp(contestants[i].bench, text_of(record, "bench")) == 0 &&
            strcmp(contestants[i].name, text_of(record, "contestant")) == 0)
            return &contestants[i];
    return NULL;
}

#define EXTENT "%8llu"

static bool gemm_shape(const char *shape, struct measured *r)
{
    unsigned long long m, n, k;
    int used = 0;

    if (sscanf(shape, EXTENT "x" EXTENT "x" EXTENT "%n", &m, &n, &k, &used) != 3 || shape[used] || !m || !n || !k)
        return false;
    r->problem = (struct problem){.m = m, .n = n, .k = k};
    snprintf(r->detail, sizeof r->detail, "%llu x %llu x %llu", m, n, k);
    return true;
}

/* batch x heads x sequence x head dimension */
static bool attention_shape(const char *shape, struct measured *r)
{
    unsigned long long b, h, s, d;
    int used = 0;

    if (sscanf(shape, EXTENT "x" EXTENT "x" EXTENT "x" EXTENT "%n", &b, &h, &s, &d, &used) != 4)
        return false;
    bool causal = strcmp(shape + used, " causal") == 0;
    if ((shape[used] && !causal) || !b || !h || !s || !d)
        return false;
    r->problem.attention =
        (struct attention_problem){.seq = s, .batch = b, .heads = h, .kv_heads = h, .head_dim = d, .causal = causal};
    r->fitted = r->fitted && !causal;
    snprintf(r->detail, sizeof r->detail, "%llu x %llu x %llu x %llu%s", b, h, s, d, causal ? " causal" : "");
    return true;
}

static bool read_record(const json_t *record, const struct contestant *c, struct measured_rows *rows)
{
    struct measured r = {.kind = c->kind, .program = c->program, .fitted = c->fitted};
    const char *shape = text_of(record, "shape");
    double ms = json_number_value(json_object_get(record, "median_ms"));
    char why[200];

    snprintf(r.what, sizeof r.what, "%s", c->what);
    if (!(c->kind == MEASURED_GEMM ? gemm_shape(shape, &r) : attention_shape(shape, &r)))
        return false;
    const struct problem_family *f = c->kind == MEASURED_GEMM ? &problem_gemm : &problem_attention;
    if (!(ms > 1e-6 && ms < 1e6) || !f->fits(&r.problem, (struct world){1, 1}, why, sizeof why))
        return false;
    r.value = ms * 1e3;
    measured_add(rows, &r);
    return true;
}

/* Attention over the same keys by one task a tile. */
struct whole_walk {
    char shape[64];
    double ms;
};

/* "chain of 4": the time that each task after a tile's first adds.  Others, and what has a mask, are left out. */
static bool read_walk(const json_t *record, const struct machine *m, struct whole_walk *whole,
                      struct measured_rows *rows)
{
    const char *shape = text_of(record, "shape"), *who = text_of(record, "contestant");
    double ms = json_number_value(json_object_get(record, "median_ms"));
    unsigned long long heads, seq, dim, links;
    int used = 0;

    if (sscanf(shape, EXTENT "x" EXTENT "x" EXTENT "%n", &heads, &seq, &dim, &used) != 3 || !heads || !seq ||
        !(ms > 1e-6 && ms < 1e6))
        return false;
    if (strcmp(who, "whole") == 0) {
        snprintf(whole->shape, sizeof whole->shape, "%s", shape);
        whole->ms = ms;
    }
    if (shape[used] || sscanf(who, "chain of %8llu", &links) != 1)
        return true;
    if (links < 2 || strcmp(whole->shape, shape) != 0 || ms <= whole->ms)
        return false;
    double more = (double)(links - 1) * (double)heads * (double)ceil_div(seq, m->attention.tile_queries);
    struct measured r = {.kind = MEASURED_QUANTITY, .fitted = true, .quantity = quantity_find("chained task")};
    r.value = (ms - whole->ms) * 1e3 * (double)m->gpu.sms / more;
    snprintf(r.what, sizeof r.what, "%s", r.quantity->name);
    snprintf(r.detail, sizeof r.detail, "%s in %llu tasks", shape, links);
    measured_add(rows, &r);
    return true;
}

/* "NVIDIA H200" is a machine's "H200". */
static enum status check_gpu(const json_t *record, const struct machine *m, const char *path, uint32_t line)
{
    const char *gpu = text_of(record, "gpu");

    if (!gpu[0] || strstr(gpu, m->gpu.model))
        return ST_OK;
    log_error("%s:%u: measured on %.60s; machine %s has GPUs of model %s", path, line, gpu, m->name, m->gpu.model);
    return ST_INPUT;
}

static enum status refuse_record(const json_t *record, const char *path, uint32_t line)
{
    log_error("%s:%u: %s of shape \"%.60s\" and median_ms %g is nothing that can be simulated", path, line,
              text_of(record, "bench"), text_of(record, "shape"),
              json_number_value(json_object_get(record, "median_ms")));
    return ST_INPUT;
}

static enum status read_line(const char *text, const struct machine *m, const char *path, uint32_t line,
                             struct whole_walk *whole, struct measured_rows *rows)
{
    json_error_t error;
    json_t *record = json_loads(text, 0, &error);
    const struct contestant *c = find_contestant(record);
    enum status st = ST_OK;

    if (!json_is_object(record)) {
        log_error("%s:%u:%d: %s", path, line, error.column, record ? "no JSON object" : error.text);
        st = ST_INPUT;
    } else if (strcmp(text_of(record, "record"), "gpu_run") == 0) {
        st = check_gpu(record, m, path, line);
    } else if (c && !read_record(record, c, rows)) {
        st = refuse_record(record, path, line);
    } else if (strcmp(text_of(record, "bench"), "walks") == 0 && !read_walk(record, m, whole, rows)) {
        st = refuse_record(record, path, line);
    }
    json_decref(record);
    return st;
}

enum status measured_read_records(const char *path, const struct machine *m, struct measured_rows *rows)
{
    char *text, *rest, *line;
    struct whole_walk whole = {.ms = 0};
    size_t size;
    uint32_t number = 0;
    enum status st = ST_OK;

    TRY(file_read(path, "records, one JSON object a line, at most 64 MiB", FILE_BYTES_MAX, &text, &size));
    rest = text;
    while (st >= 0 && (line = strsep(&rest, "\n")) != NULL) {
        number++;
        if (line[0])
            st = read_line(line, m, path, number, &whole, rows);
    }
    free(text);
    return st;
}
