#include "core/build.h"

#include <stddef.h>

#include "build_commit.h"
#include "build_info.h"

const char *const build_version = BUILD_VERSION;
const char *const build_commit = BUILD_COMMIT;
const char *const build_compiler = BUILD_COMPILER;
const char *const build_simgrid = BUILD_SIMGRID;

const struct build_part build_parts[] = {
    {"compiler", BUILD_COMPILER, true, "what this binary was built with"},
    {"SimGrid", BUILD_SIMGRID, true, "network model of the sim backend"},
    {"OpenBLAS", BUILD_OPENBLAS, true, "tiles of the cpu backend"},
    {"libfyaml", BUILD_FYAML, true, "scenario and machine files"},
    {"jansson", BUILD_JANSSON, true, "result files"},
    {"CUDA", BUILD_CUDA, false, "running programs on real GPUs; simulation needs none"},
    {"NCCL", BUILD_NCCL, false, "measuring the baseline on real GPUs; simulation models it"},
    {"MPI", BUILD_MPI, false, "starting one process a rank on a cluster"},
    {"gnuplot", BUILD_GNUPLOT, false, "the plot of mkernel validate, looked for again when it runs"},
    {"libibverbs", BUILD_VERBS, false, "puts over InfiniBand and RoCE"},
    {"libfabric", BUILD_LIBFABRIC, false, "puts over EFA and TCP"},
    {NULL, NULL, false, NULL},
};
