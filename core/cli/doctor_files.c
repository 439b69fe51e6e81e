#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/cli/doctor.h"

#define PATH_BYTES 512

static FILE *open_below(const struct doctor *d, const char *path)
{
    char full[PATH_BYTES];

    snprintf(full, sizeof full, "%s/%s", d->root, path);
    return fopen(full, "r");
}

bool doctor_exists(const struct doctor *d, const char *path)
{
    char full[PATH_BYTES];

    snprintf(full, sizeof full, "%s/%s", d->root, path);
    return access(full, F_OK) == 0;
}

bool doctor_line(const struct doctor *d, const char *path, char *out, size_t out_bytes)
{
    return doctor_value(d, path, "", out, out_bytes);
}

bool doctor_value(const struct doctor *d, const char *path, const char *key, char *out, size_t out_bytes)
{
    FILE *f = open_below(d, path);
    char line[PATH_BYTES];
    bool found = false;

    while (f && !found && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0) {
            const char *rest = line + strlen(key);

            line[strcspn(line, "\n")] = 0;
            snprintf(out, out_bytes, "%s", rest + strspn(rest, key[0] ? ": \t" : ""));
            found = true;
        }
    if (f)
        fclose(f);
    return found;
}

uint32_t doctor_each(const struct doctor *d, const char *pattern, doctor_path_fn *fn, void *arg)
{
    char full[PATH_BYTES];
    glob_t found;
    size_t count;

    snprintf(full, sizeof full, "%s/%s", d->root, pattern);
    if (glob(full, 0, NULL, &found) != 0)
        return 0;
    count = found.gl_pathc;
    for (size_t i = 0; fn && i < count; i++)
        fn(d, found.gl_pathv[i] + strlen(d->root) + 1, arg);
    globfree(&found);
    return (uint32_t)count;
}

void finding_add(struct finding *f, const char *format, ...)
{
    size_t used = strlen(f->text);
    va_list args;

    used += (size_t)snprintf(f->text + used, sizeof f->text - used, "%s", used ? ", " : "");
    if (used >= sizeof f->text)
        return;
    va_start(args, format);
    vsnprintf(f->text + used, sizeof f->text - used, format, args);
    va_end(args);
}
