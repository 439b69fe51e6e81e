#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "core/build.h"
#include "core/cli/args.h"
#include "core/cli/commands.h"
#include "core/host.h"

#define GIB           (1024.0 * 1024 * 1024)
#define MEMORY_WANTED (1024.0 * 1024 * 1024) /* what the shipped scenarios get by with */

static const struct flag flags[] = {{NULL, NULL, NULL}};

static const struct usage usage = {
    .line = "doctor",
    .about = "Checks, one by one, what this build was made with and what this host offers.  Exit code 5 when\n"
             "something required is missing.",
    .example = "mkernel doctor",
    .flags = flags,
};

enum verdict { VERDICT_OK, VERDICT_ABSENT, VERDICT_MISSING };

/* Returns 1 for what is missing, to be summed. */
static int line(enum verdict v, const char *name, const char *found, const char *use)
{
    static const char *const words[] = {"ok", "absent (optional)", "missing"};

    printf("%-18s %-12s %s%s%s\n", words[v], name, found, found[0] ? ": " : "", use);
    return v == VERDICT_MISSING;
}

static int check_parts(void)
{
    int missing = 0;

    for (const struct build_part *p = build_parts; p->name; p++) {
        enum verdict v = p->version[0] ? VERDICT_OK : p->required ? VERDICT_MISSING : VERDICT_ABSENT;

        missing += line(v, p->name, p->version, p->use);
    }
    return missing;
}

/* One that cannot run here (no GPU) leaves the others. */
static void check_backends(const struct registry *r)
{
    for (size_t i = 0; r->backends[i]; i++) {
        char why[256] = "";
        bool there = r->backends[i]->available(why, sizeof why) >= 0;
        char name[64];

        snprintf(name, sizeof name, "%s backend", r->backends[i]->name);
        line(there ? VERDICT_OK : VERDICT_ABSENT, name, why, r->backends[i]->title);
    }
}

static int check_host(void)
{
    struct host h = host_read();
    char        found[160];
    int         missing;

    snprintf(found, sizeof found, "%" PRIu32 " x %s", h.cores, h.cpu);
    line(VERDICT_OK, "cores", found, "simulated points run side by side, one a core");
    snprintf(found, sizeof found, "%.1f of %.1f GiB free", (double)h.available_bytes / GIB,
             (double)h.memory_bytes / GIB);
    missing = line((double)h.available_bytes >= MEMORY_WANTED ? VERDICT_OK : VERDICT_MISSING, "memory",
                   found, "the shipped scenarios need 1 GiB");
    missing += line(access(".", W_OK) == 0 ? VERDICT_OK : VERDICT_MISSING, "results",
                    "results/local below this folder", "where `run` keeps results by default");
    return missing;
}

int cmd_doctor(int argc, char **argv, const struct registry *r)
{
    struct args a;
    int         flag, missing;

    args_begin(&a, &usage, argc, argv);
    flag = args_next(&a);
    if (flag == ARGS_WORD)
        return args_error(&a, "takes no arguments");
    if (flag != ARGS_END)
        return flag == ARGS_HELP ? 0 : status_exit_code(ST_INPUT);
    printf("mkernel %s (%s)\n", build_version, build_commit);
    missing = check_parts();
    check_backends(r);
    missing += check_host();
    if (missing == 0)
        printf("everything that simulation and checks need is here\n");
    else
        printf("%d required thing%s missing\n", missing, missing == 1 ? " is" : "s are");
    return status_exit_code(missing ? ST_ENVIRONMENT : ST_OK);
}
