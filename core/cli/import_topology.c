#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/cli/import.h"
#include "core/cli/machine_new.h"
#include "core/file.h"
#include "core/log.h"
#include "core/imports/nccl_xml.h"

#define NVLINKS_OF_HOPPER 18

/* PCI devices of NVIDIA (0x10de) whose machines are shipped. */
static const struct {
    uint64_t device;
    const char *model;
} devices[] = {{0x2330, "H100"}, {0x2336, "H100"}, {0x2339, "H100"}, {0x2335, "H200"}};

static enum status read_files(const struct import_topology *q, struct nccl_xml *x)
{
    for (size_t i = 0; i < q->path_count; i++) {
        size_t size;
        char *text;
        enum status st;

        TRY(file_read(q->paths[i], "an XML file that NCCL dumped, at most 16 MiB", NCCL_XML_BYTES_MAX, &text, &size));
        st = nccl_xml_parse(q->paths[i], text, size, x);
        free(text);
        TRY(st);
    }
    if (x->has_topology && x->gpus > 0)
        return ST_OK;
    log_error("%s: no GPU in it; expected a topology that NCCL dumped (NCCL_TOPO_DUMP_FILE)%s", q->paths[0],
              x->has_graphs && !x->has_topology ? ", of which this is only the graph file" : "");
    return ST_INPUT;
}

static enum status choose_model(const struct import_topology *q, const struct nccl_xml *x, struct machine_request *r)
{
    r->gpu = q->gpu;
    for (size_t i = 0; !r->gpu && i < sizeof devices / sizeof *devices; i++)
        if (devices[i].device == x->device)
            r->gpu = devices[i].model;
    if (!r->gpu) {
        log_error("%s: GPU of PCI device 0x%04" PRIx64 ", sm %" PRIu64 ": no machine of that kind is shipped; "
                  "--gpu H100 or --gpu H200 takes the costs of one",
                  q->paths[0], x->device, x->sm);
        return ST_INPUT;
    }
    return ST_OK;
}

/* ---- the network ---- */

static bool is_efa(const char *name)
{
    return strncmp(name, "rdmap", 5) == 0 || strncmp(name, "efa", 3) == 0;
}

/* NICs that GPUs can put through, of the fastest kind: others are for storage and management. */
static void choose_nics(const struct import_topology *q, const struct nccl_xml *x, struct machine_request *r)
{
    uint64_t fastest = 0, count = 0;

    for (uint32_t i = 0; i < x->net_count; i++) {
        const struct nccl_net *n = &x->nets[i];

        if (!n->gpu_direct || n->mbps < fastest)
            continue;
        count = n->mbps > fastest ? 1 : count + 1;
        fastest = n->mbps;
        r->efa = is_efa(n->name);
    }
    r->nics_known = true;
    r->nics = count;
    r->gbps = fastest / 1000;
    if (count == 0 && x->net_count > 0)
        log_warn("%s: none of its %" PRIu32 " network devices (%s, %" PRIu64 " Mb/s) has GPUDirect: taken as one node "
                 "without a network",
                 q->paths[0], x->net_count, x->nets[0].name, x->nets[0].mbps);
}

/* A machine has whole NICs for each GPU. */
static void share_nics(const struct import_topology *q, struct machine_request *r)
{
    uint64_t nics = r->nics, gbps = r->gbps;

    if (nics == 0 || nics % r->gpus == 0)
        return;
    if (nics < r->gpus) {
        r->nics = r->gpus;
        r->gbps = gbps * nics / r->gpus;
    } else {
        r->nics = nics / r->gpus * r->gpus;
    }
    log_warn("%s: %" PRIu64 " NICs of %" PRIu64 " Gb/s do not fall evenly to %" PRIu64 " GPUs: taken as %" PRIu64
             " of %" PRIu64,
             q->paths[0], nics, gbps, r->gpus, r->nics, r->gbps);
}

static enum status make_request(const struct import_topology *q, const struct nccl_xml *x, struct machine_request *r)
{
    TRY(choose_model(q, x, r));
    r->gpus = x->gpus;
    r->nodes = q->nodes;
    r->name = q->name;
    choose_nics(q, x, r);
    share_nics(q, r);
    return ST_OK;
}

/* ---- what the files say beyond the parts ---- */

static void set_cpu(const struct nccl_xml *x, struct machine *m)
{
    if (x->cpu[0])
        m->nccl.cpu = strcmp(x->cpu, "GenuineIntel") == 0 ? 0 : strcmp(x->cpu, "AuthenticAMD") == 0 ? 1 : 2;
}

static void set_links(const struct nccl_xml *x, struct machine *m)
{
    if (m->gpus_per_node > 1 && x->nvlinks > 0 && x->nvlinks < NVLINKS_OF_HOPPER) {
        m->nvlink.rate *= (double)x->nvlinks / NVLINKS_OF_HOPPER;
        m->nvlink.engine_rate *= (double)x->nvlinks / NVLINKS_OF_HOPPER;
    }
}

static void set_rings(const struct nccl_graph *g, struct machine *m)
{
    if (g->channels == 0 || g->intra <= 0)
        return;
    if (!g->has_net && m->gpus_per_node > 1) {
        m->nccl.ring_channels_1node = g->channels;
        m->nccl.ring_intra_1node = g->intra * 1e9;
    } else if (g->has_net && m->nodes_max > 1 && g->inter > 0) {
        m->nccl.ring_channels = g->channels;
        m->nccl.ring_intra = g->intra * 1e9;
        m->nccl.ring_inter = g->inter * 1e9;
    }
}

static void set_nvls(const struct nccl_xml *x, struct machine *m)
{
    if (!x->has_graphs)
        return;
    if (x->nvls.channels == 0) { /* NCCL looked for a switch that multicasts and found none */
        m->nvlink.multicast = m->nvlink.reduce = m->nccl.nvls = false;
        m->nccl.nvls_heads = 0;
        m->nccl.nvls_intra = m->nccl.nvls_inter = 0;
    } else if (m->nccl.nvls) {
        m->nccl.nvls_intra = x->nvls.intra * 1e9;
        m->nccl.nvls_inter = m->nodes_max > 1 ? x->nvls.inter * 1e9 : 0;
    }
}

static void describe(const struct import_topology *q, const struct nccl_xml *x, char *origin, size_t origin_bytes)
{
    size_t used = strlen(origin);

    used += (size_t)snprintf(origin + used, origin_bytes - used,
                             "\n\nGPUs, NICs and their rate were read by `mkernel import topology` from\n%s%s%s.\n"
                             "NVLinks a GPU: %" PRIu64 "; host processor: %s.",
                             q->paths[0], q->path_count > 1 ? " and " : "", q->path_count > 1 ? q->paths[1] : "",
                             x->nvlinks, x->cpu[0] ? x->cpu : "not said");
    if (x->has_graphs && used < origin_bytes)
        snprintf(origin + used, origin_bytes - used,
                 "\nThe nccl section and nvlink.multicast follow the graphs that "
                 "NCCL found.");
}

enum status import_topology(const struct import_topology *q)
{
    struct machine_request r = {0};
    struct nccl_xml x = {0};
    struct machine m;
    char origin[3072];

    TRY(read_files(q, &x));
    TRY(make_request(q, &x, &r));
    TRY(machine_from_request(&r, &m, origin, sizeof origin));
    set_cpu(&x, &m);
    set_links(&x, &m);
    set_rings(&x.ring, &m);
    set_nvls(&x, &m);
    describe(q, &x, origin, sizeof origin);
    if (x.hosts > 1)
        log_warn("%s: holds several hosts; the first one's %" PRIu64 " GPUs make a node", q->paths[0], x.gpus);
    return machine_save(&m, origin, q->output);
}
