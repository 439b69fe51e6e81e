#include "harness.h"

#include <assert.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/machine/machine.h"

int harness_stride(void)
{
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
    return getenv("MKERNEL_TEST_ALL") ? 1 : 23;
#else
    return 1;
#endif
}

int harness_digit(int *i, int radix)
{
    int digit = *i % radix;

    *i /= radix;
    return digit;
}

bool harness_can_run(const struct backend *b)
{
    static const struct backend *told;
    char why[256] = "tests/device runs it";
    bool can = strcmp(b->name, "cuda") != 0 && b->available(why, sizeof why) == ST_OK;

#ifdef __SANITIZE_THREAD__
    if (strcmp(b->name, "sim") == 0) {
        can = false;
        snprintf(why, sizeof why, "one thread, which ThreadSanitizer has nothing to say of");
    }
#endif
    if (!can && told != b)
        fprintf(stderr, "%s: skipped: %s\n", b->name, why);
    told = can ? told : b;
    return can;
}

const struct machine *harness_machine(void)
{
    static struct machine machine;

    if (machine.name[0] == '\0' && machine_load("hgx-h200-cx7", &machine) != ST_OK)
        exit(1); /* machine_load has said why */
    return &machine;
}

void harness_options(const struct option *table, void *base, const char *text)
{
    char pair[128], why[256];
    int used;

    option_defaults(table, base);
    for (; sscanf(text, " %127s%n", pair, &used) == 1; text += used) {
        char *value = strchr(pair, '=');
        const struct option *o;

        assert(value);
        *value++ = '\0';
        o = option_find(table, pair);
        if (o && option_parse(o, base, value, NULL, why, sizeof why) != ST_OK) {
            fprintf(stderr, "%s=%s: %s\n", pair, value, why);
            exit(1);
        }
    }
}

void harness_emit(const struct kernel *k, const struct problem *problem, struct world world, enum form form,
                  const char *params, struct program *out)
{
    void *values = calloc(1, k->params_size);
    struct complaint complaint = {.text = ""};

    harness_options(k->options, values, params);
    ck_assert_msg(k->emit(problem, world, harness_machine(), form, values, out, &complaint) == ST_OK, "%s (%s): %s",
                  k->name, params, complaint.text);
    free(values);
}

enum status harness_run(const struct trial *t, struct run_result *r)
{
    void *options = calloc(1, t->backend->options_size);
    struct job job = {
        .program = t->program,
        .world = t->program->world,
        .kernel = t->kernel,
        .problem = &t->problem,
        .machine = harness_machine(),
        .timing = t->timing,
        .options = options,
        .seed = t->seed ? t->seed : 7,
        .data = true,
        .memory_limit_bytes = 4ull << 30,
        .trace = t->trace,
    };
    enum status st;

    assert(options);
    harness_options(t->backend->options, options, t->options);
    st = t->backend->run(&job, r);
    assert(st == r->status);
    free(options);
    return st;
}
