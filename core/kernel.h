/* What a fused algorithm supplies (kernels/NAME.c); kernels/kernels.c lists them all. */
#ifndef CORE_KERNEL_H
#define CORE_KERNEL_H

#include <stdint.h>

#include "core/machine/machine.h"
#include "core/parse/option.h"
#include "core/problem.h"
#include "core/program.h"
#include "core/status.h"

enum form { FORM_FUSED, FORM_UNFUSED };

/* Which collective the baselines put before or after the GEMM. */
enum collective {
    COLLECTIVE_ALL_GATHER,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_ALL_REDUCE,
    COLLECTIVE_ALL_TO_ALL, /* of what struct traffic says */
};

/* What a generator refuses, for the scenario reader to place at file:line:column. */
struct complaint {
    char key[32];   /* the parameter or problem key at fault; "" when none is */
    char text[320]; /* one sentence without a full stop */
};

enum status complain(struct complaint *c, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4))); /* fills *c, returns ST_INPUT */

/* How results are checked that rounding makes inexact: each element against a value and a bound. */
struct expected {
    float value, tolerance; /* right: |element - value| <= tolerance, which a NaN is not */
};

struct bounded_check {
    /* Elements (row, col) to (row, col + count - 1) of an input tensor, exact in bf16. */
    void (*input)(const struct problem *global, uint64_t seed, uint64_t epoch, uint32_t tensor, uint64_t row,
                  uint64_t col, uint64_t count, float *out);
    /* Elements [row .. row + rows, col .. col + cols] of the result, row-major, by the obvious serial loop. */
    void (*expected)(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                     uint64_t col, uint64_t cols, struct expected *out);
    uint64_t (*memory_bytes)(const struct problem *global); /* that expected() allocates */
};

/* What an epoch of dynamic work has to move, for baselines and for the record.  Bytes; `_max` is the larger of
 * what one rank sends and receives, of the rank with most. */
struct traffic {
    uint64_t sparse_bytes; /* all ranks, between nodes: each token once to each node that needs it, and back where
                              results go back */
    uint64_t dense_bytes;  /* the same, but to each other node */
    /* On the way out; as much comes back. */
    uint64_t inter_once_max, intra_once_max; /* a token travels to a node once, and spreads there */
    uint64_t inter_each_max, intra_each_max; /* a token travels once for each of its experts */
    uint64_t rows_max, tile_rows_max;        /* rows on a rank; with each expert's rounded up to whole tiles */
};

struct kernel {
    const char *name;                    /* as scenarios write it */
    const char *title;                   /* one line for `list` */
    const char *shape;                   /* what the problem's keys mean to it, one line */
    const struct problem_family *family; /* the problem keys it takes */
    enum collective collective;

    const struct option *options; /* the parameters of its variants; last row has no name */
    size_t params_size;

    /* Emits the program.  `params` was filled from `options`.  Sizes that do not divide are fine, empty
     * shards too.  On ST_INPUT *c says why and *p is left zeroed. */
    enum status (*emit)(const struct problem *problem, struct world world, const struct machine *machine,
                        enum form form, const void *params, struct program *p, struct complaint *c);

    /* The global problem of which every rank's inputs and outputs are slices: C[m, n] = A[m, k] x B[n, k]^T, or
     * attention with its stripes (core/attention.h) */
    struct problem (*global)(const struct problem *problem, struct world world);

    /* Expected C[row .. row + rows, col .. col + cols] of that GEMM in `epoch`, row-major, by the obvious
     * serial loop.  Asserts that no sum of the chosen inputs can leave +-256. */
    void (*reference)(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                      uint64_t col, uint64_t cols, int16_t *out);

    const struct bounded_check *bounded; /* in the place of `reference` and its inputs; NULL: exact */

    /* For kernels of dynamic work; NULL elsewhere. */

    /* What `begin` writes into control inputs: rows [row, row + rows) of the routing table, row-major. */
    void (*control)(const struct problem *problem, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                    int32_t *out);
    void (*traffic)(const struct problem *problem, struct world world, uint64_t seed, uint64_t epoch,
                    uint64_t tile_rows, struct traffic *out);
};

#endif
