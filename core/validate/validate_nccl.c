/* Published NCCL times.  A table (nccl-sources.csv) says of each hardware text which machine file
 * it is, whose constants it shares, and what is left out and why.
 *
 * The fit: machines of one kind of node ("hopper") share the constants inside a node, those of one
 * kind of network ("cx7") those between nodes; the former are fitted to rows of one node and then
 * held, the latter to rows of several.  Each source weighs the same however many rows it has.  The
 * machine file's values are the start, and a weak pull: what the rows do not determine stays. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/parse/csv.h"
#include "core/statistics/fit.h"
#include "core/log.h"
#include "core/validate/validate.h"

#define PATH_BYTES 1024
#define SOURCES_MAX                                                                                \
    128 /* rows of nccl-sources.csv: so many machines and twice as many fits at most */
#define KEYS_MAX FIT_PARAMETERS_MAX
#define MIB (UINT64_C(1) << 20)
#define FITS_MAX (2 * SOURCES_MAX)
#define ROUNDS 4
#define KNEE 0.04 /* sources differ by that much among themselves */
#define PRIOR 0.3
#define BYTES_MIN 256 /* below, nccl-tests' all-reduce has less than an element a rank */

/* A constant to fit, and where the fit starts, which must come from elsewhere: from NCCL's source
 * ("NCCL": its own table for Hopper) or from micro-benchmarks (results/reference/h200). */
struct key {
    const char *name;
    double guess; /* ps, bytes/s */
};

static const struct key node_keys[] = {
    {"nccl_flow.start", 6.6e6},       /* NCCL: base of a LL ring */
    {"nccl_flow.hop_ll", 0.6e6},      /* NCCL: LL over NVLink */
    {"nccl_flow.hop", 1.73e6},        /* a dependent hop between two GPUs */
    {"nccl_flow.step", 2.4e6},        /* the fixed part of a CTA's copy */
    {"nccl_flow.link_rate", 370.8e9}, /* NCCL: 18 links of 20.6 GB/s */
    {"nccl_flow.nvls_rate", 315e9},   /* NCCL: 0.85 of that */
    {"nccl_flow.nvls_step", 3.5e6},   /* two dependent hops */
    {NULL, 0},
};

static const struct key pair_keys[] = {
    {"nccl_flow.call", 13.2e6}, /* a kernel on each GPU, 6.6 us as above */
    {"nccl_flow.start", 6.6e6},
    {"nccl_flow.step", 2.4e6},
    {"nccl_flow.link_rate", 360e9}, /* copies by CTAs, both directions */
    {NULL, 0},
};

static const struct key net_keys[] = {
    {"nccl_flow.net_ll", 5e6},    /* NCCL: LL tree over the network */
    {"nccl_flow.net", 14e6},      /* NCCL: Simple over the network */
    {"nccl_flow.net_rate", 24e9}, /* half of a NIC: two channels fill it */
    {NULL, 0},
};

/* A measurement, in place and out of place taken together. */
struct sample {
    struct validate_row row;
    const struct machine *machine; /* as its file has it */
    char constants[VALIDATE_TEXT], network[VALIDATE_TEXT], algorithm[16];
    enum collective what;
    double sum_us;
    uint32_t times;
};

/* Constants inside a node as fitted without a source. */
struct node_fit {
    char family[VALIDATE_TEXT], without[VALIDATE_TEXT];
    struct machine constants;
    bool fitted; /* false: no other source */
};

struct campaign {
    const struct backend *backend;
    struct machine machines[SOURCES_MAX];
    uint32_t machine_count;
    struct sample *samples;
    uint32_t count, capacity, skipped;
    struct node_fit node_fits[FITS_MAX];
    uint32_t node_fit_count;
};

/* Columns of the two tables. */
struct sources {
    struct csv csv;
    uint32_t hardware, algorithm, source, machine, constants, network, bytes_min, why_not;
    uint32_t skipped[SOURCES_MAX]; /* measured rows, by row */
};

struct published {
    struct csv csv;
    uint32_t hardware, nodes, gpus, collective, algorithm, bytes, time;
};

static enum status open_sources(const char *folder, struct sources *s)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/nccl-sources.csv", folder);
    TRY(csv_read(path, &s->csv));
    TRY(csv_column(&s->csv, "hardware", &s->hardware));
    TRY(csv_column(&s->csv, "algorithm", &s->algorithm));
    TRY(csv_column(&s->csv, "source", &s->source));
    TRY(csv_column(&s->csv, "machine", &s->machine));
    TRY(csv_column(&s->csv, "constants", &s->constants));
    TRY(csv_column(&s->csv, "network", &s->network));
    TRY(csv_column(&s->csv, "bytes_min", &s->bytes_min));
    TRY(csv_column(&s->csv, "why_not", &s->why_not));
    if (s->csv.row_count <= SOURCES_MAX)
        return ST_OK;
    log_error("%s: more than %d rows", path, SOURCES_MAX - 1);
    return ST_INPUT;
}

static enum status open_published(const char *path, struct published *p)
{
    TRY(csv_read(path, &p->csv));
    TRY(csv_column(&p->csv, "hardware", &p->hardware));
    TRY(csv_column(&p->csv, "nodes", &p->nodes));
    TRY(csv_column(&p->csv, "gpus_per_node", &p->gpus));
    TRY(csv_column(&p->csv, "collective", &p->collective));
    TRY(csv_column(&p->csv, "algo_if_known", &p->algorithm));
    TRY(csv_column(&p->csv, "size_bytes", &p->bytes));
    return csv_column(&p->csv, "time_us", &p->time);
}

/* The first row that names this hardware and, where it names one, this algorithm. */
static uint32_t find_source(const struct sources *s, const char *hardware, const char *algorithm)
{
    for (uint32_t i = 1; i < s->csv.row_count; i++) {
        const char *only = csv_field(&s->csv, i, s->algorithm);
        if (strcmp(csv_field(&s->csv, i, s->hardware), hardware) == 0 &&
            (only[0] == '\0' || strcmp(only, algorithm) == 0))
            return i;
    }
    return 0;
}

static enum status machine_of(struct campaign *c, const char *name, const struct machine **out)
{
    for (uint32_t i = 0; i < c->machine_count; i++)
        if (strcmp(c->machines[i].name, name) == 0) {
            *out = &c->machines[i];
            return ST_OK;
        }
    assert(c->machine_count < SOURCES_MAX);
    TRY(machine_load(name, &c->machines[c->machine_count]));
    *out = &c->machines[c->machine_count++];
    return ST_OK;
}

static bool collective_of(const char *name, enum collective *out)
{
    static const char *const names[] = {
        [COLLECTIVE_ALL_GATHER] = "all_gather",
        [COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter",
        [COLLECTIVE_ALL_REDUCE] = "all_reduce",
        [COLLECTIVE_ALL_TO_ALL] = "alltoall",
    };

    for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0) {
            *out = (enum collective)i;
            return true;
        }
    return false;
}

/* The publications write "NVLS (maintainer statement)", "default (=RING, AWS tuner)", "NVLSTREE".
 */
static const char *algorithm_of(const char *text)
{
    if (strncmp(text, "RING", 4) == 0 || strstr(text, "(=RING") != NULL)
        return "ring";
    if (strcmp(text, "NVLSTREE") == 0)
        return "nvlstree";
    return strcmp(text, "NVLS") == 0 || strncmp(text, "NVLS (m", 7) == 0 ? "nvls" : "";
}

static void classify(struct validate_row *r)
{
    const char *size = r->bytes < MIB ? "< 1 MiB" : ">= 1 MiB";

    if (r->nodes > 1)
        size = r->bytes < 16 * MIB ? "< 16 MiB" : ">= 16 MiB";
    else if (r->gpus_per_node == 2)
        size = "all sizes";
    snprintf(r->size, sizeof(r->size), "%s", size);
    snprintf(r->place, sizeof(r->place), "%s",
             r->nodes > 1            ? "across nodes"
             : r->gpus_per_node == 2 ? "two GPUs"
                                     : "in a node");
}

static struct sample *sample_of(struct campaign *c, const struct sample *like)
{
    for (uint32_t i = 0; i < c->count; i++) {
        struct sample *s = &c->samples[i];
        if (s->what == like->what && s->machine == like->machine &&
            s->row.bytes == like->row.bytes && s->row.nodes == like->row.nodes &&
            s->row.gpus_per_node == like->row.gpus_per_node &&
            strcmp(s->row.source, like->row.source) == 0 &&
            strcmp(s->algorithm, like->algorithm) == 0)
            return s;
    }
    if (c->count == c->capacity) {
        c->capacity = c->capacity > 0 ? 2 * c->capacity : 256;
        c->samples = realloc(c->samples, c->capacity * sizeof(c->samples[0]));
        assert(c->samples != NULL);
    }
    c->samples[c->count] = *like;
    return &c->samples[c->count++];
}

static void copy_text(char *out, size_t out_bytes, const char *text)
{
    snprintf(out, out_bytes, "%s", text);
}

static enum status check_world(const struct published *p, uint32_t row, const struct sample *s)
{
    struct world w = {s->row.nodes, s->row.gpus_per_node};
    char why[256];

    if (machine_holds(s->machine, w, why, sizeof why) >= 0)
        return ST_OK;
    log_error("%s:%u: machine %s: %s", p->csv.path, row + 1, s->machine->name, why);
    return ST_INPUT;
}

/* Reads one row of `p`; false in *use: it is left out on account of row *from of the sources. */
static enum status read_sample(struct campaign *c, const struct published *p, uint32_t row,
                               const struct sources *s, struct sample *out, uint32_t *from,
                               bool *use)
{
    double nodes, gpus, bytes, us, least;

    *out = (struct sample){.times = 0};
    TRY(csv_number(&p->csv, row, p->nodes, &nodes));
    TRY(csv_number(&p->csv, row, p->gpus, &gpus));
    TRY(csv_number(&p->csv, row, p->bytes, &bytes));
    TRY(csv_number(&p->csv, row, p->time, &us));
    *from =
        find_source(s, csv_field(&p->csv, row, p->hardware), csv_field(&p->csv, row, p->algorithm));
    bool counts = nodes >= 1 && nodes <= 1e6 && gpus >= 1 && gpus <= 1e6;
    if (*from == 0 || us <= 0 || bytes < 1 || bytes > 1e15 || !counts) {
        log_error("%s:%u: %s", p->csv.path, row + 1,
                  *from == 0 ? "hardware that nccl-sources.csv does not list"
                             : "sizes, times and counts must be positive and not absurd");
        return ST_INPUT;
    }
    TRY(csv_number(&s->csv, *from, s->bytes_min, &least));
    *use = csv_field(&s->csv, *from, s->machine)[0] != '\0' && bytes >= least;
    if (!*use)
        return ST_OK;
    *use = collective_of(csv_field(&p->csv, row, p->collective), &out->what) && bytes >= BYTES_MIN;
    out->row.nodes = (uint32_t)nodes;
    out->row.gpus_per_node = (uint32_t)gpus;
    out->row.bytes = (uint64_t)bytes;
    out->sum_us = us;
    copy_text(out->row.set, sizeof out->row.set, "nccl");
    copy_text(out->row.what, sizeof out->row.what, csv_field(&p->csv, row, p->collective));
    copy_text(out->row.source, sizeof out->row.source, csv_field(&s->csv, *from, s->source));
    copy_text(out->constants, sizeof out->constants, csv_field(&s->csv, *from, s->constants));
    copy_text(out->network, sizeof out->network, csv_field(&s->csv, *from, s->network));
    copy_text(out->algorithm, sizeof out->algorithm,
              algorithm_of(csv_field(&p->csv, row, p->algorithm)));
    TRY(machine_of(c, csv_field(&s->csv, *from, s->machine), &out->machine));
    copy_text(out->row.machine, sizeof out->row.machine, out->machine->name);
    return check_world(p, row, out);
}

static enum status read_table(struct campaign *c, const char *path, struct sources *s)
{
    struct published p = {.csv = {0}};
    enum status st = open_published(path, &p);

    for (uint32_t i = 1; st >= 0 && i < p.csv.row_count; i++) {
        struct sample like, *found;
        uint32_t from;
        bool use;
        st = read_sample(c, &p, i, s, &like, &from, &use);
        if (st < 0)
            break;
        if (!use) {
            s->skipped[from] += like.row.what[0] == '\0'; /* not on account of the collective */
            c->skipped++;
            continue;
        }
        classify(&like.row);
        found = sample_of(c, &like);
        found->sum_us += found->times > 0 ? like.sum_us : 0;
        found->times++;
        found->row.measured_us = found->sum_us / found->times;
    }
    csv_free(&p.csv);
    return st;
}

static void say_skipped(const struct sources *s, const struct campaign *c)
{
    printf("# not replayed, %u rows:\n", c->skipped);
    printf("#   send and receive alone, and less than %d bytes\n", BYTES_MIN);
    for (uint32_t i = 1; i < s->csv.row_count; i++)
        if (s->skipped[i] > 0)
            printf("#   %u of %.60s: %s\n", s->skipped[i], csv_field(&s->csv, i, s->hardware),
                   csv_field(&s->csv, i, s->why_not));
}

/* ---- prediction ---- */

static bool predict(const struct campaign *c, const struct sample *s, const struct machine *m,
                    struct collective_times *out)
{
    struct collective_call call = {.machine = m,
                                   .world = {s->row.nodes, s->row.gpus_per_node},
                                   .what = s->what,
                                   .algorithm = s->algorithm,
                                   .bytes = s->row.bytes};

    return c->backend->collective(&call, out) >= 0;
}

/* ---- fitting ---- */

/* Which constants, and the rows they are fitted to. */
struct stage {
    const struct campaign *campaign;
    const struct key *keys;
    const char *family;
    bool across;         /* rows of several nodes, `family` being a network */
    const char *without; /* the source that is left out; "": none */
    struct machine base; /* constants of earlier stages */
    const struct sample **rows;
    double *weights;
    uint32_t count;
};

static const struct option *key_option(const char *name)
{
    const struct option *o = option_find(machine_options, name);

    assert(o != NULL);
    return o;
}

static double key_get(const struct machine *m, const char *name)
{
    const struct option *o = key_option(name);
    const char *at = (const char *)m + o->offset;

    return o->type == OPTION_RATE ? *(const double *)(const void *)at
                                  : (double)*(const uint64_t *)(const void *)at;
}

static void key_set(struct machine *m, const char *name, double value)
{
    const struct option *o = key_option(name);
    char *at = (char *)m + o->offset;

    if (o->type == OPTION_RATE)
        *(double *)(void *)at = value;
    else
        *(uint64_t *)(void *)at = (uint64_t)(value + 0.5);
}

static bool belongs(const struct stage *s, const struct sample *row)
{
    if (strcmp(row->row.source, s->without) == 0)
        return false;
    if ((row->row.nodes > 1) != s->across)
        return false;
    return strcmp(s->across ? row->network : row->constants, s->family) == 0;
}

static void collect_rows(struct stage *s)
{
    const struct campaign *c = s->campaign;

    s->rows = calloc(c->count + 1, sizeof(s->rows[0]));
    s->weights = calloc(c->count + 1, sizeof(s->weights[0]));
    assert(s->rows != NULL && s->weights != NULL);
    for (uint32_t i = 0; i < c->count; i++)
        if (belongs(s, &c->samples[i]))
            s->rows[s->count++] = &c->samples[i];
    for (uint32_t i = 0; i < s->count; i++) {
        double same = 0;
        for (uint32_t k = 0; k < s->count; k++)
            same += strcmp(s->rows[k]->row.source, s->rows[i]->row.source) == 0;
        s->weights[i] = 3 / sqrt(same); /* 1 for a source of nine rows */
    }
}

/* *m with the constants of `from` under those keys. */
static void take_keys(struct machine *m, const struct machine *from, const struct key *keys)
{
    for (uint32_t i = 0; keys[i].name != NULL; i++)
        key_set(m, keys[i].name, key_get(from, keys[i].name));
}

static void stage_residuals(void *arg, const double *parameters, double *residuals_out)
{
    struct stage *s = arg;
    struct machine m;

    for (uint32_t i = 0; i < s->count; i++) {
        struct collective_times times;
        m = *s->rows[i]->machine;
        take_keys(&m, &s->base, s->across ? node_keys : s->keys);
        for (uint32_t k = 0; s->keys[k].name != NULL; k++)
            key_set(&m, s->keys[k].name, parameters[k]);
        bool there = predict(s->campaign, s->rows[i], &m, &times);
        double predicted = there ? (double)times.flow_ps / 1e6 : s->rows[i]->row.measured_us;
        residuals_out[i] = s->weights[i] * log(predicted / s->rows[i]->row.measured_us);
    }
}

/* Fits the stage's keys in s->base; false when no rows are left to fit to. */
static bool stage_fit(struct stage *s)
{
    double parameters[KEYS_MAX];
    uint32_t keys = 0;

    collect_rows(s);
    for (; s->keys[keys].name != NULL; keys++)
        parameters[keys] = s->keys[keys].guess;
    struct fit fit = {.fn = stage_residuals,
                      .arg = s,
                      .parameter_count = keys,
                      .residual_count = s->count,
                      .rounds = ROUNDS,
                      .knee = KNEE,
                      .prior = PRIOR};
    if (s->count > 0) {
        fit_run(&fit, parameters);
        for (uint32_t k = 0; k < keys; k++)
            key_set(&s->base, s->keys[k].name, parameters[k]);
    }
    free(s->rows);
    free(s->weights);
    return s->count > 0;
}

static bool has_rows(const struct campaign *c, const char *family, const char *source)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->samples[i].row.nodes == 1 && strcmp(c->samples[i].constants, family) == 0 &&
            strcmp(c->samples[i].row.source, source) == 0)
            return true;
    return false;
}

static bool is_pair(const struct sample *s)
{
    return s->row.nodes == 1 && s->row.gpus_per_node == 2;
}

/* Leaving out a source without rows in a node leaves out nothing there: those fits are one. */
static const struct node_fit *fit_node(struct campaign *c, const struct sample *s,
                                       const char *without)
{
    if (without[0] != '\0' && !has_rows(c, s->constants, without))
        without = "";
    for (uint32_t i = 0; i < c->node_fit_count; i++)
        if (strcmp(c->node_fits[i].family, s->constants) == 0 &&
            strcmp(c->node_fits[i].without, without) == 0)
            return &c->node_fits[i];
    struct stage node = {.campaign = c,
                         .keys = is_pair(s) ? pair_keys : node_keys,
                         .family = s->constants,
                         .without = without,
                         .base = *s->machine};
    assert(c->node_fit_count < FITS_MAX);
    struct node_fit *fit = &c->node_fits[c->node_fit_count++];
    fit->fitted = stage_fit(&node);
    fit->constants = node.base;
    copy_text(fit->family, sizeof fit->family, s->constants);
    copy_text(fit->without, sizeof fit->without, without);
    return fit;
}

/* *out gets the constants for rows like `s`, fitted without a source ("": with all); false: there
 * was nothing to fit to. */
static bool fit_without(struct campaign *c, const struct sample *s, const char *without,
                        struct machine *out)
{
    const struct node_fit *node = fit_node(c, s, without);

    if (s->row.nodes == 1) {
        take_keys(out, &node->constants, is_pair(s) ? pair_keys : node_keys);
        return node->fitted;
    }
    struct stage net = {.campaign = c,
                        .keys = net_keys,
                        .family = s->network,
                        .across = true,
                        .without = without,
                        .base = *s->machine};
    take_keys(&net.base, &node->constants, node_keys);
    bool fitted = stage_fit(&net);
    take_keys(out, &net.base, node_keys);
    take_keys(out, &net.base, net_keys);
    return fitted;
}

/* A fit serves all rows of its source on machines of that kind. */
static bool same_fit(const struct sample *a, const struct sample *b)
{
    return strcmp(a->row.source, b->row.source) == 0 && (a->row.nodes > 1) == (b->row.nodes > 1) &&
           strcmp(a->constants, b->constants) == 0 && strcmp(a->network, b->network) == 0 &&
           a->machine == b->machine;
}

static void predict_rows(struct campaign *c, uint32_t first, bool *done)
{
    struct machine m = *c->samples[first].machine;
    bool held_out = fit_without(c, &c->samples[first], c->samples[first].row.source, &m);

    for (uint32_t i = first; i < c->count; i++) {
        struct sample *s = &c->samples[i];
        struct collective_times times;
        if (done[i] || !same_fit(s, &c->samples[first]))
            continue;
        done[i] = true;
        if (!predict(c, s, &m, &times)) {
            log_warn("%s, %s, %u x %u GPUs, %llu bytes: no model of %s for it", s->row.source,
                     s->row.what, s->row.nodes, s->row.gpus_per_node,
                     (unsigned long long)s->row.bytes, s->algorithm[0] ? s->algorithm : "NCCL");
            continue;
        }
        s->row.held_out = held_out;
        s->row.predicted_us = (double)times.flow_ps / 1e6;
        s->row.bare_us = (double)times.model_ps / 1e6;
        s->row.corrected_us = (double)times.corrected_ps / 1e6;
        copy_text(s->row.choice, sizeof s->row.choice, times.choice);
    }
}

static void predict_all(struct campaign *c)
{
    bool *done = calloc(c->count + 1, sizeof(done[0]));

    assert(done != NULL);
    for (uint32_t i = 0; i < c->count; i++)
        if (!done[i])
            predict_rows(c, i, done);
    free(done);
}

static const struct backend *find_backend(const struct registry *r)
{
    for (uint32_t i = 0; r->backends[i] != NULL; i++)
        if (r->backends[i]->collective != NULL)
            return r->backends[i];
    return NULL;
}

static enum status read_all(struct campaign *c, const char *folder)
{
    static const char *const tables[] = {"nccl-published.csv", "h200/nccl-2gpu.csv"};
    struct sources s = {.csv = {0}};
    enum status st = open_sources(folder, &s);
    char path[PATH_BYTES];

    for (uint32_t i = 0; st >= 0 && i < sizeof(tables) / sizeof(tables[0]); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, tables[i]);
        st = read_table(c, path, &s);
    }
    if (st >= 0)
        say_skipped(&s, c);
    csv_free(&s.csv);
    return st;
}

/* ---- calibration ---- */

static void print_keys(const struct machine *m, const struct key *keys)
{
    for (uint32_t i = 0; keys[i].name != NULL; i++) {
        const struct option *o = key_option(keys[i].name);
        double value = key_get(m, keys[i].name);
        if (o->type == OPTION_RATE)
            printf("  %s: %.1fGB/s\n", strchr(o->name, '.') + 1, value / 1e9);
        else
            printf("  %s: %.3fus\n", strchr(o->name, '.') + 1, value / 1e6);
    }
}

static bool printed_before(const struct campaign *c, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (c->samples[i].machine == c->samples[index].machine &&
            (c->samples[i].row.nodes > 1) == (c->samples[index].row.nodes > 1))
            return true;
    return false;
}

static void print_fits(struct campaign *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        const struct sample *s = &c->samples[i];
        struct machine m = *s->machine;
        if (printed_before(c, i))
            continue;
        fit_without(c, s, "", &m);
        printf("\n# machine %s, fitted to all rows %s of kind %s\nnccl_flow:\n", m.name,
               s->row.place, s->row.nodes > 1 ? s->network : s->constants);
        print_keys(&m, s->row.nodes > 1 ? net_keys : is_pair(s) ? pair_keys : node_keys);
    }
}

enum status validate_calibrate(const struct registry *r, const char *folder)
{
    struct campaign *c = calloc(1, sizeof(*c));

    assert(c != NULL);
    c->backend = find_backend(r);
    assert(c->backend != NULL);
    enum status st = read_all(c, folder);
    if (st >= 0)
        print_fits(c);
    free(c->samples);
    free(c);
    return st;
}

enum status validate_nccl(const struct registry *r, const char *folder, struct validation *v)
{
    struct campaign *c = calloc(1, sizeof(*c));
    enum status st;

    assert(c != NULL);
    c->backend = find_backend(r);
    assert(c->backend != NULL);
    st = read_all(c, folder);
    if (st >= 0)
        predict_all(c);
    for (uint32_t i = 0; st >= 0 && i < c->count; i++)
        if (c->samples[i].row.predicted_us > 0)
            validation_add(v, &c->samples[i].row);
    v->skipped += c->skipped;
    free(c->samples);
    free(c);
    return st;
}
