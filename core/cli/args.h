/* A verb's arguments: one table gives parsing, help and the guess at a mistyped flag. */
#ifndef CORE_CLI_ARGS_H
#define CORE_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a flag's value is written, and what stands at `offset` in the verb's request. */
enum flag_kind {
    FLAG_TEXT,   /* const char *; anything but nothing */
    FLAG_SWITCH, /* bool; takes no value */
    FLAG_SET,    /* not in the request: collected in args->sets */
    FLAG_WORLD,  /* struct world: 2x8 */
    FLAG_COUNT,  /* uint64_t */
    FLAG_SIZE,   /* uint64_t bytes */
    FLAG_TIME,   /* uint64_t picoseconds */
    FLAG_NUMBER, /* double */
};

struct flag {
    const char *name;  /* "--backend"; NULL ends the table */
    const char *value; /* "NAME" in help; NULL for a switch */
    const char *help;  /* one line */
    enum flag_kind kind;
    size_t offset;
    double min, max; /* of numbers */
};

/* The flag of every verb that reads a scenario. */
#define FLAG_SET_ROW                                                                                                   \
    {                                                                                                                  \
        "--set", "KEY=VALUE", "override a key of the scenario; may be repeated", FLAG_SET, 0, 0, 0                     \
    }

#define WORDS_ANY INT32_MAX

struct usage {
    const char *name;  /* "run", "import topology"; NULL ends a list of them */
    const char *takes; /* "FILE... [options]" */
    const char *about; /* what it does, a line or more */
    const char *example;
    const struct flag *flags;
    const char *words; /* what the words are, to ask for them: "scenario" */
    int words_min, words_max;
};

struct args {
    const struct usage *usage;
    int argc;
    char **argv;
    const char **words, **sets;
    uint32_t word_count, set_count;
    uint64_t given; /* bit i: flags[i] was there */
};

/* argv[0] is the verb, as `usage->name` begins.  Fills the request by the table; a flag given twice counts as it was
 * given last.  -1: go on; else the exit code, everything said (--help too).  args_fini() is due in any case. */
int args_parse(struct args *a, const struct usage *usage, int argc, char **argv, void *request);
void args_fini(struct args *a);

/* For verbs of two words: the usage that argv[1] names.  NULL: everything said, *code_out is the exit code. */
const struct usage *args_choose(const struct usage *usages, int argc, char **argv, int *code_out);

bool args_given(const struct args *a, int flag);

/* Logs and returns exit code 2. */
int args_error(const struct args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
