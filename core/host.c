#include "core/host.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/world.h"

/* The number behind `key` in a "key: number" file, or `otherwise`. */
static uint64_t number_in(const char *path, const char *key, uint64_t otherwise)
{
    FILE *f = fopen(path, "r");
    char line[256];
    uint64_t value = otherwise;
    size_t n = strlen(key);

    if (!f)
        return otherwise;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, key, n) == 0 && sscanf(line + n, "%*[: ]%" SCNu64, &value) == 1)
            break;
    fclose(f);
    return value;
}

/* A file that holds one number; "max" and a missing file mean no limit. */
static uint64_t limit_in(const char *folder, const char *file)
{
    char path[700];
    FILE *f;
    uint64_t value = UINT64_MAX;

    snprintf(path, sizeof path, "%s/%s", folder, file);
    f = fopen(path, "r");
    if (!f)
        return UINT64_MAX;
    if (fscanf(f, "%" SCNu64, &value) != 1)
        value = UINT64_MAX;
    fclose(f);
    return value;
}

/* What the limit of one cgroup leaves; its file cache gives way before anything is killed. */
static uint64_t cgroup_left(const char *folder, const char *limit_file, const char *usage_file)
{
    char stat_path[700];
    uint64_t limit = limit_in(folder, limit_file), used = limit_in(folder, usage_file), cache;

    if (limit == UINT64_MAX || used == UINT64_MAX)
        return UINT64_MAX;
    snprintf(stat_path, sizeof stat_path, "%s/memory.stat", folder);
    cache = number_in(stat_path, "inactive_file", 0);
    used -= min_u64(used, cache);
    return limit - min_u64(limit, used);
}

/* The tightest of this process's cgroup (version 2) and all that contain it; version 1: its own mount. */
static uint64_t cgroups_left(void)
{
    char line[512], folder[600];
    uint64_t left = cgroup_left("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes");
    FILE *f = fopen("/proc/self/cgroup", "r");

    if (!f)
        return left;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "0::", 3) != 0)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(folder, sizeof folder, "/sys/fs/cgroup%s", line + 3);
        while (strlen(folder) >= strlen("/sys/fs/cgroup")) {
            left = min_u64(left, cgroup_left(folder, "memory.max", "memory.current"));
            *strrchr(folder, '/') = 0;
        }
    }
    fclose(f);
    return left;
}

static void read_cpu_model(char *out, size_t out_bytes)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[512], *colon;

    snprintf(out, out_bytes, "unknown");
    if (!f)
        return;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "model name", 10) != 0 || !(colon = strchr(line, ':')))
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(out, out_bytes, "%s", colon + 1 + strspn(colon + 1, " "));
        break;
    }
    fclose(f);
}

struct host host_read(void)
{
    struct host h = {0};
    struct utsname u;
    cpu_set_t cpus;

    read_cpu_model(h.cpu, sizeof h.cpu);
    if (uname(&u) == 0) {
        snprintf(h.name, sizeof h.name, "%s", u.nodename);
        snprintf(h.kernel, sizeof h.kernel, "%.60s %.60s %.60s", u.sysname, u.release, u.machine);
    }
    /* The call fails where there are more processors than a cpu_set_t holds. */
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
        h.cores = (uint32_t)CPU_COUNT(&cpus);
    else
        h.cores = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    h.memory_bytes = number_in("/proc/meminfo", "MemTotal", 0) * 1024;
    h.available_bytes = min_u64(number_in("/proc/meminfo", "MemAvailable", 0) * 1024, cgroups_left());
    return h;
}
