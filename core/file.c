#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"

#define PATH_BYTES 4096

struct reading {
    const char *path, *expected;
    size_t limit;
};

static enum status refuse(const struct reading *r, const char *why)
{
    log_error("%s: %s; expected %s", r->path, why, r->expected);
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

static enum status read_open_file(const struct reading *r, int fd, char **text_out, size_t *bytes_out)
{
    struct stat info;
    size_t size;
    ssize_t got;
    char *text;

    if (fstat(fd, &info) != 0)
        return refuse(r, strerror(errno));
    if (wrong_kind(info.st_mode))
        return refuse(r, wrong_kind(info.st_mode));
    size = (size_t)info.st_size;
    if (size > r->limit)
        return refuse(r, "is too large");
    text = malloc(size + 2);
    if (!text)
        return ST_MEMORY;
    got = read_all(fd, text, size + 1);
    if (got < 0 || (size_t)got > size) {
        free(text);
        return refuse(r, got < 0 ? strerror(errno) : "grows while it is read");
    }
    text[got] = 0;
    *text_out = text;
    *bytes_out = (size_t)got;
    return ST_OK;
}

enum status file_read(const char *path, const char *expected, size_t limit, char **text_out, size_t *bytes_out)
{
    struct reading r = {path, expected, limit};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block us */
    enum status st;

    if (fd < 0)
        return refuse(&r, strerror(errno));
    st = read_open_file(&r, fd, text_out, bytes_out);
    close(fd);
    return st;
}

static enum status refuse_long(const char *path)
{
    log_error("%.60s...: the path is too long", path);
    return ST_INPUT;
}

enum status file_create_folders(const char *path)
{
    char folder[PATH_BYTES];

    if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder)
        return refuse_long(path);
    for (char *slash = strchr(folder + (folder[0] == '/'), '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
            log_error("cannot create folder %s: %s", folder, strerror(errno));
            return ST_IO;
        }
        *slash = '/';
    }
    return ST_OK;
}

/* Not every file system renames so (NFS), and not every one has links (FAT). */
int file_publish(const char *temp, const char *path)
{
    if (renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    return link(temp, path) == 0 ? 0 : errno;
}

/* Everything is on disk before the name appears. */
static enum status create_beside(const char *path, char *temp, file_write_fn *fn, void *arg)
{
    int fd = mkstemp(temp);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    int error = f ? 0 : errno;

    if (f) {
        fn(arg, f);
        if (fflush(f) != 0 || fchmod(fd, 0644) != 0 || fsync(fd) != 0)
            error = errno;
        if (fclose(f) != 0 && error == 0)
            error = errno;
    }
    if (error == 0)
        error = file_publish(temp, path);
    if (fd >= 0)
        unlink(temp); /* gone already where it was renamed */
    if (error == EEXIST) {
        log_error("%s: exists already; expected the name of a new file", path);
        return ST_INPUT;
    }
    if (error != 0) {
        log_error("%s: cannot write: %s", path, strerror(error));
        return ST_IO;
    }
    return ST_OK;
}

enum status file_create(const char *path, file_write_fn *fn, void *arg)
{
    char temp[PATH_BYTES];

    if (snprintf(temp, sizeof temp, "%s.XXXXXX", path) >= (int)sizeof temp)
        return refuse_long(path);
    return create_beside(path, temp, fn, arg);
}
