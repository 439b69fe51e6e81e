/* GEMMs that read the rows of A by index, by hand on two ranks of a node: rows of both, each behind the flag of its
 * chunk, half of which are copied there first; a whole tile, one that ends inside its matrix, one that ends with it,
 * and results in f32.  `n` at most 256. */
#ifndef TESTS_DEVICE_INDEX_STORY_H
#define TESTS_DEVICE_INDEX_STORY_H

#include "core/kernel.h"
#include "core/program.h"

struct problem index_story_problem(uint64_t n, uint64_t k);
void index_story_build(struct program *p, const struct problem *problem);

/* With its reference and its index lists. */
extern const struct kernel index_story_kernel;

#endif
