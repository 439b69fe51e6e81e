#include "core/cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/build.h"
#include "core/log.h"
#include "core/parse/nearest.h"

const struct command commands[] = {
    {"run", "run a scenario and compare its variants", cmd_run},
    {"verify", "prove the programs of a scenario", cmd_verify},
    {"tune", "search for the fastest program and parameters", cmd_tune},
    {"explore", "look for schedules that break a program, with seeded disorder", cmd_explore},
    {"compare", "compare the points of two result files", cmd_compare},
    {"report", "write results as one HTML file", cmd_report},
    {"show", "print what a scenario resolves to, or a rank's program", cmd_show},
    {"list", "print the kernels, backends, machines and scenarios there are", cmd_list},
    {"import", "NCCL's topology into a machine file, nccl-tests' output into results", cmd_import},
    {"export", "a machine for SimGrid, a run for LogGOPSim", cmd_export},
    {"machine", "write a machine file", cmd_machine},
    {"validate", "replay every measurement and print the models' errors", cmd_validate},
    {"calibrate", "fit a machine file to what was measured on it", cmd_calibrate},
    {"doctor", "check what this build and this host offer", cmd_doctor},
    {"help", "print this, or the help of a verb", cmd_help},
    {NULL, NULL, NULL},
};

static const struct command *command_find(const char *name)
{
    for (const struct command *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static int unknown_command(const char *name)
{
    struct nearest n;
    char guess[128];

    nearest_begin(&n, name);
    for (const struct command *c = commands; c->name; c++)
        nearest_offer(&n, c->name);
    log_error("unknown command \"%s\"%s (mkernel help lists them)", name, nearest_text(&n, guess, sizeof guess));
    return status_exit_code(ST_INPUT);
}

static void print_commands(void)
{
    printf("mkernel %s: fused multi-GPU kernels as programs: checked on CPU threads, timed on a\n"
           "simulated cluster, beside NCCL + cuBLAS\n\n"
           "usage: mkernel COMMAND ...\n\n",
           build_version);
    for (const struct command *c = commands; c->name; c++)
        printf("  %-10s %s\n", c->name, c->title);
    printf("\nmkernel COMMAND --help tells more.\n\nexample:\n  mkernel run scenarios/quickstart.yaml\n");
}

int cmd_help(int argc, char **argv, const struct registry *r)
{
    static char help_flag[] = "--help";
    const struct command *c;

    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_commands();
        return 0;
    }
    c = command_find(argv[1]);
    return c ? c->run(2, (char *[]){argv[1], help_flag, NULL}, r) : unknown_command(argv[1]);
}

/* What was printed has to have arrived: a full disk behind `> file` is a failure. */
static int flush_output(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    if (errno == EPIPE) /* the reader has seen enough */
        return code;
    log_error("cannot write to standard output: %s", strerror(errno));
    return code ? code : status_exit_code(ST_IO);
}

int cli_main(int argc, char **argv, const struct registry *r)
{
    const struct command *c;

    if (argc < 2) {
        print_commands();
        return flush_output(status_exit_code(ST_INPUT));
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("mkernel %s (%s)\n", build_version, build_commit);
        return flush_output(0);
    }
    c = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ? command_find("help") : command_find(argv[1]);
    return c ? flush_output(c->run(argc - 1, argv + 1, r)) : unknown_command(argv[1]);
}
