/* The interpreter that is timed. */
#define GPU_TRACES 0
#include "backends/cuda/interpreter.cuh"

const struct gpu_interpreter gpu_interpreter = {prepare, launch};
