#ifndef TESTS_DEVICE_CUDA_TRACE_H
#define TESTS_DEVICE_CUDA_TRACE_H

#include <check.h>

/* What traced runs tell: every task once, waits before their tasks or inside, one thing at a time
 * on every worker. */
TCase *cuda_trace_tests(void);

#endif
