#include "core/shipped.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if !defined MKERNEL_SOURCE_DIR || !defined MKERNEL_INSTALLED_BIN || !defined MKERNEL_INSTALLED_SHARE
#error "the build defines them: core/CMakeLists.txt"
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char folder[PATH_MAX];

/* The folder of this program's file, links followed. */
static bool program_folder(char *out, size_t out_bytes)
{
    ssize_t size = readlink("/proc/self/exe", out, out_bytes - 1);
    char *slash;

    if (size < 0)
        return false;
    out[size] = 0;
    slash = strrchr(out, '/');
    if (!slash)
        return false;
    *slash = 0;
    return true;
}

/* The folder's name counts, too: a prefix may well be the folder that holds the build tree. */
static bool find_installed(void)
{
    char program[PATH_MAX], share[PATH_MAX + sizeof MKERNEL_INSTALLED_SHARE];
    const char *name;

    if (!program_folder(program, sizeof program))
        return false;
    name = strrchr(program, '/');
    snprintf(share, sizeof share, "%s/%s", program, MKERNEL_INSTALLED_SHARE);
    return name && strcmp(name + 1, MKERNEL_INSTALLED_BIN) == 0 && realpath(share, folder);
}

static void find_folder(void)
{
    if (!find_installed())
        snprintf(folder, sizeof folder, "%s", MKERNEL_SOURCE_DIR);
}

const char *shipped_folder(void)
{
    pthread_once(&once, find_folder);
    return folder;
}
