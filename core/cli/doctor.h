/* What `mkernel doctor` looks at: one row a check, in tables by subject.  A check reads /proc and /sys, or asks
 * a library that is opened for the question, so that none has to be there. */
#ifndef CORE_CLI_DOCTOR_H
#define CORE_CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/scenario/scenario.h"

/* What a run can ask of its host.  Without a scenario only NEED_ALWAYS is asked for. */
enum doctor_need {
    NEED_ALWAYS = 1 << 0,
    NEED_CUDA = 1 << 1,      /* a GPU */
    NEED_PEERS = 1 << 2,     /* GPUs that reach each other */
    NEED_VERBS = 1 << 3,     /* an RDMA device */
    NEED_OFI = 1 << 4,       /* libfabric */
    NEED_PROCESSES = 1 << 5, /* one process a node */
};

struct doctor {
    const char *root; /* "": this machine; else a folder that holds a copy of another one's /proc, /sys */
    const struct registry *registry;
    unsigned needs; /* of enum doctor_need */
    uint64_t memory_wanted_bytes;
};

struct finding {
    bool ok;
    char text[320]; /* what was found, without a full stop; may be "" */
};

struct doctor_check {
    const char *name;    /* NULL ends the table */
    const char *use;     /* what for, one line */
    const char *remedy;  /* what to do where it is not ok */
    unsigned needed_for; /* missing, not just absent, where one of these needs is asked for */
    bool live;           /* asks this machine itself: not looked at below a root */
    void (*look)(const struct doctor *d, const struct doctor_check *c, struct finding *out);
};

extern const struct doctor_check doctor_host_checks[]; /* what mkernel was built with, processor, memory */
extern const struct doctor_check doctor_gpu_checks[];
extern const struct doctor_check doctor_net_checks[];

extern const struct doctor_check *const doctor_tables[]; /* all of them; ends with NULL */

/* ---- doctor_files.c: for checks ---- */

/* The first line of a file, "sys/module/nvidia/version".  False: it cannot be read. */
bool doctor_line(const struct doctor *d, const char *path, char *out, size_t out_bytes);
/* The rest of the line of a file that begins with `key`, without the blanks and colon between them. */
bool doctor_value(const struct doctor *d, const char *path, const char *key, char *out, size_t out_bytes);
bool doctor_exists(const struct doctor *d, const char *path);

/* Calls fn for every path that the pattern names, below the root, in order; returns how many. */
typedef void doctor_path_fn(const struct doctor *d, const char *path, void *arg);
uint32_t doctor_each(const struct doctor *d, const char *pattern, doctor_path_fn *fn, void *arg);

/* Adds to a finding's text, with ", " before it where there is some already. */
void finding_add(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- doctor_host.c ---- */

/* What the build found, by the check's name in build_parts. */
void doctor_look_part(const struct doctor *d, const struct doctor_check *c, struct finding *out);

#endif
