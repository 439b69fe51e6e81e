#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/cli/export.h"
#include "core/log.h"
#include "core/results/result.h"

#define RANKS_MAX 65536

/* Links are those of sim/fabric.h.  Shortest paths: inside a node over its switch, two links; between nodes over
 * both NICs and the two links to the network, four; a path through two switches there is none.  The format wants
 * hosts and routers first, then links, then routes. */
static void put_nodes(FILE *f, struct world w)
{
    for (uint32_t rank = 0; rank < world_ranks(w); rank++)
        fprintf(f, "    <host id=\"gpu%" PRIu32 "\" speed=\"1f\"/>\n", rank);
    for (uint32_t node = 0; node < w.nodes && w.gpus_per_node > 1; node++)
        fprintf(f, "    <router id=\"switch%" PRIu32 "\"/>\n", node);
    if (w.nodes == 1)
        return;
    fprintf(f, "    <router id=\"network\"/>\n");
    for (uint32_t rank = 0; rank < world_ranks(w); rank++)
        fprintf(f, "    <router id=\"port%" PRIu32 "\"/>\n", rank);
}

static void put_link(FILE *f, const char *name, uint32_t rank, double rate, uint64_t latency_ps)
{
    fprintf(f,
            "    <link id=\"%s%" PRIu32 "\" bandwidth=\"%.0fBps\" latency=\"%" PRIu64 "ps\" "
            "sharing_policy=\"SPLITDUPLEX\"/>\n",
            name, rank, rate, latency_ps / 2);
}

static void put_links(FILE *f, const struct machine *m, struct world w)
{
    for (uint32_t rank = 0; rank < world_ranks(w) && w.gpus_per_node > 1; rank++)
        put_link(f, "nvlink", rank, m->nvlink.rate, m->nvlink.latency_ps);
    for (uint32_t rank = 0; rank < world_ranks(w) && w.nodes > 1; rank++)
        put_link(f, "nic", rank, m->nic.rate * (double)m->nic.per_gpu, m->nic.latency_ps);
    if (w.nodes > 1)
        fprintf(f, "    <link id=\"core\" bandwidth=\"1EBps\" latency=\"0ps\" sharing_policy=\"FATPIPE\"/>\n");
}

static void put_routes(FILE *f, struct world w)
{
    for (uint32_t rank = 0; rank < world_ranks(w); rank++) {
        if (w.gpus_per_node > 1)
            fprintf(f,
                    "    <route src=\"gpu%" PRIu32 "\" dst=\"switch%" PRIu32 "\"><link_ctn id=\"nvlink%" PRIu32
                    "\" direction=\"UP\"/></route>\n",
                    rank, world_node(w, rank), rank);
        if (w.nodes > 1)
            fprintf(f,
                    "    <route src=\"gpu%" PRIu32 "\" dst=\"port%" PRIu32 "\"><link_ctn id=\"nic%" PRIu32
                    "\" direction=\"UP\"/></route>\n"
                    "    <route src=\"port%" PRIu32 "\" dst=\"network\"><link_ctn id=\"core\"/></route>\n",
                    rank, rank, rank, rank);
    }
}

/* A comment may not hold two hyphens. */
static void put_name(FILE *f, const char *name)
{
    for (const char *c = name; *c; c++)
        fprintf(f, c[0] == '-' && c[1] == '-' ? "- " : "%c", *c);
}

static void put_platform(FILE *f, const struct machine *m, struct world w)
{
    fprintf(f, "<?xml version=\"1.0\"?>\n"
               "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
               "<!-- ");
    put_name(f, m->name);
    fprintf(f,
            ", %" PRIu32 " x %" PRIu32 " GPUs, by mkernel export platform (docs/export.md).\n"
            "     Latencies are whole paths; %s of a GPU counts as one link.\n"
            "     Switch and network do not limit. -->\n",
            w.nodes, w.gpus_per_node, m->nic.per_gpu == 1 ? "the NIC" : "all NICs");
    fprintf(f, "<platform version=\"4.1\">\n  <zone id=\"cluster\" routing=\"Dijkstra\">\n");
    put_nodes(f, w);
    put_links(f, m, w);
    put_routes(f, w);
    fprintf(f, "  </zone>\n</platform>\n");
}

static enum status choose_world(const struct machine *m, struct world *w)
{
    char why[256];

    if (w->nodes == 0)
        w->nodes = m->nodes_max > 1 ? 2 : 1;
    if (w->gpus_per_node == 0)
        w->gpus_per_node = (uint32_t)m->gpus_per_node;
    if (machine_holds(m, *w, why, sizeof why) < 0) {
        log_error("export: %s: %s", m->name, why);
        return ST_INPUT;
    }
    if ((uint64_t)w->nodes * w->gpus_per_node <= RANKS_MAX)
        return ST_OK;
    log_error("export: more than %d GPUs make no platform", RANKS_MAX);
    return ST_INPUT;
}

enum status export_platform(const struct export_platform *q)
{
    struct world w = q->world;
    struct machine m;
    struct result_file f;
    char path[RESULT_PATH_BYTES];

    TRY(machine_load(q->machine, &m));
    TRY(choose_world(&m, &w));
    if (!q->output) {
        put_platform(stdout, &m, w);
        return ST_OK; /* the command looks whether it arrived */
    }
    TRY(result_open(&f, q->output));
    put_platform(f.file, &m, w);
    TRY(result_commit(&f, path));
    log_info("platform: %s", path);
    return ST_OK;
}
