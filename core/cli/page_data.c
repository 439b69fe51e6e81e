#include <assert.h>
#include <string.h>

#include "core/cli/page.h"

static void copy(json_t *to, const json_t *from, const char *name)
{
    json_t *value = json_object_get(from, name);

    if (value)
        json_object_set(to, name, value);
}

static void copy_all(json_t *to, const json_t *from, const char *const names[])
{
    for (size_t i = 0; names[i]; i++)
        copy(to, from, names[i]);
}

/* ---- runs ---- */

static json_t *run_object(const json_t *run, const char *path)
{
    static const char *const names[] = {"version",       "commit",  "compiler",        "simgrid",       "date",
                                        "command",       "host",    "scenario",        "scenario_path", "scenario_text",
                                        "scenario_hash", "backend", "backend_options", "threshold",     "points",
                                        "source",        NULL};
    static const char *const machine[] = {"name",        "title",    "model_error", "gpus_per_node",
                                          "gpu.model",   "gpu.sms",  "nvlink.rate", "nvlink.multicast",
                                          "nic.per_gpu", "nic.rate", "nic.kind",    NULL};
    json_t *o = json_object(), *m = json_object();

    json_object_set_new(o, "file", json_string(path));
    copy_all(o, run, names);
    copy_all(m, json_object_get(run, "machine"), machine);
    json_object_set_new(o, "machine", m);
    return o;
}

/* ---- points ---- */

static bool names_the_point(const char *key)
{
    return strncmp(key, "problem.", 8) == 0 || strncmp(key, "world.", 6) == 0 || strncmp(key, "params.", 7) == 0 ||
           strcmp(key, "machine") == 0 || strncmp(key, "timing.", 7) == 0;
}

static json_t *keys_object(const json_t *resolved)
{
    json_t *o = json_object(), *value;
    const char *key;

    json_object_foreach ((json_t *)resolved, key, value)
        if (names_the_point(key))
            json_object_set(o, key, value);
    return o;
}

static json_t *point_object(const struct records_point *p, size_t first_run)
{
    static const char *const names[] = {"kernel",
                                        "variant",
                                        "program",
                                        "backend",
                                        "mode",
                                        "nodes",
                                        "gpus_per_node",
                                        "status",
                                        "verdict",
                                        "verified",
                                        "model",
                                        "choice",
                                        "report",
                                        "median_us",
                                        "tflops_per_gpu",
                                        "busbw_gb_per_s",
                                        "speedup_over_nccl",
                                        "tasks",
                                        "crews",
                                        "links",
                                        "trace",
                                        "source",
                                        NULL};
    json_t *o = json_object();

    copy_all(o, p->json, names);
    json_object_set_new(o, "run", json_integer((json_int_t)(first_run + p->run)));
    json_object_set_new(o, "keys", keys_object(json_object_get(p->json, "resolved")));
    json_object_set_new(o, "low_us", json_real(p->low_us));
    json_object_set_new(o, "high_us", json_real(p->high_us));
    json_object_set_new(o, "samples", json_integer((json_int_t)p->sample_count));
    return o;
}

json_t *page_data(const struct records *files, size_t count)
{
    json_t *data = json_object(), *runs = json_array(), *points = json_array();

    for (size_t i = 0; i < count; i++) {
        size_t first_run = json_array_size(runs);

        for (size_t k = 0; k < files[i].run_count; k++)
            json_array_append_new(runs, run_object(files[i].runs[k], files[i].path));
        for (size_t k = 0; k < files[i].point_count; k++)
            json_array_append_new(points, point_object(&files[i].points[k], first_run));
    }
    json_object_set_new(data, "runs", runs);
    json_object_set_new(data, "points", points);
    return data;
}
