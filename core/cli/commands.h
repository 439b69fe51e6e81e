/* The verbs of `mkernel`.  Each takes the arguments from its own name on and returns the exit code. */
#ifndef CORE_CLI_COMMANDS_H
#define CORE_CLI_COMMANDS_H

#include "core/scenario/scenario.h"

struct command {
    const char *name;  /* NULL ends the table */
    const char *title; /* one line for `help` */
    int (*run)(int argc, char **argv, const struct registry *r);
};

extern const struct command commands[];

int cmd_run(int argc, char **argv, const struct registry *r);
int cmd_verify(int argc, char **argv, const struct registry *r);
int cmd_tune(int argc, char **argv, const struct registry *r);
int cmd_explore(int argc, char **argv, const struct registry *r);
int cmd_compare(int argc, char **argv, const struct registry *r);
int cmd_report(int argc, char **argv, const struct registry *r);
int cmd_show(int argc, char **argv, const struct registry *r);
int cmd_list(int argc, char **argv, const struct registry *r);
int cmd_import(int argc, char **argv, const struct registry *r);
int cmd_export(int argc, char **argv, const struct registry *r);
int cmd_machine(int argc, char **argv, const struct registry *r);
int cmd_validate(int argc, char **argv, const struct registry *r);
int cmd_calibrate(int argc, char **argv, const struct registry *r);
int cmd_doctor(int argc, char **argv, const struct registry *r);
int cmd_help(int argc, char **argv, const struct registry *r);

/* The whole program but its exit. */
int cli_main(int argc, char **argv, const struct registry *r);

#endif
