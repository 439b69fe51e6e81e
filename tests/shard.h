/* A share of a looped Check test, so that CTest runs one long table on several cores. */
#ifndef TESTS_SHARD_H
#define TESTS_SHARD_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* MKERNEL_TEST_SHARD=i/n: of the loop's `count` passes this process runs the i-th of n equal runs, i from 1; unset:
 * all.  Anything else ends the program: a share that is not there must not pass. */
static inline void shard_add_loop_test(TCase *tc, const TTest *test, int count)
{
    const char *text = getenv("MKERNEL_TEST_SHARD");
    int i = 1, n = 1;

    if (text && (sscanf(text, "%d/%d", &i, &n) != 2 || i < 1 || i > n)) {
        fprintf(stderr, "MKERNEL_TEST_SHARD=%s: expected i/n, i from 1 to n\n", text);
        exit(2);
    }
    tcase_add_loop_test(tc, test, (int)((long)count * (i - 1) / n), (int)((long)count * i / n));
}

#endif
