/* A verb's arguments: one table gives parsing, help and the guess at a mistyped flag. */
#ifndef CORE_CLI_ARGS_H
#define CORE_CLI_ARGS_H

#include <stdbool.h>

#include "core/parse/option.h"
#include "core/status.h"

struct flag {
    const char *name;  /* "--backend"; NULL ends the table */
    const char *value; /* "NAME" in help; NULL: takes none */
    const char *help;  /* one line */
};

struct usage {
    const char        *line;    /* "run FILE... [options]" */
    const char        *about;   /* what it does, a line or more */
    const char        *example;
    const struct flag *flags;
};

/* What args_next() returns besides the index of a flag. */
enum { ARGS_END = -1, ARGS_WORD = -2, ARGS_HELP = -3, ARGS_BAD = -4 };

struct args {
    const struct usage *usage;
    int                 argc;
    char              **argv;
    int                 next;
    bool                words_only; /* after "--" */
    const char         *value;      /* of the flag, or the word itself */
};

/* argv[0] is the verb. */
void args_begin(struct args *a, const struct usage *usage, int argc, char **argv);

/* The next argument: an index in usage->flags (value set), a word, the end, --help (already printed), or a
 * mistake (already logged). */
int args_next(struct args *a);

/* The flag's value into `base`, by the row of `values` that has the flag's name.  -1, or logs and returns exit code 2. */
int args_value(const struct args *a, const struct option *values, int flag, void *base);

/* Logs and returns exit code 2. */
int args_error(const struct args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
