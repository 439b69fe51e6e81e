#include "core/kernel.h"

#include <stdarg.h>
#include <stdio.h>

enum status complain(struct complaint *c, const char *key, const char *format, ...)
{
    va_list args;

    snprintf(c->key, sizeof c->key, "%s", key);
    va_start(args, format);
    vsnprintf(c->text, sizeof c->text, format, args);
    va_end(args);
    return ST_INPUT;
}
