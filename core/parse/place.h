/* Where a value came from, for messages. */
#ifndef CORE_PARSE_PLACE_H
#define CORE_PARSE_PLACE_H

#include <stdint.h>

/* Line 0: not from a file; `file` then says what it came from ("--set seed=2", "default"). */
struct place {
    const char *file; /* NULL: nothing better is known */
    uint32_t line, column;
};

#define PLACE_TEXT_BYTES 600

/* "file:line:column", or the file alone when there is no line.  Returns `out`. */
const char *place_text(const struct place *p, char out[PLACE_TEXT_BYTES]);

/* Logs "PLACE: message". */
void place_error(const struct place *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
