#include "core/trace/trace_file.h"

#include <errno.h>

#include "core/log.h"

#define GZIP_WINDOW_BITS (15 + 16) /* zlib's way to ask for a gzip header */
#define GZIP_LEVEL 1               /* a fifth of the size at a third of the time of the default */
#define PS_PER_NS 1000u
#define NS_PER_US 1000u

static void put(struct trace_file *f, const void *data, size_t size)
{
    if (f->file.status >= 0 && fwrite(data, 1, size, f->file.file) != size) {
        log_error("trace: cannot write %s: %s", f->file.path, strerror(errno));
        f->file.status = ST_IO;
    }
}

static void compress_buffer(struct trace_file *f, int flush)
{
    unsigned char out[TRACE_FILE_BUFFER_BYTES];

    f->z.next_in = (unsigned char *)f->buffer;
    f->z.avail_in = (uInt)f->used;
    do {
        f->z.next_out = out;
        f->z.avail_out = sizeof out;
        deflate(&f->z, flush);
        put(f, out, sizeof out - f->z.avail_out);
    } while (f->z.avail_out == 0);
}

static void empty_buffer(struct trace_file *f, int flush)
{
    if (f->gzip)
        compress_buffer(f, flush);
    else
        put(f, f->buffer, f->used);
    f->used = 0;
}

enum status trace_file_open(struct trace_file *f, const char *path)
{
    size_t size = strlen(path);

    *f = (struct trace_file){.gzip = size > 3 && strcmp(path + size - 3, ".gz") == 0};
    TRY(result_open(&f->file, path));
    if (!f->gzip || deflateInit2(&f->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, 8, Z_DEFAULT_STRATEGY) == Z_OK)
        return ST_OK;
    result_close(&f->file);
    log_error("trace: zlib does not start");
    return ST_MEMORY;
}

void trace_file_flush(struct trace_file *f)
{
    empty_buffer(f, Z_NO_FLUSH);
}

void trace_file_quoted(struct trace_file *f, const char *text)
{
    char out[1024];
    size_t used = 0;

    out[used++] = '"';
    for (; *text && used < sizeof out - 8; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            out[used++] = '\\';
        if (c >= 0x20)
            out[used++] = (char)c;
        else
            used += (size_t)snprintf(out + used, 7, "\\u%04x", c);
    }
    out[used++] = '"';
    out[used] = 0;
    trace_file_text(f, out);
}

static size_t print_count(char out[20], uint64_t value)
{
    char digits[20];
    size_t count = 0;

    do
        digits[count++] = (char)('0' + value % 10);
    while (value /= 10);
    for (size_t i = 0; i < count; i++)
        out[i] = digits[count - 1 - i];
    return count;
}

void trace_file_count(struct trace_file *f, uint64_t value)
{
    trace_file_take(f, print_count(trace_file_reserve(f, 20), value));
}

void trace_file_us(struct trace_file *f, uint64_t ps)
{
    uint64_t ns = ps / PS_PER_NS;
    unsigned part = (unsigned)(ns % NS_PER_US);
    char *out = trace_file_reserve(f, 24);
    size_t size = print_count(out, ns / NS_PER_US);

    if (part > 0) {
        out[size++] = '.';
        out[size++] = (char)('0' + part / 100);
        out[size++] = (char)('0' + part / 10 % 10);
        out[size++] = (char)('0' + part % 10);
    }
    trace_file_take(f, size);
}

enum status trace_file_close(struct trace_file *f, bool keep, char *path_out)
{
    enum status st = ST_OK;

    *path_out = 0;
    if (keep) {
        empty_buffer(f, Z_FINISH);
        st = result_commit(&f->file, path_out);
    }
    result_close(&f->file);
    if (f->gzip)
        deflateEnd(&f->z);
    return st;
}
