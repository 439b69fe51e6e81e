/* The monotonic clock. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <stdint.h>

uint64_t clock_now_ns(void);

#endif
