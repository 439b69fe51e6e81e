/* Published results of others beside simulated ones: rows of a CSV table, matched to the points of a scenario.
 *
 * The table's columns: kernel, hardware, shape ("M=4096;K=4096;N=256": its first number is the problem's first key),
 * system, metric (TFLOPS_per_GPU or ms), value, precision, source.  Several sets of one author may hold the same shape:
 * the median counts, and the range is kept. */
#ifndef CORE_RESULTS_PUBLISHED_H
#define CORE_RESULTS_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/scenario/scenario.h"

/* The keys of a scenario's `published` section. */
struct published_keys {
    char table[OPTION_TEXT_BYTES];    /* path, relative to the scenario, else to the current folder */
    char hardware[OPTION_TEXT_BYTES]; /* what the rows' hardware begins with */
    char system[OPTION_TEXT_BYTES];   /* whose rows the variant below stands for */
    char library[OPTION_TEXT_BYTES];  /* whose the nccl variants do */
    char variant[OPTION_TEXT_BYTES];  /* a label */
};

extern const struct option published_options[];

struct published_value {
    double us, low_us, high_us;
    uint32_t sets;
};

/* Reads the `published` section of s->source, which is checked; s->published stays NULL without one. */
enum status published_read(struct scenario *s);
void published_destroy(struct published *p); /* NULL is fine */

/* Whether something is published of this point. */
bool published_find(const struct scenario *s, const struct point *point, struct published_value *out);

/* Errors of many points, and how often the published and the simulated side agree on who is faster. */
struct published_total {
    double *errors; /* |simulated / published - 1| */
    uint64_t count;
    uint64_t pairs, agreed;
};

void published_total_add(struct published_total *t, double error);
void published_total_print(const struct published_total *t, const char *what, FILE *f);
void published_total_fini(struct published_total *t);

#endif
