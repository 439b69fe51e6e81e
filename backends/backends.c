#include "backends/backends.h"

#include <stddef.h>

#include "backends/cpu/cpu.h"
#include "backends/sim/sim.h"

const struct backend *const backends[] = {&sim_backend, &cpu_backend, NULL};
