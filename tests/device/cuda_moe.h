#ifndef TESTS_DEVICE_CUDA_MOE_H
#define TESTS_DEVICE_CUDA_MOE_H

#include <check.h>

/* Dynamic work on a GPU: routings of every kind, what there is no room for, what crosses between nodes. */
TCase *cuda_moe_tests(void);

#endif
