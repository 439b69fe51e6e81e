/* Text put together piece by piece in the caller's storage.  What has no room is cut, and ends in "...". */
#ifndef CORE_TEXT_H
#define CORE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text {
    char *out;
    size_t size, used;
    uint32_t lines; /* ended so far */
};

struct text text_begin(char *out, size_t out_bytes);
void text_add(struct text *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_end_line(struct text *x);

#endif
