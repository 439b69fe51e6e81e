# mkernel_library(NAME [SOURCES ...] [FOLDERS ...] [USES LIBRARY ...] [LINKS TARGET ...])
#
# One library a folder, with these FOLDERS in it.  Headers are included as "folder/file.h"; a library sees its
# own folder and those of the libraries it USES, and no others, so a wrong include does not compile.  LINKS are
# outside libraries that stay invisible to users of this one.
function(mkernel_library name)
    cmake_parse_arguments(ARG "" "" "SOURCES;FOLDERS;USES;LINKS" ${ARGN})
    if(NOT ARG_SOURCES)
        file(GLOB ARG_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c
                                                ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
    endif()
    foreach(folder IN LISTS ARG_FOLDERS)
        file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.c)
        list(APPEND ARG_SOURCES ${sources})
    endforeach()
    add_library(${name} STATIC ${ARG_SOURCES})
    set(root ${CMAKE_BINARY_DIR}/include/${name})
    file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    get_filename_component(parent ${root}/${folder} DIRECTORY)
    file(MAKE_DIRECTORY ${parent})
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/${folder} SYMBOLIC)
    target_include_directories(${name} PUBLIC ${root})
    target_link_libraries(${name} PUBLIC ${ARG_USES} PRIVATE ${ARG_LINKS} m)
endfunction()

# mkernel_test(NAME SOURCES... [USES LIBRARY ...] [LABEL label] [TIMEOUT seconds] [SHARDS count])
#
# One Check program, one CTest entry, or one for each share of its loops (tests/shard.h).  The target tests_LABEL builds
# all programs of a label.
function(mkernel_test name)
    cmake_parse_arguments(ARG "" "LABEL;TIMEOUT;SHARDS" "SOURCES;USES" ${ARGN})
    if(NOT ARG_SOURCES)
        set(ARG_SOURCES ${name}.c)
    endif()
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 900) # ends hangs; slow machines run many times slower than ours
    endif()
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE ${ARG_USES} PkgConfig::CHECK)
    if(NOT TARGET tests_${ARG_LABEL})
        add_custom_target(tests_${ARG_LABEL})
    endif()
    add_dependencies(tests_${ARG_LABEL} ${name})
    if(NOT ARG_SHARDS)
        add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
        set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT})
        return()
    endif()
    foreach(shard RANGE 1 ${ARG_SHARDS})
        add_test(NAME ${name}.${shard} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
        set_tests_properties(${name}.${shard} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT}
                             ENVIRONMENT MKERNEL_TEST_SHARD=${shard}/${ARG_SHARDS})
    endforeach()
endfunction()
