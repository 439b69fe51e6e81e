#include "core/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text text_begin(char *out, size_t out_bytes)
{
    if (out_bytes > 0)
        out[0] = 0;
    return (struct text){.out = out, .size = out_bytes};
}

void text_add(struct text *x, const char *format, ...)
{
    va_list args;
    int n;

    if (x->used >= x->size)
        return;
    va_start(args, format);
    n = vsnprintf(x->out + x->used, x->size - x->used, format, args);
    va_end(args);
    x->used += n > 0 ? (size_t)n : 0;
    if (x->used >= x->size && x->size > 4)
        strcpy(x->out + x->size - 4, "...");
}

void text_end_line(struct text *x)
{
    text_add(x, "\n");
    x->lines++;
}
