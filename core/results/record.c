#include "core/results/record.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/build.h"
#include "core/run/metrics.h"
#include "core/results/published.h"

const char *record_program_name(enum program_choice p)
{
    static const char *const names[] = {"fused", "unfused", "nccl", "streams"};

    return names[p];
}

const char *record_mode_name(enum timing_mode m)
{
    return m == TIMING_ISOLATED ? "isolated" : "pipelined";
}

void record_date(bool compact, char *out, size_t out_bytes)
{
    time_t now = time(NULL);
    struct tm utc;

    gmtime_r(&now, &utc);
    strftime(out, out_bytes, compact ? "%Y%m%dT%H%M%SZ" : "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value ? value : json_null());
}

static void set_text(json_t *object, const char *key, const char *text)
{
    set(object, key, json_string(text)); /* null where the text is not UTF-8 */
}

static void set_count(json_t *object, const char *key, uint64_t value)
{
    set(object, key, json_integer((json_int_t)value));
}

static char *finish(json_t *object)
{
    char *line = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12));

    assert(line);
    json_decref(object);
    return line;
}

static json_t *record_begin(const char *kind)
{
    json_t *o = json_object();

    set_text(o, "record", kind);
    return o;
}

static json_t *option_value(const struct option *o, const void *base)
{
    const char *field = (const char *)base + o->offset;
    char text[256];

    switch (o->type) {
    case OPTION_COUNT: return json_integer((json_int_t) * (const uint64_t *)field);
    case OPTION_NUMBER: return json_real(*(const double *)field);
    case OPTION_BOOL: return json_boolean(*(const bool *)field);
    default: option_print(o, base, text, sizeof text); return json_string(text);
    }
}

/* Every key of a table: counts and switches as such, the rest as a user would write it. */
static json_t *options(const struct option *table, const void *base)
{
    json_t *o = json_object();

    for (; base && table && table->name; table++)
        set(o, table->name, option_value(table, base));
    return o;
}

/* ---- the first line ---- */

static void set_scenario(json_t *o, const struct scenario *s)
{
    const char *text = s->text ? s->text : "";
    uint64_t h = 14695981039346656037u; /* FNV-1a, 64 bits */
    char hash[40];

    for (const char *c = text; *c; c++)
        h = (h ^ (unsigned char)*c) * 1099511628211u;
    snprintf(hash, sizeof hash, "fnv1a64:%016" PRIx64, h);
    set_text(o, "scenario", s->name);
    set_text(o, "scenario_path", s->path);
    set_text(o, "scenario_hash", hash);
    set_text(o, "scenario_text", text);
}

static json_t *host_object(const struct host *h)
{
    json_t *o = json_object();

    set_text(o, "name", h->name);
    set_text(o, "cpu", h->cpu);
    set_text(o, "kernel", h->kernel);
    set_count(o, "cores", h->cores);
    set_count(o, "memory_bytes", h->memory_bytes);
    return o;
}

static json_t *node_hosts(const struct nodes *n)
{
    json_t *all = json_array();

    for (uint32_t i = 0; i < n->count; i++)
        json_array_append_new(all, json_string(n->hosts[i]));
    return all;
}

char *record_run(const struct scenario *s, const struct host *host, const struct nodes *nodes, int argc,
                 char *const *argv)
{
    json_t *o = record_begin("run"), *command = json_array(), *machine;
    char date[40];

    record_date(false, date, sizeof date);
    set_count(o, "schema", RECORD_SCHEMA);
    set_text(o, "version", build_version);
    set_text(o, "commit", build_commit);
    set_text(o, "compiler", build_compiler);
    set_text(o, "simgrid", build_simgrid);
    set_text(o, "date", date);
    for (int i = 0; i < argc; i++)
        json_array_append_new(command, json_string(argv[i]));
    set(o, "command", command);
    set(o, "host", host_object(host));
    if (nodes->count > 1)
        set(o, "nodes", node_hosts(nodes));
    set_scenario(o, s);
    machine = options(machine_options, &s->machine);
    set_text(machine, "name", s->machine.name);
    set(o, "machine", machine);
    set_text(o, "backend", s->backend->name);
    set(o, "backend_options", options(s->backend->options, s->backend_options));
    if (s->threshold > 0)
        set(o, "threshold", json_real(s->threshold));
    set_count(o, "points", s->point_count);
    return finish(o);
}

/* ---- checks and points ---- */

static void set_resolved(void *arg, const char *key, const char *value)
{
    set_text(arg, key, value);
}

static void set_param(void *arg, const char *key, const char *value)
{
    if (strncmp(key, "params.", 7) == 0)
        set_text(arg, key + 7, value);
}

static void set_point_keys(json_t *o, const struct run_unit *u)
{
    const struct point *p = u->point;

    set_text(o, "kernel", p->kernel->name);
    set_text(o, "variant", p->variant);
    set_text(o, "program", record_program_name(p->program));
    for (const struct option *key = p->kernel->family->keys; key->name; key++)
        set(o, key->name, option_value(key, &u->problem));
    set_count(o, "nodes", p->world.nodes);
    set_count(o, "gpus_per_node", p->world.gpus_per_node);
    set_text(o, "mode", record_mode_name(u->timing.mode));
    set_count(o, "seed", p->seed);
    set_text(o, "backend", u->backend->name);
}

static double us(uint64_t ps)
{
    return (double)ps / 1e6;
}

static json_t *waiting_object(const struct run_result *r, const struct crew_result *crew)
{
    json_t *o = json_object();

    for (uint32_t i = 0; i < r->cause_count; i++)
        if (crew->waiting_ps[i])
            set(o, r->causes[i], json_real(us(crew->waiting_ps[i])));
    return o;
}

static json_t *crew_objects(const struct run_result *r)
{
    json_t *all = json_array();

    for (uint32_t i = 0; i < r->crew_count; i++) {
        const struct crew_result *crew = &r->crews[i];
        json_t *o = json_object();

        set_text(o, "name", crew->name);
        set_count(o, "workers", crew->workers);
        set(o, "busy_us", json_real(us(crew->busy_ps)));
        set(o, "waiting_us", waiting_object(r, crew));
        set(o, "idle_us", json_real(us(crew->idle_ps)));
        json_array_append_new(all, o);
    }
    return all;
}

static json_t *link_objects(const struct run_result *r)
{
    json_t *all = json_array();

    for (uint32_t i = 0; i < r->link_count; i++) {
        json_t *o = json_object();

        set_text(o, "name", r->links[i].name);
        set(o, "mean_busy", json_real(r->links[i].mean_busy));
        set(o, "max_busy", json_real(r->links[i].max_busy));
        set_count(o, "bytes", r->links[i].bytes);
        json_array_append_new(all, o);
    }
    return all;
}

/* What proxies saw; simulated ones are in the times already. */
static json_t *proxy_object(const struct run_result *r)
{
    const struct histogram *h = &r->proxy.latency;
    json_t *o = json_object();

    set(o, "depth_mean", json_real((double)r->proxy.depth_sum / (double)h->count));
    set_count(o, "depth_max", r->proxy.depth_max);
    set(o, "latency_p50_us", json_real((double)histogram_quantile(h, 0.50) / 1e3));
    set(o, "latency_p95_us", json_real((double)histogram_quantile(h, 0.95) / 1e3));
    set(o, "latency_p99_us", json_real((double)histogram_quantile(h, 0.99) / 1e3));
    return o;
}

static void set_outcome(json_t *o, const struct run_result *r)
{
    set_text(o, "status", status_text(r->status));
    set_text(o, "model", r->model);
    if (r->choice[0])
        set_text(o, "choice", r->choice);
    if (r->flow_ps > 0) {
        set(o, "collective_us", json_real(us(r->collective_ps)));
        set(o, "collective_bare_us", json_real(us(r->bare_ps)));
        set(o, "collective_flow_us", json_real(us(r->flow_ps)));
    }
    if (r->status < 0)
        set_text(o, "report", r->report);
    set_count(o, "epochs", r->epochs);
    set_count(o, "tasks", r->tasks);
    set_count(o, "puts", r->puts);
    set_count(o, "flows", r->flows);
    set_count(o, "put_bytes", r->put_bytes);
    if (r->put_control_bytes)
        set_count(o, "put_control_bytes", r->put_control_bytes);
    if (r->proxy.latency.count)
        set(o, "proxy", proxy_object(r));
    if (r->rows_dropped)
        set_count(o, "rows_dropped", r->rows_dropped);
    set_count(o, "elements_checked", r->elements_checked);
    set_count(o, "elements_wrong", r->elements_wrong);
    set(o, "cpu_seconds", json_real(r->cpu_seconds));
    set_count(o, "peak_bytes", r->peak_bytes);
}

/* What the same epochs' routing asks the network to carry, beside put_bytes, which it carried. */
static void set_traffic(json_t *o, const struct run_unit *u)
{
    const struct point *p = u->point;
    uint64_t sparse = 0, dense = 0;

    if (!p->kernel->traffic || point_is_baseline(p) || p->world.nodes == 1)
        return;
    for (uint64_t epoch = 1; epoch <= u->result->epochs; epoch++) {
        struct traffic t;

        p->kernel->traffic(&u->problem, p->world, p->seed, epoch, 1, &t);
        sparse += t.sparse_bytes;
        dense += t.dense_bytes;
    }
    set_count(o, "put_bytes_sparse", sparse);
    set_count(o, "put_bytes_dense", dense);
}

char *record_check(const struct scenario *s, const struct run_unit *check)
{
    json_t *o = record_begin("check"), *params = json_object();

    set_point_keys(o, check);
    scenario_point_keys(s, check->point, set_param, params);
    set(o, "params", params);
    if (check->result)
        set_outcome(o, check->result);
    return finish(o);
}

static void set_times(json_t *o, const struct compare *c, uint64_t index)
{
    const struct run_unit *u = &c->points[index];
    const struct stats *t = &c->times[index];
    const struct kernel *kernel = u->point->kernel;
    json_t *samples = json_array();
    char formula[160];

    for (uint32_t i = 0; i < u->result->sample_count; i++)
        json_array_append_new(samples, json_real(us(u->result->sample_ps[i])));
    set(o, "samples_us", samples);
    set(o, "median_us", json_real(us(t->median)));
    set(o, "p95_us", json_real(us(t->p95)));
    set(o, "min_us", json_real(us(t->min)));
    set(o, "tflops_per_gpu", json_real(metrics_tflops(kernel, &u->problem, u->point->world, t->median)));
    snprintf(formula, sizeof formula, METRICS_TFLOPS_FORMULA, kernel->family->flops_formula);
    set_text(o, "tflops_formula", formula);
    set(o, "busbw_gb_per_s", json_real(metrics_busbw(kernel, &u->problem, u->point->world, t->median)));
    if (compare_speedup(c, index) > 0)
        set(o, "speedup_over_nccl", json_real(compare_speedup(c, index)));
}

static void set_published(json_t *o, const struct scenario *s, const struct compare *c, uint64_t index)
{
    struct published_value v;

    if (!published_find(s, c->points[index].point, &v))
        return;
    set(o, "published_us", json_real(v.us));
    set(o, "published_low_us", json_real(v.low_us));
    set(o, "published_high_us", json_real(v.high_us));
    set_count(o, "published_sets", v.sets);
}

char *record_point(const struct scenario *s, const struct compare *c, uint64_t index)
{
    const struct run_unit *u = &c->points[index];
    json_t *o = record_begin("point"), *resolved = json_object();
    char verified[128];

    set_count(o, "index", index);
    set_point_keys(o, u);
    scenario_point_keys(s, u->point, set_resolved, resolved);
    set(o, "resolved", resolved);
    set_text(o, "verdict", compare_verdict(c, index));
    run_unit_verified(u, verified, sizeof verified);
    set_text(o, "verified", verified);
    if (!u->result)
        return finish(o);
    set_times(o, c, index);
    set_published(o, s, c, index);
    set_outcome(o, u->result);
    set_traffic(o, u);
    if (u->result->trace.path[0])
        set_text(o, "trace", u->result->trace.path);
    set(o, "crews", crew_objects(u->result));
    set(o, "links", link_objects(u->result));
    return finish(o);
}

/* ---- what a search found ---- */

static void set_unit_time(json_t *o, const char *key, const struct tune *t, uint64_t unit)
{
    if (unit != TUNE_NONE)
        set(o, key, json_real(us(tune_time_ps(&t->units[unit]))));
}

static json_t *axis_objects(const struct tune_space *s)
{
    json_t *all = json_object();

    for (uint32_t i = 0; i < s->axis_count; i++) {
        const struct tune_axis *a = &s->axes[i];
        json_t *values = json_array();

        for (uint32_t v = 0; v < a->count; v++)
            json_array_append_new(values, json_string(a->values[v]));
        set(all, a->option ? a->option->name : "program", values);
    }
    return all;
}

char *record_tuned(const struct tune *t, uint64_t index, uint64_t seed)
{
    const struct tune_problem *p = &t->problems[index];
    json_t *o = record_begin("tuned"), *params = json_object();

    set_point_keys(o, &t->units[p->best]);
    scenario_point_keys(t->scenario, t->units[p->program].point, set_param, params);
    set_unit_time(o, "median_us", t, p->best);
    set_unit_time(o, "program_us", t, p->program);
    set_text(o, "program_form", record_program_name(t->units[p->program].point->program));
    set(o, "program_params", params);
    set_unit_time(o, "start_us", t, p->start);
    set_unit_time(o, "nccl_us", t, p->nccl);
    set_unit_time(o, "streams_us", t, p->streams);
    set_count(o, "timed", p->timed);
    set_count(o, "refused", p->refused);
    set_text(o, "ended", tune_end_name(p->end));
    set_count(o, "search_seed", seed);
    set(o, "space", axis_objects(&p->space));
    return finish(o);
}

char *record_end(uint64_t points, uint64_t failed, bool interrupted)
{
    json_t *o = record_begin("end");

    set_count(o, "points", points);
    set_count(o, "failed", failed);
    set(o, "interrupted", json_boolean(interrupted));
    return finish(o);
}
