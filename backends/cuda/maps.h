/* Tensor maps: what the SM's copy engine needs to know of a matrix. */
#ifndef BACKENDS_CUDA_MAPS_H
#define BACKENDS_CUDA_MAPS_H

#include <cuda.h>
#include <stdbool.h>

#include "backends/cuda/lower.h"

/* One CUtensorMap for each of lowered->maps.  NULL: the driver refused, or no memory. */
CUtensorMap *maps_encode(const struct lowered *l);

#endif
