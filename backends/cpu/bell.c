#include "backends/cpu/bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint32_t bell_read(struct bell *b)
{
    return atomic_load_explicit(&b->rings, memory_order_relaxed);
}

void bell_sleep(struct bell *b, uint32_t seen, uint64_t nanoseconds)
{
    struct timespec limit = {.tv_sec = (time_t)(nanoseconds / 1000000000), .tv_nsec = (long)(nanoseconds % 1000000000)};

    atomic_fetch_add_explicit(&b->sleepers, 1, memory_order_relaxed);
    syscall(SYS_futex, &b->rings, FUTEX_WAIT_PRIVATE, seen, &limit, NULL, 0);
    atomic_fetch_sub_explicit(&b->sleepers, 1, memory_order_relaxed);
}

void bell_ring(struct bell *b)
{
    atomic_fetch_add_explicit(&b->rings, 1, memory_order_relaxed);
    if (atomic_load_explicit(&b->sleepers, memory_order_relaxed) > 0)
        syscall(SYS_futex, &b->rings, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
