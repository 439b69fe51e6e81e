/* The interpreter that leaves records of what it did (record.cuh). */
#define GPU_TRACES 1
#include "backends/cuda/interpreter.cuh"

const struct gpu_interpreter gpu_interpreter_traced = {prepare, launch};
