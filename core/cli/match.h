/* The points that two result files have in common, and what became of each. */
#ifndef CORE_CLI_MATCH_H
#define CORE_CLI_MATCH_H

#include "core/results/records.h"

enum match_verdict {
    MATCH_SAME,  /* within the threshold */
    MATCH_NOISE, /* beyond the threshold, but the middle halves of the samples overlap */
    MATCH_FASTER,
    MATCH_SLOWER,
    MATCH_FAILED,  /* has a time in A and none in B */
    MATCH_FIXED,   /* the other way round */
    MATCH_NO_TIME, /* in neither */
};

struct match {
    const struct records_point *a, *b;
    char *name;    /* "m=4096 n=256 comm_sms=8 isolated": what tells it from others */
    double change; /* b / a - 1; 0 without two times */
    double spread; /* the wider middle half of the two, relative to its median */
    enum match_verdict verdict;
};

struct matches {
    struct match *items;
    size_t count;
    size_t only_a, only_b;                    /* points that the other file lacks */
    const struct records_point *first_only_a; /* NULL: none */
    size_t of[MATCH_NO_TIME + 1];             /* by verdict */
};

/* A point is the same in both when kernel, program, variant, problem, world, parameters and mode are, and every
 * other key that one of the files sweeps; keys that one of them does not know do not count.  So machine, backend
 * and seed are what one may compare.  ST_INPUT: a point stands twice where the other file has a partner; logged. */
enum status matches_find(const struct records *a, const struct records *b, double threshold, struct matches *out);
void matches_fini(struct matches *m);

const char *match_verdict_word(enum match_verdict v);

#endif
