#ifndef TESTS_DEVICE_CUDA_MIXED_H
#define TESTS_DEVICE_CUDA_MIXED_H

#include <check.h>

/* Programs that have attention and dynamic work. */
TCase *cuda_mixed_tests(void);

#endif
