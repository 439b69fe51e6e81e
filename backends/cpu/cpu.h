/* Threads as workers: programs run with real data, every output element is checked. */
#ifndef BACKENDS_CPU_CPU_H
#define BACKENDS_CPU_CPU_H

#include "core/backend.h"

extern const struct backend cpu_backend;

#endif
