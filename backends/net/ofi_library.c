/* libfabric, opened when the first of its functions is called.  Linked, it would cost every command of ours: it brings
 * libinfinipath along, which sleeps for a quarter of a second before main() begins, and which takes over the signals of
 * Ctrl-C and of crashes, to end with code 1 and to leave a file.  These are all the functions of it that are not
 * inline; calls to others do not link. */
#include <dlfcn.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#define LIBRARY "libfabric.so.1"

static struct {
    int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
                   struct fi_info **info);
    void (*freeinfo)(struct fi_info *info);
    struct fi_info *(*dupinfo)(const struct fi_info *info);
    int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
    const char *(*strerror)(int error);
} ofi; /* all of them or none */

static const int taken[] = {SIGINT, SIGTERM, SIGILL, SIGABRT, SIGBUS, SIGSEGV};

#define TAKEN (sizeof taken / sizeof *taken)

static void *open_library(void)
{
    struct sigaction before[TAKEN];
    void *library;

    for (size_t i = 0; i < TAKEN; i++)
        sigaction(taken[i], NULL, &before[i]);
    library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < TAKEN; i++)
        sigaction(taken[i], &before[i], NULL);
    return library;
}

/* C has no cast from what dlsym() returns to a function. */
static bool find(void *library, const char *name, void *function_out)
{
    void *symbol = dlsym(library, name);

    memcpy(function_out, &symbol, sizeof symbol);
    return symbol;
}

static void load(void)
{
    void *library = open_library();

    if (!library || !find(library, "fi_freeinfo", &ofi.freeinfo) || !find(library, "fi_dupinfo", &ofi.dupinfo) ||
        !find(library, "fi_fabric", &ofi.fabric) || !find(library, "fi_strerror", &ofi.strerror) ||
        !find(library, "fi_getinfo", &ofi.getinfo))
        memset(&ofi, 0, sizeof ofi);
}

static bool loaded(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return ofi.getinfo;
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
               struct fi_info **info)
{
    return loaded() ? ofi.getinfo(version, node, service, flags, hints, info) : -FI_ENOSYS;
}

void fi_freeinfo(struct fi_info *info)
{
    if (loaded())
        ofi.freeinfo(info);
}

struct fi_info *fi_dupinfo(const struct fi_info *info)
{
    return loaded() ? ofi.dupinfo(info) : NULL;
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
    return loaded() ? ofi.fabric(attr, fabric, context) : -FI_ENOSYS;
}

const char *fi_strerror(int error)
{
    return loaded() ? ofi.strerror(error) : LIBRARY " is not here";
}
