#include "core/parse/place.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/log.h"

const char *place_text(const struct place *p, char out[PLACE_TEXT_BYTES])
{
    const char *file = p->file ? p->file : "default";

    if (p->line == 0)
        snprintf(out, PLACE_TEXT_BYTES, "%s", file);
    else
        snprintf(out, PLACE_TEXT_BYTES, "%s:%u:%u", file, p->line, p->column);
    return out;
}

void place_error(const struct place *p, const char *format, ...)
{
    char where[PLACE_TEXT_BYTES], text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_error("%s: %s", place_text(p, where), text);
}
