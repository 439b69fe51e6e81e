/* What must be true of a file's bytes before a YAML parser sees them. */
#ifndef CORE_PARSE_YAML_FILE_H
#define CORE_PARSE_YAML_FILE_H

#include <stddef.h>

#include "core/status.h"

/* Reads a regular file of at most YAML_FILE_BYTES_MAX; the caller frees *text_out. */
enum status yaml_read_file(const char *path, char **text_out, size_t *text_bytes_out);

/* Refuses what is not UTF-8 text: NUL and other control characters, broken sequences. */
enum status yaml_check_text(const char *name, const char *text, size_t text_bytes);

#endif
