/* The backends there are, in the order in which `list` shows them; ends with NULL. */
#ifndef BACKENDS_BACKENDS_H
#define BACKENDS_BACKENDS_H

#include "core/backend.h"

extern const struct backend *const backends[];

#endif
