/* Runs one program on one backend with real data. */
#ifndef TESTS_CONFORMANCE_HARNESS_H
#define TESTS_CONFORMANCE_HARNESS_H

#include "core/backend.h"
#include "core/kernel.h"
#include "core/program.h"

struct trial {
    const struct backend *backend;
    const struct kernel *kernel;
    const struct program *program;
    struct problem problem;
    struct timing timing;
    uint64_t seed;       /* 0: one of the harness */
    const char *options; /* "key=value key=value"; unknown keys are passed over */
    struct trace *trace; /* NULL: none */
};

/* False, once aloud, where the backend lacks something here or has a suite of its own that keeps one process
 * (tests/device). */
bool harness_can_run(const struct backend *b);

/* A sanitizer takes many times as long: there every 23rd combination runs, unless MKERNEL_TEST_ALL is set.  The
 * number of worlds and shapes is no multiple of it, so every variant still meets every one of them. */
int harness_stride(void);

/* Takes the lowest digit off *i, a number of mixed radix: how loops over combinations are numbered. */
int harness_digit(int *i, int radix);

/* The machine of all trials. */
const struct machine *harness_machine(void);

/* Sets defaults, then what the text says. */
void harness_options(const struct option *table, void *base, const char *text);

/* The kernel's program for the harness's machine; `params` as harness_options() reads them.  Fails the test where the
 * kernel refuses. */
void harness_emit(const struct kernel *k, const struct problem *problem, struct world world, enum form form,
                  const char *params, struct program *out);

enum status harness_run(const struct trial *t, struct run_result *r);

#endif
