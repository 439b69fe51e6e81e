/* One attention as a program, in the shapes that benchmarks compare. */
#ifndef TESTS_DEVICE_BENCH_ATTENTION_PROGRAM_H
#define TESTS_DEVICE_BENCH_ATTENTION_PROGRAM_H

#include "core/program.h"

enum { ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_O }; /* buffers: [heads * seq, dim] */

enum bench_walk {
    WALK_WHOLE,   /* a task meets all keys at once */
    WALK_STEPPED, /* in segments, each behind a flag that the epoch before has raised */
    WALK_CHAINED, /* a task a segment, all first ones before all second ones, f32 between them */
};

/* On each of `ranks` ranks of a node the first `queries` of `seq` positions attend to all of them, or with
 * `causal` (queries = seq) to those up to their own. */
struct bench_attention {
    uint64_t heads, seq, queries, dim;
    bool causal;
    enum bench_walk walk;
    uint32_t segments; /* 1 with WALK_WHOLE */
    uint32_t ranks;
};

/* Fills a zeroed *p, which program_fini() frees. */
void bench_attention(struct program *p, const struct bench_attention *shape);

#endif
