/* Runs one program on one backend with real data. */
#ifndef TESTS_CONFORMANCE_HARNESS_H
#define TESTS_CONFORMANCE_HARNESS_H

#include "core/backend.h"
#include "core/kernel.h"
#include "core/program.h"

struct trial {
    const struct backend *backend;
    const struct kernel  *kernel;
    const struct program *program;
    struct problem        problem;
    struct timing         timing;
    uint64_t              seed; /* 0: one of the harness */
    const char           *options; /* "key=value key=value"; unknown keys are passed over */
};

/* The machine of all trials. */
const struct machine *harness_machine(void);

/* Sets defaults, then what the text says. */
void harness_options(const struct option *table, void *base, const char *text);

enum status harness_run(const struct trial *t, struct run_result *r);

#endif
