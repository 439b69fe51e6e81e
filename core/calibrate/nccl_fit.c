#include "core/calibrate/nccl_fit.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 4
#define KNEE 0.04 /* sources differ by that much among themselves */
#define PRIOR 0.3

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

/* Of two GPUs in one process, whose small calls take what the host takes: the rest stays as the machine file has it. */
static const struct key pair_keys[] = {
    {"nccl_flow.call", 13.2e6},     /* a kernel on each GPU, 6.6 us as above */
    {"nccl_flow.link_rate", 360e9}, /* copies by CTAs, both directions */
    {NULL, 0},
};

static const struct key net_keys[] = {
    {"nccl_flow.net_ll", 5e6},    /* NCCL: LL tree over the network */
    {"nccl_flow.net", 14e6},      /* NCCL: Simple over the network */
    {"nccl_flow.net_rate", 24e9}, /* half of a NIC: two channels fill it */
    {NULL, 0},
};

/* EFA's own plugin for NCCL (aws-ofi-nccl) knows its network's times of a p5. */
static const struct key efa_keys[] = {
    {"nccl_flow.net_ll", 20e6},   /* of its tuner's model, src/tuner/nccl_ofi_model.cpp */
    {"nccl_flow.net", 75e6},      /* that it declares to NCCL, src/platform-aws.cpp */
    {"nccl_flow.net_rate", 24e9}, /* as above */
    {NULL, 0},
};

void nccl_fit_take(const struct nccl_fit *fit, struct machine *m)
{
    for (uint32_t i = 0; i < fit->constant_count; i++)
        constant_set(&fit->constants[i], m, constant_get(&fit->constants[i], &fit->machine));
}

static bool belongs(const struct nccl_fit *f, const struct nccl_row *row)
{
    if (strcmp(row->row.source, f->without) == 0 || (row->row.nodes > 1) != f->across)
        return false;
    return strcmp(f->across ? row->network : row->constants, f->family) == 0;
}

static void collect_rows(struct nccl_fit *f)
{
    const struct nccl_rows *all = f->all;

    f->rows = calloc(all->count + 1, sizeof(f->rows[0]));
    f->weights = calloc(all->count + 1, sizeof(f->weights[0]));
    assert(f->rows != NULL && f->weights != NULL);
    for (uint32_t i = 0; i < all->count; i++)
        if (belongs(f, &all->rows[i]))
            f->rows[f->row_count++] = &all->rows[i];
    for (uint32_t i = 0; i < f->row_count; i++) {
        double same = 0;
        for (uint32_t k = 0; k < f->row_count; k++)
            same += strcmp(f->rows[k]->row.source, f->rows[i]->row.source) == 0;
        f->weights[i] = 3 / sqrt(same); /* 1 for a source of nine rows */
    }
}

static void add_constants(struct nccl_fit *f, const struct key *keys)
{
    for (; keys->name != NULL; keys++)
        f->constants[f->constant_count++] = constant_of_key(keys->name, keys->guess);
}

/* On the row's own machine with the constants of `m`, those inside a node too. */
static double ratio(void *arg, uint32_t row, const struct machine *m)
{
    const struct nccl_fit *f = arg;
    const struct nccl_row *r = f->rows[row];
    struct machine own = *r->machine;
    struct collective_times times;

    own.nccl_flow = m->nccl_flow;
    if (!nccl_row_predict(f->all, r, &own, &times))
        return 1;
    return (double)times.flow_ps / 1e6 / r->row.measured_us;
}

struct constants_fit nccl_fit_constants(const struct nccl_fit *fit)
{
    return (struct constants_fit){.constants = fit->constants,
                                  .count = fit->constant_count,
                                  .ratio = ratio,
                                  .arg = (void *)fit,
                                  .row_count = fit->row_count,
                                  .weights = fit->weights,
                                  .rounds = ROUNDS,
                                  .knee = KNEE,
                                  .prior = PRIOR};
}

static struct nccl_fit *add_fit(struct nccl_fits *f, const struct nccl_fit *made)
{
    struct nccl_fit *fit = malloc(sizeof *fit);

    f->fits = realloc(f->fits, (f->count + 1) * sizeof(f->fits[0]));
    assert(f->fits != NULL && fit != NULL);
    *fit = *made;
    collect_rows(fit);
    if (fit->row_count > 0) {
        struct constants_fit constants = nccl_fit_constants(fit);
        constants_fit_run(&constants, &fit->machine);
    }
    return f->fits[f->count++] = fit;
}

static const struct nccl_fit *find_fit(const struct nccl_fits *f, const struct nccl_fit *like)
{
    for (uint32_t i = 0; i < f->count; i++)
        if (f->fits[i]->across == like->across && strcmp(f->fits[i]->family, like->family) == 0 &&
            strcmp(f->fits[i]->without, like->without) == 0 &&
            (!like->across || strcmp(f->fits[i]->machine.name, like->machine.name) == 0))
            return f->fits[i];
    return NULL;
}

static bool has_rows(const struct nccl_rows *c, const char *family, const char *source)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->rows[i].row.nodes == 1 && strcmp(c->rows[i].constants, family) == 0 &&
            strcmp(c->rows[i].row.source, source) == 0)
            return true;
    return false;
}

/* Leaving out a source without rows in a node leaves out nothing there: those fits are one. */
static const struct nccl_fit *fit_node(struct nccl_fits *f, const struct nccl_row *like, const char *without)
{
    struct nccl_fit fit = {.all = f->rows, .machine = *like->machine};
    const struct nccl_fit *found;

    snprintf(fit.family, sizeof fit.family, "%s", like->constants);
    if (has_rows(f->rows, like->constants, without))
        snprintf(fit.without, sizeof fit.without, "%s", without);
    add_constants(&fit, nccl_row_is_pair(like) ? pair_keys : node_keys);
    found = find_fit(f, &fit);
    return found ? found : add_fit(f, &fit);
}

const struct nccl_fit *nccl_fit_of(struct nccl_fits *f, const struct nccl_row *like, const char *without)
{
    const struct nccl_fit *node = fit_node(f, like, without), *found;
    struct nccl_fit fit = {.all = f->rows, .across = true, .machine = *like->machine};

    if (like->row.nodes == 1)
        return node;
    snprintf(fit.family, sizeof fit.family, "%s", like->network);
    snprintf(fit.without, sizeof fit.without, "%s", without);
    nccl_fit_take(node, &fit.machine);
    add_constants(&fit, strcmp(fit.family, "efa") == 0 ? efa_keys : net_keys);
    found = find_fit(f, &fit);
    return found ? found : add_fit(f, &fit);
}

void nccl_fits_free(struct nccl_fits *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        free(f->fits[i]->rows);
        free(f->fits[i]->weights);
        free(f->fits[i]);
    }
    free(f->fits);
    *f = (struct nccl_fits){0};
}
