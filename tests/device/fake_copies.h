/* The copy engine of the fake: copies and the words behind them, in order, some time after they were asked for. */
#ifndef TESTS_DEVICE_FAKE_COPIES_H
#define TESTS_DEVICE_FAKE_COPIES_H

#include <stddef.h>
#include <stdint.h>

void fake_copies_copy(void *to, const void *from, size_t bytes);
void fake_copies_write(uint64_t *word, uint64_t value);
void fake_copies_drain(void); /* returns once all that was asked for is done */

#endif
