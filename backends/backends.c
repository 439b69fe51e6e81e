#include "backends/backends.h"

#include <stddef.h>

#include "backends/cpu/cpu.h"
#include "backends/sim/sim.h"
#if HAVE_MPI
#include "backends/net/launch_mpi.h"
#endif
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

#if HAVE_MPI
const struct launcher *const launcher = &mpi_launcher;
#else
const struct launcher *const launcher = NULL;
#endif
