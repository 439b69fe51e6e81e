/* Processes that mpirun or srun has started, one a node. */
#ifndef BACKENDS_NET_LAUNCH_MPI_H
#define BACKENDS_NET_LAUNCH_MPI_H

#include "core/run/nodes.h"

extern const struct launcher mpi_launcher;

#endif
