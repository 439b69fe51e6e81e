/* Members of a run as children (fork) or threads of one test program, joined by socket pairs. */
#ifndef BACKENDS_NET_BOOTSTRAP_LOCAL_H
#define BACKENDS_NET_BOOTSTRAP_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/net/bootstrap.h"

#define LOCAL_MEMBERS_MAX 64

/* One member's life; returns its exit code (0 to 125).  The bootstrap is closed behind it. */
typedef int local_member_fn(struct bootstrap *b, void *arg);

enum local_kind { LOCAL_PROCESSES, LOCAL_THREADS };

#define LOCAL_KILLED 128 /* + the signal's number, as a shell says it */
#define LOCAL_LEAKS 126  /* a process that returned 0 and leaks, under AddressSanitizer */

/* Runs fn(member, arg) for every member and waits for all of them.  codes[i] is what member i returned,
 * LOCAL_KILLED + the signal for a process that died of one.  Processes that are still there after
 * `timeout_s` seconds are killed; threads cannot be, they have to end by themselves.  Calls of the
 * bootstrap end after `timeout_s` seconds as well.  False: nothing was started. */
bool local_run(enum local_kind kind, uint32_t size, double timeout_s, local_member_fn *fn, void *arg, int *codes);

#endif
