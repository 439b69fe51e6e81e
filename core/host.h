/* The machine this process runs on, for results, `doctor` and memory estimates. */
#ifndef CORE_HOST_H
#define CORE_HOST_H

#include <stdint.h>

struct host {
    char name[128];
    char cpu[128];
    char kernel[192]; /* "Linux 6.1.0 x86_64" */
    uint32_t cores;   /* that this process may use */
    uint64_t memory_bytes;
    uint64_t available_bytes; /* what can still be allocated: free memory, or what a cgroup leaves */
};

struct host host_read(void);

#endif
