/* Whole files as they are. */
#ifndef CORE_FILE_H
#define CORE_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "core/status.h"

/* Reads a regular file of at most `limit` bytes; the caller frees *text_out, which has a 0 behind its last byte.
 * `expected` ("a YAML file of at most 1 MiB") ends the message about one that is not like that.  ST_INPUT:
 * logged. */
enum status file_read(const char *path, const char *expected, size_t limit, char **text_out, size_t *bytes_out);

/* Creates the folders that are missing before the last slash of a path.  ST_IO, or ST_INPUT for one that is too long;
 * both are logged. */
enum status file_create_folders(const char *path);

/* Writes a new file: it appears whole or not at all, and never over another.  ST_INPUT: there is one already; ST_IO.
 * Both are logged. */
typedef void file_write_fn(void *arg, FILE *f);
enum status file_create(const char *path, file_write_fn *fn, void *arg);

/* Gives the file `temp`, in the same folder, the name `path`, unless that is taken.  0, else errno: EEXIST.  `temp` may
 * or may not be left: the caller removes it either way. */
int file_publish(const char *temp, const char *path);

#endif
