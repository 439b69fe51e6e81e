/* How the processes of one run find each other: who am I of how many, and equal pieces from everybody to
 * everybody.  Used before the first put and after the last one, never in between.
 *
 * Implementations: bootstrap_local.h, for test programs; one for MPI beside it.  Every call is
 * collective and ends in bounded time; on an error (ST_IO: a member is gone; ST_HANG: it does not
 * answer) `error` names the member, and the bootstrap is only good for closing. */
#ifndef BACKENDS_NET_BOOTSTRAP_H
#define BACKENDS_NET_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct bootstrap;

struct bootstrap_ops {
    const char *name; /* "mpi" */
    /* Member i's `bytes` bytes end up at all[i * bytes], on every member. */
    enum status (*allgather)(struct bootstrap *b, const void *mine, size_t bytes, void *all);
    /* Safe on whatever opening left behind; the others notice. */
    void (*close)(struct bootstrap *b);
};

struct bootstrap {
    const struct bootstrap_ops *ops;
    uint32_t rank, size; /* of this member; of all */
    void *state;         /* the implementation's */
    char error[256];
};

enum status bootstrap_allgather(struct bootstrap *b, const void *mine, size_t bytes, void *all);
enum status bootstrap_barrier(struct bootstrap *b); /* nobody leaves before everybody has come */
void bootstrap_close(struct bootstrap *b);

#endif
