#include "core/parse/nearest.h"

#include <stdio.h>
#include <string.h>

static unsigned min_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Edits (insert, delete, replace, swap two neighbours) that turn `a` into `b`. */
static unsigned edit_distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    unsigned rows[3][NEAREST_NAME_BYTES]; /* row i of the table lives in rows[i % 3] */

    for (size_t j = 0; j <= b_size; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_size; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_size; j++) {
            unsigned best = above[j - 1] + (a[i - 1] != b[j - 1]);

            best = min_of(best, min_of(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = min_of(best, two_above[j - 2] + 1);
            row[j] = best;
        }
    }
    return rows[a_size % 3][b_size];
}

void nearest_begin(struct nearest *n, const char *word)
{
    *n = (struct nearest){.word = word, .distance = (unsigned)-1};
}

void nearest_offer(struct nearest *n, const char *candidate)
{
    size_t word_size = strlen(n->word), size = strlen(candidate);
    unsigned distance;

    if (word_size == 0 || word_size >= NEAREST_NAME_BYTES || size >= NEAREST_NAME_BYTES)
        return;
    distance = edit_distance(n->word, word_size, candidate, size);
    if (distance <= 1 + word_size / 4 && distance < size && distance < n->distance) {
        memcpy(n->best, candidate, size + 1);
        n->distance = distance;
    }
}

const char *nearest_text(const struct nearest *n, char *out, size_t out_bytes)
{
    out[0] = '\0';
    if (n->best[0])
        snprintf(out, out_bytes, "; did you mean \"%s\"?", n->best);
    return out;
}
