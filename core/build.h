/* What this program was built from and with; filled by CMake. */
#ifndef CORE_BUILD_H
#define CORE_BUILD_H

extern const char *const build_version;
extern const char *const build_commit; /* "unknown" outside a git checkout; ends in "+" when modified */
extern const char *const build_compiler;
extern const char *const build_simgrid; /* version */

/* Something found, or not, when this was configured; `mkernel doctor` says what each is for. */
struct build_part {
    const char *name;    /* NULL ends the table */
    const char *version; /* "": absent */
};

extern const struct build_part build_parts[];

#endif
