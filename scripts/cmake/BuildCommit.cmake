# Run at every build: writes build_commit.h, touching it only when the commit has changed.
# cmake -D SOURCE=... -D OUTPUT=... -P BuildCommit.cmake
set(BUILD_COMMIT "unknown")
find_package(Git QUIET)
if(GIT_FOUND)
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} describe --always --abbrev=40 --dirty=+
                            --exclude=*
                    OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE
                    RESULT_VARIABLE failed)
    if(NOT failed AND commit)
        set(BUILD_COMMIT ${commit})
    endif()
endif()
configure_file(${SOURCE}/core/build_commit.h.in ${OUTPUT} @ONLY)
