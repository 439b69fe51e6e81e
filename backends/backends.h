/* The backends there are, and how processes are started on several nodes. */
#ifndef BACKENDS_BACKENDS_H
#define BACKENDS_BACKENDS_H

#include "core/backend.h"
#include "core/run/nodes.h"

extern const struct backend *const backends[]; /* in the order in which `list` shows them; ends with NULL */

extern const struct launcher *const launcher; /* NULL: built without MPI */

#endif
