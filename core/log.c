#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>

static bool quiet_mode, mute_mode;
static const char *line_prefix = "";

static void log_line(const char *kind, const char *format, va_list args)
{
    char text[2048];

    if (mute_mode)
        return;
    vsnprintf(text, sizeof text, format, args);
    fprintf(stderr, "mkernel: %s%s%s\n", line_prefix, kind, text); /* one call: lines of two threads do not mix */
}

#define LOG_BODY(kind)                                                                                                 \
    do {                                                                                                               \
        va_list args;                                                                                                  \
        va_start(args, format);                                                                                        \
        log_line(kind, format, args);                                                                                  \
        va_end(args);                                                                                                  \
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

void log_set_mute(bool mute)
{
    mute_mode = mute;
}

void log_set_prefix(const char *prefix)
{
    line_prefix = prefix;
}
