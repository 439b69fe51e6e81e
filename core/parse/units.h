/* Numbers with units, exact: text to whole bytes, picoseconds or bytes per second and back. */
#ifndef CORE_PARSE_UNITS_H
#define CORE_PARSE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum quantity { QUANTITY_SIZE, QUANTITY_TIME, QUANTITY_RATE };

/* "1.5MiB", "850ns", "400Gb/s".  On ST_INPUT `why` holds one sentence without a full stop. */
enum status units_parse(enum quantity q, const char *text, uint64_t *out, char *why, size_t why_bytes);

/* The shortest form that units_parse reads back as the same value. */
void units_print(enum quantity q, uint64_t value, char *out, size_t out_bytes);

#endif
