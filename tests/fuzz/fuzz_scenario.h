#ifndef TESTS_FUZZ_FUZZ_SCENARIO_H
#define TESTS_FUZZ_FUZZ_SCENARIO_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's entry, by the name that it looks for. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
