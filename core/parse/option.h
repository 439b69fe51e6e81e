/* One table row per key: from it come parsing, defaults, help and the record in results. */
#ifndef CORE_PARSE_OPTION_H
#define CORE_PARSE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

/* How a value is written, and the C type at `offset`. */
enum option_type {
    OPTION_COUNT,  /* uint64_t; a plain integer or an expression: 4096, m/16, 2*k */
    OPTION_SIZE,   /* uint64_t bytes: 64KiB, 1MiB, 2GiB, 100KB, 512B.  The unit is required */
    OPTION_TIME,   /* uint64_t picoseconds: 850ns, 4.4us, 2ms, 30s */
    OPTION_RATE,   /* double bytes per second: 450GB/s, 400Gb/s */
    OPTION_NUMBER, /* double, no unit */
    OPTION_BOOL,   /* bool: true, false */
    OPTION_CHOICE, /* uint32_t: the position in `choices` */
    OPTION_TEXT,   /* char[OPTION_TEXT_BYTES] */
};

#define OPTION_TEXT_BYTES 64

struct option {
    const char *name; /* "comm_sms"; a dot names a section: "nvlink.rate" */
    enum option_type type;
    size_t offset;       /* in the struct the table describes */
    const char *initial; /* as a user would write it; NULL: the key is required */
    double min, max;     /* both 0: no bounds of its own.  In units of the C type */
    const char *choices; /* OPTION_CHOICE: all values there are, "ring|direct".  Other types: the values worth
                                 trying, in rising order, which a search goes through; NULL: it leaves the key be */
    const char *help;    /* one line, ends without a full stop */
};

/* Names an expression may use. */
struct option_scope {
    const char *name;
    uint64_t value;
};

/* Parses `text` into the field.  On ST_INPUT `why` holds one sentence ("expected a size with a unit,
 * for example 1MiB").  `scope` ends with a nameless row; NULL: expressions may only hold numbers. */
enum status option_parse(const struct option *o, void *base, const char *text, const struct option_scope *scope,
                         char *why, size_t why_bytes);

/* Sets every field that has an initial value. */
void option_defaults(const struct option *table, void *base);

const struct option *option_find(const struct option *table, const char *name); /* NULL: none */

/* The nearest valid name by edit distance, or NULL when none is near. */
const char *option_nearest(const struct option *table, const char *name);

/* Writes the value the way option_parse reads it back. */
void option_print(const struct option *o, const void *base, char *out, size_t out_bytes);

/* A help table: name, default, what it is. */
void option_help(const struct option *table, FILE *f);

#endif
