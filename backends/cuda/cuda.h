/* One persistent CUDA kernel per device, which interprets programs. */
#ifndef BACKENDS_CUDA_CUDA_H
#define BACKENDS_CUDA_CUDA_H

#include "core/backend.h"

extern const struct backend cuda_backend;

#endif
