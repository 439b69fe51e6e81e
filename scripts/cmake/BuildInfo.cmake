# What `mkernel doctor` and result files say about this build.  Optional parts are looked for here and
# nowhere required: the parts that use them decide for themselves.
set(BUILD_SIMGRID "${SimGrid_VERSION}")
if(NOT BUILD_SIMGRID)
    file(STRINGS ${SIMGRID_INCLUDE}/simgrid/version.h lines REGEX "SIMGRID_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
    foreach(line IN LISTS lines)
        string(REGEX REPLACE ".* ([0-9]+).*" "\\1" number "${line}")
        list(APPEND numbers ${number})
    endforeach()
    list(JOIN numbers "." BUILD_SIMGRID)
endif()

find_package(CUDAToolkit QUIET)
if(HAVE_CUDA) # a toolkit that is merely there has built nothing
    set(BUILD_CUDA "${CUDAToolkit_VERSION}")
    find_path(NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    if(NCCL_INCLUDE)
        set(BUILD_NCCL "found")
    endif()
endif()
find_package(MPI QUIET COMPONENTS C)
set(HAVE_MPI 0)
if(MPI_C_FOUND)
    set(HAVE_MPI 1)
    set(BUILD_MPI "${MPI_C_VERSION}")
    message(STATUS "mkernel: MPI ${MPI_C_VERSION}: one process a node")
else()
    message(STATUS "mkernel: MPI: left out, not found: runs stay in one process")
endif()
pkg_check_modules(VERBS QUIET IMPORTED_TARGET libibverbs>=1.12)
pkg_check_modules(LIBFABRIC QUIET IMPORTED_TARGET libfabric>=1.14)
find_program(GNUPLOT gnuplot)
if(GNUPLOT)
    set(BUILD_GNUPLOT "found")
else()
    message(STATUS "mkernel: gnuplot: not found, mkernel validate draws no plot")
endif()

string(STRIP "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${MKERNEL_SANITIZE}"
       BUILD_COMPILER)
set(BUILD_GENERATED ${CMAKE_BINARY_DIR}/generated)
configure_file(${CMAKE_SOURCE_DIR}/core/build_info.h.in ${BUILD_GENERATED}/build_info.h @ONLY)
add_custom_target(build_commit
    COMMAND ${CMAKE_COMMAND} -D SOURCE=${CMAKE_SOURCE_DIR} -D OUTPUT=${BUILD_GENERATED}/build_commit.h
            -P ${CMAKE_SOURCE_DIR}/scripts/cmake/BuildCommit.cmake
    BYPRODUCTS ${BUILD_GENERATED}/build_commit.h VERBATIM)
