/* What stands beside NCCL's own model: the measured correction, send / receive, and names. */
#include <stdio.h>

#include "sim/nccl.h"

/* Position of `bytes` between two powers of two, linear inside an octave: near enough to the
 * logarithm, and exact in every C library. */
static double octave(uint64_t bytes)
{
    uint32_t whole = 63 - (uint32_t)__builtin_clzll(bytes);
    uint64_t base = UINT64_C(1) << whole;

    return whole + (double)(bytes - base) / (double)base;
}

static const struct nccl_correction *correction_find(const struct nccl_comm *c, enum collective what,
                                                     const struct nccl_choice *choice)
{
    for (const struct nccl_correction *r = nccl_corrections; r->source; r++)
        if ((r->collectives & 1u << what) && r->algorithm == choice->algorithm &&
            (r->protocols & 1u << choice->protocol) && r->across_nodes == (c->nodes > 1) && c->ranks >= r->ranks_min &&
            c->ranks <= r->ranks_max && c->gpus_per_node >= r->gpus_min)
            return r;
    return NULL;
}

double nccl_correction_factor(const struct nccl_comm *c, enum collective what, const struct nccl_choice *choice,
                              uint64_t bytes)
{
    const struct nccl_correction *r = correction_find(c, what, choice);
    const uint32_t count = r ? sizeof(r->points) / sizeof(r->points[0]) : 0;

    if (!r)
        return 1;
    if (bytes <= r->points[0].bytes)
        return r->points[0].factor;
    for (uint32_t i = 1; i < count && r->points[i].bytes > 0; i++) {
        if (bytes > r->points[i].bytes)
            continue;
        double from = octave(r->points[i - 1].bytes), to = octave(r->points[i].bytes);
        double share = (octave(bytes) - from) / (to - from);
        return r->points[i - 1].factor + share * (r->points[i].factor - r->points[i - 1].factor);
    }
    uint32_t last = count - 1;
    while (r->points[last].bytes == 0)
        last--;
    return r->points[last].factor;
}

struct nccl_choice nccl_corrected(const struct nccl_comm *c, enum collective what, uint64_t bytes)
{
    struct nccl_choice choice = nccl_predict(c, what, bytes);

    if (choice.found)
        choice.time_ps = (uint64_t)((double)choice.time_ps * nccl_correction_factor(c, what, &choice, bytes) + 0.5);
    return choice;
}

/* NCCL wants a channel for each 14 GB/s of network, at least one a NIC, and a power of two of them.
 */
uint32_t nccl_send_recv_channels(const struct machine *m)
{
    double rate = m->nic.rate * (double)m->nic.per_gpu;
    uint32_t channels = 1;

    while (channels < 32 && (channels < m->nic.per_gpu || channels * 14e9 < rate))
        channels *= 2;
    return channels;
}

/* Grouped send / receive has no entry in NCCL's tables: 8 us for the kernel and its first chunk
 * (the lower end of what is measured inside a node), and the network's own latency. */
uint64_t nccl_send_recv_fixed_ps(const struct machine *m)
{
    return 8000000 + m->nic.latency_ps;
}

const char *nccl_algorithm_name(enum nccl_algorithm algorithm)
{
    static const char *const names[NCCL_ALGORITHMS] = {
        [NCCL_TREE] = "tree",          [NCCL_RING] = "ring", [NCCL_NVLS] = "nvls",
        [NCCL_NVLS_TREE] = "nvlstree", [NCCL_PAT] = "pat",
    };

    return names[algorithm];
}

void nccl_choice_print(const struct nccl_choice *choice, char *out, size_t out_bytes)
{
    static const char *const protocols[NCCL_PROTOCOLS] = {
        [NCCL_LL] = "ll",
        [NCCL_LL128] = "ll128",
        [NCCL_SIMPLE] = "simple",
    };

    if (choice->found)
        snprintf(out, out_bytes, "%s/%s, %u channel%s", nccl_algorithm_name(choice->algorithm),
                 protocols[choice->protocol], choice->channels, choice->channels == 1 ? "" : "s");
    else
        snprintf(out, out_bytes, "none");
}
