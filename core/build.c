#include "core/build.h"

#include <stddef.h>

#include "build_commit.h"
#include "build_info.h"

const char *const build_version = BUILD_VERSION;
const char *const build_commit = BUILD_COMMIT;
const char *const build_compiler = BUILD_COMPILER;
const char *const build_simgrid = BUILD_SIMGRID;

const struct build_part build_parts[] = {
    {"compiler", BUILD_COMPILER}, {"SimGrid", BUILD_SIMGRID},
    {"OpenBLAS", BUILD_OPENBLAS}, {"libfyaml", BUILD_FYAML},
    {"jansson", BUILD_JANSSON},   {"expat", BUILD_EXPAT},
    {"zlib", BUILD_ZLIB},         {"CUDA", BUILD_CUDA},
    {"NCCL", BUILD_NCCL},         {"MPI", BUILD_MPI},
    {"libibverbs", BUILD_VERBS},  {"libfabric", BUILD_LIBFABRIC},
    {"gnuplot", BUILD_GNUPLOT},   {NULL, NULL},
};
