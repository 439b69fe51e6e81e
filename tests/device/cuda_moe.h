#ifndef TESTS_DEVICE_CUDA_MOE_H
#define TESTS_DEVICE_CUDA_MOE_H

#include <check.h>

/* Dynamic work on a GPU: routings of every kind, what there is no room for, what crosses between nodes. */
TCase *cuda_index_tests(void); /* GEMMs alone that read rows by index */
TCase *cuda_moe_tests(void);

#endif
