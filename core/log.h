/* Messages for people, on stderr, one line each, prefixed "mkernel: ". */
#ifndef CORE_LOG_H
#define CORE_LOG_H

#include <stdbool.h>

void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Silences log_info (`--quiet`). */
void log_set_quiet(bool quiet);

#endif
