/* What threads sleep on until something has changed.
 *
 * A bell orders no memory, on purpose: a program's data is ordered by its flags alone, and a bell
 * that synchronised would hide races of programs from ThreadSanitizer.  The price is that a ring
 * may go unheard on processors that reorder more than x86 does; every sleep therefore ends after
 * BELL_SLEEP_NS at most. */
#ifndef BACKENDS_CPU_BELL_H
#define BACKENDS_CPU_BELL_H

#include <stdatomic.h>
#include <stdint.h>

#define BELL_SLEEP_NS 20000000

struct bell {
    _Atomic uint32_t rings, sleepers;
};

/* Read first, then look for something to do, then sleep: a ring in between is not lost. */
uint32_t bell_read(struct bell *b);
void bell_sleep(struct bell *b, uint32_t seen, uint64_t nanoseconds);
void bell_ring(struct bell *b);

#endif
