/* The text of a trace on its way to a file: buffered, compressed by zlib when the name ends in .gz, given its
 * name only when it is complete (core/results/result.h). */
#ifndef CORE_TRACE_TRACE_FILE_H
#define CORE_TRACE_TRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include "core/results/result.h"

#define TRACE_FILE_BUFFER_BYTES 65536

struct trace_file {
    struct result_file file;
    bool gzip;
    z_stream z;
    uint64_t written; /* bytes before compression */
    size_t used;
    char buffer[TRACE_FILE_BUFFER_BYTES];
};

enum status trace_file_open(struct trace_file *f, const char *path);

/* Where the next `size` bytes may be written, at most TRACE_FILE_BUFFER_BYTES; trace_file_take() keeps them.
 * Failures are remembered for trace_file_close(). */
void trace_file_flush(struct trace_file *f);

static inline char *trace_file_reserve(struct trace_file *f, size_t size)
{
    if (f->used + size > sizeof f->buffer)
        trace_file_flush(f);
    return f->buffer + f->used;
}

static inline void trace_file_take(struct trace_file *f, size_t size)
{
    f->used += size;
    f->written += size;
}

/* Inline, so that a literal's length is known: this is most of what tracing costs. */
static inline void trace_file_text(struct trace_file *f, const char *text)
{
    size_t size = strlen(text);

    memcpy(trace_file_reserve(f, size), text, size);
    trace_file_take(f, size);
}

void trace_file_quoted(struct trace_file *f, const char *text); /* a JSON string, quotes included */
void trace_file_count(struct trace_file *f, uint64_t value);
void trace_file_us(struct trace_file *f, uint64_t ps); /* whole nanoseconds: "12.345" */

/* Gives the file its name if `keep`, else removes it; path_out (RESULT_PATH_BYTES) says which name. */
enum status trace_file_close(struct trace_file *f, bool keep, char *path_out);

#endif
