/* Messages for people, on stderr, one line each, prefixed "mkernel: ". */
#ifndef CORE_LOG_H
#define CORE_LOG_H

#include <stdbool.h>

void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Silences log_info (`--quiet`). */
void log_set_quiet(bool quiet);

/* Silences everything: another process says the same. */
void log_set_mute(bool mute);

/* What comes behind "mkernel: " from now on, "node 1 on host: "; the text stays the caller's. */
void log_set_prefix(const char *prefix);

#endif
