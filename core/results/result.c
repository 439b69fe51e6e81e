#include "core/results/result.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"

#define NAMES_MAX 10000

static enum status fail(struct result_file *f, const char *what, const char *path)
{
    log_error("cannot %s %s: %s", what, path, strerror(errno));
    f->status = ST_IO;
    return ST_IO;
}

/* Something that is there and no regular file (a device, a named pipe) is written to as it stands. */
static bool open_special(struct result_file *f, const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0 || S_ISREG(st.st_mode))
        return false;
    f->file = fopen(path, "w");
    if (!f->file)
        fail(f, "write", path);
    return true;
}

enum status result_open(struct result_file *f, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    mode_t mask;
    int fd;

    *f = (struct result_file){0};
    if (strcmp(path, "-") == 0) {
        log_error("-: standard output cannot be chosen here; expected the name of a file");
        return f->status = ST_INPUT;
    }
    if (*name == 0 || strlen(path) + 8 >= sizeof f->path) {
        errno = *name == 0 ? EISDIR : ENAMETOOLONG;
        return fail(f, "write", path);
    }
    snprintf(f->path, sizeof f->path, "%s", path);
    if (open_special(f, path))
        return f->status;
    snprintf(f->temporary, sizeof f->temporary, "%.*s.%s.XXXXXX", (int)(name - path), path, name);
    f->status = file_create_folders(f->path);
    if (f->status < 0)
        return f->status;
    fd = mkstemp(f->temporary);
    if (fd < 0)
        return fail(f, "create a file beside", path);
    mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask); /* mkstemp's 0600 would hide results from colleagues */
    f->file = fdopen(fd, "w");
    return ST_OK;
}

void result_write(struct result_file *f, const char *line)
{
    if (!f->file || f->status < 0)
        return;
    if (fprintf(f->file, "%s\n", line) < 0)
        fail(f, "write", f->path);
}

/* Two runs that end at once keep both files. */
static enum status take_free_name(struct result_file *f, char *path_out)
{
    int error = EEXIST;

    for (int i = 0; i < NAMES_MAX && error == EEXIST; i++) {
        if (i == 0)
            snprintf(path_out, RESULT_PATH_BYTES, "%s", f->path);
        else
            snprintf(path_out, RESULT_PATH_BYTES, "%.*s.%d", RESULT_PATH_BYTES - 8, f->path, i);
        error = file_publish(f->temporary, path_out);
    }
    if (error == 0)
        return ST_OK;
    errno = error;
    return fail(f, "create", path_out);
}

enum status result_commit(struct result_file *f, char *path_out)
{
    bool regular = f->temporary[0] != 0;

    snprintf(path_out, RESULT_PATH_BYTES, "%s", f->path);
    if (f->file && f->status >= 0 && (fflush(f->file) != 0 || (regular && fsync(fileno(f->file)) != 0)))
        fail(f, "write", f->path);
    if (f->file && f->status >= 0 && regular)
        take_free_name(f, path_out);
    result_close(f);
    return f->status;
}

void result_close(struct result_file *f)
{
    if (!f->file)
        return;
    fclose(f->file);
    if (f->temporary[0])
        unlink(f->temporary);
    f->file = NULL;
}
