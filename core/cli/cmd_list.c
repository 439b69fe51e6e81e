#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/net/transport.h"
#include "core/cli/args.h"
#include "core/cli/commands.h"
#include "core/log.h"
#include "core/parse/nearest.h"
#include "core/shipped.h"

static const struct flag flags[] = {{0}};

static const struct usage usage = {
    .name = "list",
    .takes = "[kernels|backends|transports|machines|scenarios|keys]",
    .about = "Prints what there is, kernels, backends and transports with their parameters.  \"keys\" explains every\n"
             "key that a scenario may hold.",
    .example = "mkernel list kernels",
    .flags = flags,
    .words_max = WORDS_ANY,
};

static void list_kernels(const struct registry *r)
{
    printf("kernels\n");
    for (size_t i = 0; r->kernels[i]; i++) {
        const struct kernel *k = r->kernels[i];

        printf("\n  %s: %s\n  %s\n", k->name, k->title, k->shape);
        option_help(k->options, stdout);
    }
}

static void list_backends(const struct registry *r)
{
    printf("backends\n");
    for (size_t i = 0; r->backends[i]; i++) {
        const struct backend *b = r->backends[i];
        char why[256] = "";

        printf("\n  %s: %s", b->name, b->title);
        if (b->available(why, sizeof why) < 0)
            printf(" (cannot run here: %s)", why);
        printf("\n");
        option_help(b->options, stdout);
    }
}

static void list_transports(const struct registry *r)
{
    (void)r;
    printf("transports\n");
    for (size_t i = 0; transport_list[i]; i++) {
        const struct transport *t = transport_list[i];
        char why[256] = "";

        printf("\n  %s: %s", t->name, t->title);
        if (transport_available(t, why, sizeof why) < 0)
            printf(" (cannot run here: %s)", why);
        printf("\n");
        option_help(t->options, stdout);
    }
}

static void print_machine(void *arg, const char *name, const char *path)
{
    struct machine m;

    (void)arg;
    if (machine_load_file(path, &m) >= 0)
        printf("  %-20s %s (%s)\n", name, m.title, path);
}

static void list_machines(const struct registry *r)
{
    (void)r;
    printf("machines\n");
    machine_each(NULL, print_machine, NULL);
}

/* A scenario introduces itself in the comment on its first line. */
static void print_scenario(const char *path)
{
    FILE *f = fopen(path, "r");
    char line[256] = "";

    if (f && !fgets(line, sizeof line, f))
        line[0] = 0;
    if (f)
        fclose(f);
    line[strcspn(line, "\n")] = 0;
    printf("  %-36s %s\n", path, line[0] == '#' ? line + 1 + strspn(line + 1, " ") : "");
}

static void print_scenarios_of(const char *pattern)
{
    glob_t found;

    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (!strstr(found.gl_pathv[i], "/machines/"))
            print_scenario(found.gl_pathv[i]);
    globfree(&found);
}

static void print_scenarios_in(const char *folder)
{
    char pattern[SHIPPED_PATH_BYTES + sizeof "/*/*.yaml"];

    snprintf(pattern, sizeof pattern, "%s/*.yaml", folder);
    print_scenarios_of(pattern);
    snprintf(pattern, sizeof pattern, "%s/*/*.yaml", folder);
    print_scenarios_of(pattern);
}

static bool same_folder(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Those here first, by their short names; the others as they can be given to `mkernel run`. */
static void list_scenarios(const struct registry *r)
{
    char shipped[SHIPPED_PATH_BYTES];

    (void)r;
    printf("scenarios\n");
    snprintf(shipped, sizeof shipped, "%s/scenarios", shipped_folder());
    print_scenarios_in("scenarios");
    if (!same_folder("scenarios", shipped))
        print_scenarios_in(shipped);
}

static void list_keys(const struct registry *r)
{
    scenario_help(r, stdout);
}

static const struct section {
    const char *name;
    void (*print)(const struct registry *r);
    bool in_overview;
} sections[] = {
    {"kernels", list_kernels, true},
    {"backends", list_backends, true},
    {"transports", list_transports, true},
    {"machines", list_machines, true},
    {"scenarios", list_scenarios, true},
    {"keys", list_keys, false},
    {NULL, NULL, false},
};

static int print_section(const struct args *a, const char *name, const struct registry *r)
{
    struct nearest n;
    char guess[128];

    nearest_begin(&n, name);
    for (const struct section *s = sections; s->name; s++) {
        if (strcmp(s->name, name) == 0) {
            s->print(r);
            return 0;
        }
        nearest_offer(&n, s->name);
    }
    return args_error(a, "nothing called \"%s\" to list%s", name, nearest_text(&n, guess, sizeof guess));
}

static int print_sections(const struct args *a, const struct registry *r)
{
    int code = 0;

    for (uint32_t i = 0; i < a->word_count && code == 0; i++)
        code = print_section(a, a->words[i], r);
    return code;
}

static int print_overview(const struct registry *r)
{
    for (const struct section *s = sections; s->name; s++) {
        if (!s->in_overview)
            continue;
        s->print(r);
        printf("\n");
    }
    return 0;
}

int cmd_list(int argc, char **argv, const struct registry *r)
{
    struct args a;
    int code = args_parse(&a, &usage, argc, argv, NULL);

    if (code < 0)
        code = a.word_count > 0 ? print_sections(&a, r) : print_overview(r);
    args_fini(&a);
    return code;
}
