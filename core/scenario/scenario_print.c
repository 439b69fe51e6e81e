/* What a scenario's keys are, for people and for records. */
#include <stdio.h>
#include <string.h>

#include "core/results/published.h"
#include "core/scenario/scenario_keys.h"
#include "core/scenario/scenario_sweep.h"

struct printer {
    scenario_key_fn *fn;
    void *arg;
};

static void print_row(const struct printer *out, const char *section, const struct option *o, const void *base)
{
    char key[2 * OPTION_TEXT_BYTES], value[OPTION_TEXT_BYTES];

    snprintf(key, sizeof key, "%s%s", section, o->name);
    option_print(o, base, value, sizeof value);
    out->fn(out->arg, key, value);
}

static void print_table(const struct printer *out, const char *section, const struct option *table, const void *base)
{
    for (const struct option *o = table; o && o->name; o++)
        print_row(out, section, o, base);
}

static void print_problem(const struct printer *out, const struct point *p)
{
    struct problem_keys keys = {.dtype = PROBLEM_BF16};

    snprintf(keys.kernel, sizeof keys.kernel, "%s", p->kernel->name);
    print_row(out, "problem.", option_row(problem_options, "kernel"), &keys);
    print_table(out, "problem.", p->kernel->family->keys, &p->problem);
    print_row(out, "problem.", option_row(problem_options, "dtype"), &keys);
}

static void print_backend(const struct printer *out, const struct scenario *s)
{
    char section[OPTION_TEXT_BYTES];

    out->fn(out->arg, "backend", s->backend->name);
    snprintf(section, sizeof section, "%s.", s->backend->name);
    print_table(out, section, s->backend->options, s->backend_options);
}

static void print_variant(const struct printer *out, const struct point *p)
{
    struct variant_keys keys = {.program = p->program};

    out->fn(out->arg, "variant", p->variant);
    print_table(out, "", variant_options, &keys);
    if (p->program == PROGRAM_FUSED || p->program == PROGRAM_UNFUSED)
        print_table(out, "params.", p->kernel->options, p->params);
}

static void print_timing(const struct printer *out, const struct point *p)
{
    struct timing_keys keys = {.mode = p->timing.mode,
                               .warmup = p->timing.warmup,
                               .iterations = p->timing.iterations,
                               .launch = p->timing.launch ? LAUNCH_INCLUDED : LAUNCH_EXCLUDED};

    print_table(out, "timing.", timing_options, &keys);
}

void scenario_point_keys(const struct scenario *s, const struct point *p, scenario_key_fn *fn, void *arg)
{
    const struct printer out = {fn, arg};
    struct world_keys world = {p->world.nodes, p->world.gpus_per_node};
    struct top_keys top = {.seed = p->seed};

    print_problem(&out, p);
    fn(arg, "machine", s->machine.name);
    print_table(&out, "world.", world_options, &world);
    print_backend(&out, s);
    print_variant(&out, p);
    print_timing(&out, p);
    print_row(&out, "", option_row(top_options, "seed"), &top);
}

/* The problem keys of every family, once, with the kernels that take them. */
static void help_families(const struct registry *registry, FILE *f)
{
    for (const struct kernel *const *k = registry->kernels; *k; k++) {
        const struct problem_family *family = (*k)->family;
        struct option checks[PROBLEM_KEYS_MAX + 1];
        const struct kernel *const *first = registry->kernels;

        while ((*first)->family != family)
            first++;
        if (first != k)
            continue;
        fprintf(f, "\nproblem of");
        for (; *first; first++)
            if ((*first)->family == family)
                fprintf(f, " %s", (*first)->name);
        fprintf(f, ":  (each may sweep)\n");
        option_help(family->keys, f);
        problem_check_keys(family, checks);
        fprintf(f, "and in check, where the defaults are:\n");
        option_help(checks, f);
    }
}

void scenario_help(const struct registry *registry, FILE *f)
{
    fprintf(f, "Keys of a scenario file.  A value that may sweep may be a list; lists multiply.\n"
               "Counts may be arithmetic, and in problem and variants use the problem's keys, nodes, "
               "gpus_per_node, ranks.\n\n");
    option_help(top_options, f);
    fprintf(f, "\nproblem:  (each may sweep)\n");
    option_help(problem_options, f);
    help_families(registry, f);
    fprintf(f, "\nworld:  (each may sweep)\n");
    option_help(world_options, f);
    fprintf(f, "\ntiming:  (each may sweep)\n");
    option_help(timing_options, f);
    fprintf(f, "\ncheck:  (a run with real data before the timed ones; absent: none)\n");
    option_help(check_options, f);
    fprintf(f, "\npublished:  (results of others to print beside; absent: none)\n");
    option_help(published_options, f);
    fprintf(f, "\nvariants:  LABEL: {program, for fused and unfused the kernel's parameters}\n");
    option_help(variant_options, f);
    for (const struct kernel *const *k = registry->kernels; *k; k++) {
        fprintf(f, "\nvariants of %s:  (each may sweep)\n", (*k)->name);
        option_help((*k)->options, f);
    }
    for (const struct backend *const *b = registry->backends; *b; b++) {
        fprintf(f, "\n%s:  (options of the backend)\n", (*b)->name);
        option_help((*b)->options, f);
    }
}
