#include "core/cli/machine_new.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/log.h"
#include "core/parse/nearest.h"
#include "core/world.h"

/* The shipped machine whose measured values stand in for a model's. */
static const struct {
    const char *model, *machine;
} models[] = {{"H100", "hgx-h100-cx7"}, {"H200", "hgx-h200-cx7"}, {NULL, NULL}};

#define BOARD_GPUS_MAX 8      /* GPUs that one HGX board joins */
#define SWITCHLESS_GPUS 4     /* boards of up to four GPUs have direct links and no switch */
#define NIC_PERCENT 97        /* payload of the raw rate: 48.5 of 50 GB/s, see hgx-h200-cx7.yaml */
#define NCCL_CHANNEL_GBPS 384 /* top rung of NCCL's search ladder between nodes: 48 GB/s */

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static enum status find_model(const char *gpu, const char **machine_out)
{
    struct nearest near;
    char guess[100];

    nearest_begin(&near, gpu);
    for (size_t i = 0; models[i].model; i++) {
        nearest_offer(&near, models[i].model);
        if (strcasecmp(models[i].model, gpu) == 0) {
            *machine_out = models[i].machine;
            return ST_OK;
        }
    }
    log_error("no measured values for GPU model \"%.40s\"; expected H100 or H200%s", gpu,
              nearest_text(&near, guess, sizeof guess));
    return ST_INPUT;
}

static enum status check_request(const struct machine_request *r)
{
    const char *what = NULL;

    if (!r->gpu || r->gpus == 0 || !r->nics_known)
        what = "too little is known; expected --gpu, --gpus and --nics, or --detect";
    else if (r->gpus > BOARD_GPUS_MAX)
        what = "too many GPUs; expected 1 to 8, the GPUs of one HGX board";
    else if (r->nics > 0 && r->gbps == 0)
        what = "the NICs have no rate; expected --gbps, for example --gbps 400";
    else if (r->gbps > 3200)
        what = "a NIC that fast is not known; expected --gbps from 1 to 3200";
    else if (r->nics % r->gpus != 0 || r->nics > 16 * r->gpus)
        what = "NICs do not fall evenly to GPUs; expected --nics to be a multiple of --gpus, at "
               "most 16 each";
    else if (r->nics == 0 && r->nodes > 1)
        what = "several nodes need a network; expected --nics of at least one a GPU";
    else if (r->nodes > 65536)
        what = "too many nodes; expected at most 65536";
    else if (r->name && (strlen(r->name) >= OPTION_TEXT_BYTES || strspn(r->name, NAME_CHARACTERS) != strlen(r->name)))
        what = "not a machine's name; expected --name of letters, digits, \".\", \"_\" and \"-\", at most 63";
    if (!what)
        return ST_OK;
    log_error("%s", what);
    return ST_INPUT;
}

static void set_nvlink(struct machine *m, uint64_t gpus)
{
    bool has_switch = gpus > SWITCHLESS_GPUS;

    m->gpus_per_node = gpus;
    m->nvlink.multicast = m->nvlink.reduce = has_switch;
    m->nccl.nvls = has_switch;
    m->nccl.nvls_heads = has_switch ? gpus : 0;
    if (!has_switch)
        m->nccl.nvls_intra = m->nccl.nvls_inter = 0;
    if (gpus == 1) {
        memset(&m->nvlink, 0, sizeof m->nvlink);
        m->nccl.ring_channels_1node = 0;
        m->nccl.ring_intra_1node = 0;
    }
}

static void set_network(struct machine *m, const struct machine_request *r)
{
    uint64_t channel_gbps = min_u64(r->gbps, NCCL_CHANNEL_GBPS);

    if (r->nics == 0) {
        memset(&m->nic, 0, sizeof m->nic);
        m->nccl.ring_channels = 0;
        m->nccl.ring_intra = m->nccl.ring_inter = m->nccl.nvls_inter = 0;
        m->nodes_max = 1;
        return;
    }
    if (r->nodes > 0)
        m->nodes_max = r->nodes;
    m->nic.per_gpu = r->nics / r->gpus;
    m->nic.rate = (double)(r->gbps * 1000000000 / 8 * NIC_PERCENT / 100);
    m->nic.kind = r->efa ? NIC_SRD : NIC_RC;
    m->nccl.ring_channels = min_u64(r->nics, 64);
    m->nccl.ring_intra = m->nccl.ring_inter = (double)(channel_gbps * 1000000000 / 8);
    if (m->nccl.nvls)
        m->nccl.nvls_inter = m->nccl.ring_inter * (double)m->nic.per_gpu;
}

static enum status load_shipped(const char *name, struct machine *out)
{
    if (machine_load(name, out) == ST_OK)
        return ST_OK;
    log_error("needs the shipped machine %s; set MKERNEL_MACHINES to the folder that "
              "holds it",
              name);
    return ST_ENVIRONMENT;
}

static enum status set_efa(struct machine *m)
{
    struct machine efa;

    TRY(load_shipped("hgx-h200-efa", &efa));
    m->nic = efa.nic;
    m->nccl.net_latency_ps = efa.nccl.net_latency_ps;
    return ST_OK;
}

/* "8 x H200, 8 x 400 Gb/s" */
static void describe_parts(const struct machine_request *r, const struct machine *m, char *out, size_t out_bytes)
{
    int used = snprintf(out, out_bytes, "%u x %.16s", (unsigned)r->gpus, m->gpu.model);

    if (r->nics > 0)
        snprintf(out + used, out_bytes - (size_t)used, ", %u x %u Gb/s", (unsigned)r->nics, (unsigned)r->gbps);
    else
        snprintf(out + used, out_bytes - (size_t)used, ", no network");
}

static void describe(const struct machine_request *r, const char *template, const struct machine *m, char *origin,
                     size_t origin_bytes)
{
    snprintf(origin, origin_bytes,
             "%s: nodes of %s.\n\n"
             "Written by mkernel.  Given or detected: GPU model, GPUs, NICs and their rate,\n"
             "nodes.  Derived from these: NIC payload rate (%d %% of raw), multicast\n"
             "(boards of more than %d GPUs have a switch), NCCL's channels (one ring a NIC at its\n"
             "rate).  All other values are those of scenarios/machines/%s.yaml,\n"
             "where their sources stand; measure your own where it matters.%s",
             m->name, m->title, NIC_PERCENT, SWITCHLESS_GPUS, template,
             r->efa ? "\nThe NICs are EFA: their latencies are those of hgx-h200-efa.yaml." : "");
}

/* In lower case, and nothing but letters, digits and hyphens. */
static void set_name(struct machine *m, const struct machine_request *r)
{
    if (r->name) {
        snprintf(m->name, sizeof m->name, "%s", r->name);
        return;
    }
    if (r->nics > 0)
        snprintf(m->name, sizeof m->name, "%.20s-%" PRIu64 "x%" PRIu64, r->gpu, r->nics, r->gbps);
    else
        snprintf(m->name, sizeof m->name, "%.20s-%" PRIu64 "gpu", r->gpu, r->gpus);
    for (char *c = m->name; *c; c++)
        *c = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '-';
}

enum status machine_from_request(const struct machine_request *r, struct machine *out, char *origin,
                                 size_t origin_bytes)
{
    const char *template;
    struct machine m;

    TRY(check_request(r));
    TRY(find_model(r->gpu, &template));
    TRY(load_shipped(template, &m));
    if (r->efa)
        TRY(set_efa(&m));
    set_name(&m, r);
    describe_parts(r, &m, m.title, sizeof m.title);
    set_nvlink(&m, r->gpus);
    set_network(&m, r);
    describe(r, template, &m, origin, origin_bytes);
    *out = m;
    return ST_OK;
}

enum status machine_save(const struct machine *m, const char *origin, const char *output)
{
    char path[sizeof m->name + 8];

    snprintf(path, sizeof path, "%s.yaml", m->name);
    if (!output)
        output = path;
    if (strcmp(output, "-") == 0)
        return machine_write(m, origin, NULL);
    TRY(machine_write(m, origin, output));
    log_info("wrote %s: %s; use it as \"machine: %s\" in a scenario", output, m->title, output);
    return ST_OK;
}
