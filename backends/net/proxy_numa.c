#include "backends/net/proxy_numa.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>

#include "backends/net/proxy.h"

int proxy_numa_of_pci(const char *address)
{
    char path[128];
    int node = -1;
    FILE *f;

    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", address);
    for (char *c = path; *c; c++)
        *c = (char)tolower(*c); /* CUDA writes addresses in capitals, the kernel does not */
    f = fopen(path, "r");
    if (!f)
        return -1;
    if (fscanf(f, "%d", &node) != 1)
        node = -1;
    fclose(f);
    return node;
}

/* "0-31,64-95" */
static void read_list(FILE *f, cpu_set_t *set)
{
    int first, last, separator;

    while (fscanf(f, "%d", &first) == 1) {
        last = first;
        separator = fgetc(f);
        if (separator == '-' && fscanf(f, "%d", &last) == 1)
            separator = fgetc(f);
        for (int cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
            CPU_SET(cpu, set);
        if (separator != ',')
            return;
    }
}

void proxy_numa_keep_to(int node)
{
    cpu_set_t near, allowed, both;
    char path[64];
    FILE *f;

    if (node < 0)
        return;
    CPU_ZERO(&near);
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    f = fopen(path, "r");
    if (!f)
        return;
    read_list(f, &near);
    fclose(f);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    CPU_AND(&both, &near, &allowed);
    if (CPU_COUNT(&both) > 0)
        sched_setaffinity(0, sizeof both, &both);
}
