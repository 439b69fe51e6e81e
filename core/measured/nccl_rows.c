#include "core/measured/nccl_rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/parse/csv.h"
#include "core/log.h"

#define PATH_BYTES 1024
#define MIB (UINT64_C(1) << 20)
#define BYTES_MIN 256 /* below, nccl-tests' all-reduce has less than an element a rank */

/* Columns of the two tables. */
struct sources {
    struct csv csv;
    uint32_t hardware, algorithm, source, machine, constants, network, bytes_min, why_not;
    uint32_t skipped[NCCL_SOURCES_MAX]; /* measured rows, by row */
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
    if (s->csv.row_count <= NCCL_SOURCES_MAX)
        return ST_OK;
    log_error("%s: more than %d rows", path, NCCL_SOURCES_MAX - 1);
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

static enum status machine_of(struct nccl_rows *c, const char *name, const struct machine **out)
{
    for (uint32_t i = 0; i < c->machine_count; i++)
        if (strcmp(c->machines[i].name, name) == 0) {
            *out = &c->machines[i];
            return ST_OK;
        }
    assert(c->machine_count < NCCL_SOURCES_MAX);
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

static struct nccl_row *sample_of(struct nccl_rows *c, const struct nccl_row *like)
{
    for (uint32_t i = 0; i < c->count; i++) {
        struct nccl_row *s = &c->rows[i];
        if (s->what == like->what && s->machine == like->machine && s->row.bytes == like->row.bytes &&
            s->row.nodes == like->row.nodes && s->row.gpus_per_node == like->row.gpus_per_node &&
            strcmp(s->row.source, like->row.source) == 0 && strcmp(s->algorithm, like->algorithm) == 0)
            return s;
    }
    if (c->count == c->capacity) {
        c->capacity = c->capacity > 0 ? 2 * c->capacity : 256;
        c->rows = realloc(c->rows, c->capacity * sizeof(c->rows[0]));
        assert(c->rows != NULL);
    }
    c->rows[c->count] = *like;
    return &c->rows[c->count++];
}

static void copy_text(char *out, size_t out_bytes, const char *text)
{
    snprintf(out, out_bytes, "%s", text);
}

static enum status check_world(const struct published *p, uint32_t row, const struct nccl_row *s)
{
    struct world w = {s->row.nodes, s->row.gpus_per_node};
    char why[256];

    if (machine_holds(s->machine, w, why, sizeof why) >= 0)
        return ST_OK;
    log_error("%s:%u: machine %s: %s", p->csv.path, row + 1, s->machine->name, why);
    return ST_INPUT;
}

/* Reads one row of `p`; false in *use: it is left out on account of row *from of the sources. */
static enum status read_sample(struct nccl_rows *c, const struct published *p, uint32_t row, const struct sources *s,
                               struct nccl_row *out, uint32_t *from, bool *use)
{
    double nodes, gpus, bytes, us, least;

    *out = (struct nccl_row){.times = 0};
    TRY(csv_number(&p->csv, row, p->nodes, &nodes));
    TRY(csv_number(&p->csv, row, p->gpus, &gpus));
    TRY(csv_number(&p->csv, row, p->bytes, &bytes));
    TRY(csv_number(&p->csv, row, p->time, &us));
    *from = find_source(s, csv_field(&p->csv, row, p->hardware), csv_field(&p->csv, row, p->algorithm));
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
    copy_text(out->algorithm, sizeof out->algorithm, algorithm_of(csv_field(&p->csv, row, p->algorithm)));
    TRY(machine_of(c, csv_field(&s->csv, *from, s->machine), &out->machine));
    copy_text(out->row.machine, sizeof out->row.machine, out->machine->name);
    return check_world(p, row, out);
}

static enum status read_table(struct nccl_rows *c, const char *path, struct sources *s)
{
    struct published p = {.csv = {0}};
    enum status st = open_published(path, &p);

    for (uint32_t i = 1; st >= 0 && i < p.csv.row_count; i++) {
        struct nccl_row like, *found;
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

static void say_skipped(const struct sources *s, const struct nccl_rows *c, FILE *f)
{
    fprintf(f, "# not replayed, %u rows:\n", c->skipped);
    fprintf(f, "#   send and receive alone, and less than %d bytes\n", BYTES_MIN);
    for (uint32_t i = 1; i < s->csv.row_count; i++)
        if (s->skipped[i] > 0)
            fprintf(f, "#   %u of %.60s: %s\n", s->skipped[i], csv_field(&s->csv, i, s->hardware),
                    csv_field(&s->csv, i, s->why_not));
}

bool nccl_row_predict(const struct nccl_rows *c, const struct nccl_row *s, const struct machine *m,
                      struct collective_times *out)
{
    struct collective_call call = {.machine = m,
                                   .world = {s->row.nodes, s->row.gpus_per_node},
                                   .what = s->what,
                                   .algorithm = s->algorithm,
                                   .bytes = s->row.bytes};

    return c->backend->collective(&call, out) >= 0;
}

bool nccl_row_is_pair(const struct nccl_row *s)
{
    return s->row.nodes == 1 && s->row.gpus_per_node == 2;
}

static const struct backend *find_backend(const struct registry *r)
{
    for (uint32_t i = 0; r->backends[i] != NULL; i++)
        if (r->backends[i]->collective != NULL)
            return r->backends[i];
    return NULL;
}

static enum status read_all(struct nccl_rows *c, const char *folder, FILE *said)
{
    static const char *const tables[] = {"nccl-published.csv", "h200/nccl-2gpu.csv"};
    struct sources s = {.csv = {0}};
    enum status st = open_sources(folder, &s);
    char path[PATH_BYTES];

    for (uint32_t i = 0; st >= 0 && i < sizeof(tables) / sizeof(tables[0]); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, tables[i]);
        st = read_table(c, path, &s);
    }
    if (st >= 0 && said)
        say_skipped(&s, c, said);
    csv_free(&s.csv);
    return st;
}

enum status nccl_rows_read(const struct registry *r, const char *folder, FILE *said, struct nccl_rows *out)
{
    out->backend = find_backend(r);
    assert(out->backend != NULL);
    return read_all(out, folder, said);
}

void nccl_rows_free(struct nccl_rows *c)
{
    free(c->rows);
    *c = (struct nccl_rows){0};
}
