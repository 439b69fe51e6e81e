/* "Did you mean": the name nearest to a mistyped one.  Offer candidates one by one, then ask. */
#ifndef CORE_PARSE_NEAREST_H
#define CORE_PARSE_NEAREST_H

#include <stddef.h>

#define NEAREST_NAME_BYTES 64 /* longer names are not compared */

struct nearest {
    const char *word;
    char best[NEAREST_NAME_BYTES]; /* "": nothing is near */
    unsigned distance;
};

void nearest_begin(struct nearest *n, const char *word);
void nearest_offer(struct nearest *n, const char *candidate);

/* Writes `; did you mean "x"?`, or nothing.  Returns `out`. */
const char *nearest_text(const struct nearest *n, char *out, size_t out_bytes);

#endif
