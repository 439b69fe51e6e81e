#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/imports/nccl_tests_rows.h"

static const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text ? text : "";
}

static void word(char out[NCCL_TESTS_WORD], const char *text)
{
    snprintf(out, NCCL_TESTS_WORD, "%s", text + strspn(text, " "));
}

/* ---- head ---- */

static enum status take_devices(struct nccl_tests_reader *r, const json_t *root)
{
    const json_t *devices = json_object_get(json_object_get(root, "config"), "devices"), *d;
    size_t i;

    if (!devices)
        devices = json_object_get(root, "devices");
    json_array_foreach (devices, i, d)
        TRY(nccl_tests_device(r, text_of(d, "hostname"), text_of(d, "device_info")));
    return ST_OK;
}

static enum status take_head(struct nccl_tests_reader *r, const json_t *root)
{
    json_int_t nccl = json_integer_value(json_object_get(root, "nccl_version"));
    json_int_t iterations = json_integer_value(json_object_get(json_object_get(root, "config"), "iterations"));
    const char *program = json_string_value(json_array_get(json_object_get(root, "args"), 0));

    if (program)
        nccl_tests_name(r, program);
    if (nccl > 0 && nccl < 1000000)
        snprintf(r->out->version, sizeof r->out->version, "nccl %lld", (long long)nccl);
    if (iterations > 0)
        r->out->iterations = (uint64_t)iterations;
    return take_devices(r, root);
}

/* ---- results ---- */

static enum status number(const struct nccl_tests_reader *r, const json_t *o, const char *key, double *out)
{
    const json_t *v = json_object_get(o, key);

    if (!json_is_number(v))
        return nccl_tests_refuse(r, "expected a number as", key);
    *out = json_number_value(v);
    return ST_OK;
}

static enum status take_group(struct nccl_tests_reader *r, const json_t *o, struct nccl_tests_row *row, bool in_place)
{
    if (!o || json_is_null(o))
        return ST_OK; /* replays have no out-of-place results */
    row->in_place = in_place;
    TRY(number(r, o, json_object_get(o, "cpu_time") ? "cpu_time" : "time", &row->time_us));
    TRY(number(r, o, "alg_bw", &row->algbw));
    TRY(number(r, o, "bus_bw", &row->busbw));
    row->wrong = json_number_value(json_object_get(o, "nwrong")) > 0;
    return nccl_tests_row_add(r, row);
}

static enum status take_result(struct nccl_tests_reader *r, const json_t *o)
{
    struct nccl_tests_row row = {0};
    json_int_t size = json_integer_value(json_object_get(o, "size"));

    if (!json_is_integer(json_object_get(o, "size")) || size < 0 || size > (json_int_t)1 << 50)
        return nccl_tests_refuse(r, "expected a size in bytes as", "size");
    nccl_tests_name(r, text_of(o, "experiment_name"));
    row.bytes = (uint64_t)size;
    word(row.collective, r->collective);
    word(row.type, text_of(o, "type"));
    word(row.redop, text_of(o, "redop"));
    word(row.root, text_of(o, "root"));
    TRY(take_group(r, json_object_get(o, "out_of_place"), &row, false));
    return take_group(r, json_object_get(o, "in_place"), &row, true);
}

static enum status take_root(struct nccl_tests_reader *r, const json_t *root)
{
    const json_t *results = json_object_get(root, "results"), *o;
    size_t i;

    if (!json_is_array(results))
        return nccl_tests_refuse(r, "expected a list \"results\", as nccl-tests writes it with -J", NULL);
    TRY(take_head(r, root));
    json_array_foreach (results, i, o)
        TRY(take_result(r, o));
    return ST_OK;
}

enum status nccl_tests_read_json(struct nccl_tests_reader *r, const char *text, size_t text_bytes)
{
    json_error_t error;
    json_t *root = json_loadb(text, text_bytes, 0, &error);
    enum status st;

    if (!root) {
        log_error("%s:%d:%d: not JSON: %s", r->path, error.line, error.column, error.text);
        return ST_INPUT;
    }
    st = take_root(r, root);
    json_decref(root);
    return st;
}
