/* Damaged programs: what the verifier and exploration are tried on.
 *
 * A mutant reads the program it is made of task by task and changes it in one way.  MUTANT_SHAPES programs a kernel
 * and form are damaged, over worlds, settings and problems, for what is needed at one shape may be redundant
 * at another. */
#ifndef TESTS_MUTANTS_MUTANT_H
#define TESTS_MUTANTS_MUTANT_H

#include <stdbool.h>

#include "core/kernel.h"
#include "core/program.h"

enum mutation {
    DROP_WAIT,    /* all waits for one flag group by tasks of one queue */
    DROP_SIGNAL,  /* all signals to one flag group by tasks of one queue */
    HALVE_WAIT,   /* half of a wait for several flags */
    EARLY_REUSE,  /* credits one epoch too old: a buffer is written while the last epoch still reads it */
    EARLY_SIGNAL, /* of two puts, each raises the other's flag: before that one's data have arrived */
    SHALLOW,      /* a buffer with one copy less than its credits assume */
    SHIFT_SOURCE, /* sources one row off */
    SHIFT_TARGET, /* targets one row off */
    SWAP_TARGETS, /* neighbours in a queue store where the other should */
    MUTATIONS,    /* how many there are */
};

extern const char *const mutation_names[MUTATIONS];

/* Whether the mutation is of a flag group; else it is of a buffer. */
bool mutation_by_group(enum mutation m);

/* A program that differs from `inner` in one way.  It is the mutant's `state`. */
struct mutant {
    struct program inner;
    enum mutation mutation;
    uint32_t queue, group, buffer;
    uint64_t hits; /* how much was changed */
};

/* The damaged program, to be read only while *m lives; it must not be given to program_fini(). */
struct program mutant_program(struct mutant *m);

/* Whether the mutation changes anything. */
bool mutant_applies(struct mutant *m);

/* A shape that mutations are tried at. */
struct mutant_shape {
    struct world world;
    struct problem problem;
    const char *setting; /* "depth=1", or "": the defaults */
};

extern const struct mutant_shape mutant_shapes[];
extern const int mutant_shape_count;

/* GPUs enough for any crew. */
extern const struct machine mutant_machine;

/* Emits the kernel's program at that shape, in small tiles.  False: the kernel has no such setting. */
bool mutant_shape_emit(const struct kernel *k, enum form form, const struct mutant_shape *shape,
                       const struct machine *machine, struct program *p);

#endif
