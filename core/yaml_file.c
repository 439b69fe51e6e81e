#include "core/yaml_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"
#include "core/place.h"
#include "core/yaml.h"

static enum status refuse_file(const char *path, const char *why)
{
    log_error("%s: %s; expected a YAML file of at most 1 MiB", path, why);
    return ST_INPUT;
}

static const char *wrong_kind(mode_t mode)
{
    if (S_ISDIR(mode))
        return "is a folder";
    return S_ISREG(mode) ? NULL : "is a device, pipe or socket";
}

/* Up to `capacity` bytes; a file that grows meanwhile is cut there and refused by the caller. */
static ssize_t read_all(int fd, char *text, size_t capacity)
{
    size_t used = 0;

    while (used < capacity) {
        ssize_t got = read(fd, text + used, capacity - used);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        used += (size_t)got;
    }
    return (ssize_t)used;
}

static enum status read_open_file(const char *path, int fd, char **text_out, size_t *bytes_out)
{
    struct stat info;
    ssize_t got;
    char *text;

    if (fstat(fd, &info) != 0)
        return refuse_file(path, strerror(errno));
    if (wrong_kind(info.st_mode))
        return refuse_file(path, wrong_kind(info.st_mode));
    if (info.st_size > YAML_FILE_BYTES_MAX)
        return refuse_file(path, "is too large");
    text = malloc(YAML_FILE_BYTES_MAX + 1);
    if (!text)
        return ST_MEMORY;
    got = read_all(fd, text, YAML_FILE_BYTES_MAX + 1);
    if (got < 0 || got > (ssize_t)YAML_FILE_BYTES_MAX) {
        free(text);
        return refuse_file(path, got < 0 ? strerror(errno) : "is too large");
    }
    *text_out = text;
    *bytes_out = (size_t)got;
    return ST_OK;
}

enum status yaml_read_file(const char *path, char **text_out, size_t *text_bytes_out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block us */
    enum status st;

    if (fd < 0)
        return refuse_file(path, strerror(errno));
    st = read_open_file(path, fd, text_out, text_bytes_out);
    close(fd);
    return st;
}

/* Length of the UTF-8 sequence at `s`, 0: broken, overlong or a surrogate. */
static size_t sequence_bytes(const unsigned char *s, size_t left)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = s[0] < 0x80       ? 1
                  : s[0] >> 5 == 6  ? 2
                  : s[0] >> 4 == 14 ? 3
                  : s[0] >> 3 == 30 ? 4
                                    : 0;
    uint32_t code = size == 1 ? s[0] : s[0] & (0xffu >> (size + 1));

    if (size == 0 || size > left)
        return 0;
    for (size_t i = 1; i < size; i++) {
        if (s[i] >> 6 != 2)
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    if (size > 1 && (code < smallest[size] || code > 0x10ffff || (code >> 11) == 0x1b))
        return 0;
    return size;
}

enum status yaml_check_text(const char *name, const char *text, size_t text_bytes)
{
    const unsigned char *s = (const unsigned char *)text;
    struct place place = {name, 1, 1};

    for (size_t i = 0; i < text_bytes;) {
        size_t size = sequence_bytes(s + i, text_bytes - i);
        bool control = s[i] < ' ' && s[i] != '\n' && s[i] != '\r' && s[i] != '\t';

        if (size == 0 || control || s[i] == 127) {
            place_error(&place, "byte 0x%02x is not text; expected a YAML file in UTF-8", s[i]);
            return ST_INPUT;
        }
        place.column++;
        if (s[i] == '\n') {
            place.line++;
            place.column = 1;
        }
        i += size;
    }
    return ST_OK;
}
