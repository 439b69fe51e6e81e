#include "backends/net/ofi_shm.h"

#include <dirent.h>
#include <pthread.h>
#include <rdma/fi_cm.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "/dev/shm"
#define PREFIX "fi_shm://" /* of an address; behind it stands the region's name */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t done_by; /* a child of a process that has done it has not */

static void remove_region(const char *name)
{
    char path[sizeof FOLDER + sizeof((struct dirent *)0)->d_name + 1];

    snprintf(path, sizeof path, "%s/%s", FOLDER, name);
    unlink(path);
}

void ofi_shm_unlink(struct fid_ep *ep)
{
    char address[256] = "";
    size_t bytes = sizeof address - 1;

    if (fi_getname(&ep->fid, address, &bytes) == 0 && strncmp(address, PREFIX, strlen(PREFIX)) == 0)
        remove_region(address + strlen(PREFIX));
}

static void remove_own(DIR *folder)
{
    char own[32];
    struct dirent *entry;

    snprintf(own, sizeof own, "%d:", getpid()); /* process, user, endpoint: "4711:0:0" */
    while ((entry = readdir(folder)))
        if (strncmp(entry->d_name, own, strlen(own)) == 0)
            remove_region(entry->d_name);
}

void ofi_shm_forget_dead(void)
{
    pthread_mutex_lock(&lock);
    if (done_by != getpid()) {
        DIR *folder = opendir(FOLDER);

        if (folder) {
            remove_own(folder);
            closedir(folder);
        }
        done_by = getpid();
    }
    pthread_mutex_unlock(&lock);
}
