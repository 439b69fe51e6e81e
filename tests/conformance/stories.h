/* One small program for every case of the progress rule, and some that must fail. */
#ifndef TESTS_CONFORMANCE_STORIES_H
#define TESTS_CONFORMANCE_STORIES_H

#include "core/kernel.h"
#include "core/program.h"

struct story {
    const char *name;
    struct world world;
    void (*build)(struct program *p); /* p->world is set */
    struct problem problem;
    void (*reference)(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                      uint64_t col, uint64_t cols, int16_t *out);
    const char *mentions; /* stories that must fail: stands in the report */
    enum status status;
};

extern const struct story stories[];
extern const int story_count;

/* stories_failing.c */
extern const struct story failing_stories[];
extern const int failing_story_count;

/* What several stories have in common: every rank has SHARD_ROWS rows of A and shows the shard of a
 * given rank. */
enum { SHARD_ROWS = 8, SHARD_COLS = 16 };

void story_in_out(struct program *p, uint32_t rank, uint32_t in, uint32_t out, uint32_t shown_rank);

/* C = A. */
void reference_copy(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                    uint64_t col, uint64_t cols, int16_t *out);

#endif
