#include "backends/backends.h"

#include <stddef.h>

#include "backends/cpu/cpu.h"
#include "backends/sim/sim.h"
#if HAVE_CUDA
#include "backends/cuda/cuda.h"
#endif

const struct backend *const backends[] = {
    &sim_backend,
    &cpu_backend,
#if HAVE_CUDA
    &cuda_backend,
#endif
    NULL,
};
