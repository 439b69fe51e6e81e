#ifndef TESTS_DEVICE_CUDA_ATTENTION_H
#define TESTS_DEVICE_CUDA_ATTENTION_H

#include <check.h>

/* Attention on a GPU beside other ops, and one whose keys never come. */
TCase *cuda_attention_tests(void);

#endif
