#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>

static bool quiet_mode;

static void log_line(const char *kind, const char *format, va_list args)
{
    char text[2048];

    vsnprintf(text, sizeof text, format, args);
    fprintf(stderr, "mkernel: %s%s\n", kind, text); /* one call: lines of two threads do not mix */
}

#define LOG_BODY(kind)                \
    do {                              \
        va_list args;                 \
        va_start(args, format);       \
        log_line(kind, format, args); \
        va_end(args);                 \
    } while (0)

void log_error(const char *format, ...)
{
    LOG_BODY("error: ");
}

void log_warn(const char *format, ...)
{
    LOG_BODY("warning: ");
}

void log_info(const char *format, ...)
{
    if (!quiet_mode)
        LOG_BODY("");
}

void log_set_quiet(bool quiet)
{
    quiet_mode = quiet;
}
