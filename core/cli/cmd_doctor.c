#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/net/transport.h"
#include "core/build.h"
#include "core/cli/args.h"
#include "core/cli/commands.h"
#include "core/cli/doctor.h"
#include "core/log.h"
#include "core/run/plan.h"

#define MEMORY_WANTED_BYTES (1ull << 30) /* what the shipped scenarios get by with */
#define DOCTOR_SCHEMA 1

struct request {
    const struct args *args; /* the scenario, if any, and its sets */
    const char *backend, *root;
    bool json;
};

enum { BACKEND, SET };

static const struct flag flags[] = {
    [BACKEND] = {"--backend", "NAME", "what the scenario needs on this backend instead of its own", FLAG_TEXT,
                 offsetof(struct request, backend), 0, 0},
    [SET] = FLAG_SET_ROW,
    {"--json", NULL, "print one JSON object instead of lines", FLAG_SWITCH, offsetof(struct request, json), 0, 0},
    {"--root", "FOLDER", "look at the copy of another machine's /proc and /sys in this folder", FLAG_TEXT,
     offsetof(struct request, root), 0, 0},
    {0},
};

static const struct usage usage = {
    .name = "doctor",
    .takes = "[FILE] [options]",
    .about = "Checks, one by one, what this build was made with and what this host offers, and says what to do\n"
             "about what is not there.  Exit code 5 when something is missing that every run needs, or that\n"
             "this scenario file needs.",
    .example = "mkernel doctor scenarios/quickstart.yaml",
    .flags = flags,
    .words_max = 1,
};

const struct doctor_check *const doctor_tables[] = {doctor_host_checks, doctor_gpu_checks, doctor_net_checks, NULL};

/* ---- what a scenario needs ---- */

static bool option_is(const struct backend *b, const void *options, const char *name, const char *value)
{
    const struct option *o = option_find(b->options, name);
    char text[OPTION_TEXT_BYTES];

    if (!o)
        return false;
    option_print(o, options, text, sizeof text);
    return strcmp(text, value) == 0;
}

static unsigned backend_needs(const struct backend *b, const void *options)
{
    unsigned needs = 0;
    bool cuda = strcmp(b->name, "cuda") == 0;

    if (cuda)
        needs |= NEED_CUDA;
    if (cuda && !option_is(b, options, "devices", "0") && !option_is(b, options, "devices", "1") &&
        option_is(b, options, "shares", "1"))
        needs |= NEED_PEERS;
    if (option_is(b, options, "transport", "verbs"))
        needs |= NEED_VERBS | NEED_PROCESSES;
    if (option_is(b, options, "transport", "ofi"))
        needs |= NEED_OFI | NEED_PROCESSES;
    return needs;
}

static uint64_t largest_bytes(const struct run_unit *units, uint64_t count)
{
    uint64_t largest = 0;

    for (uint64_t i = 0; i < count; i++)
        largest = max_u64(largest, units[i].memory_bytes);
    return largest;
}

static enum status read_needs(struct doctor *d, const struct request *q, const struct backend **backend_out)
{
    struct scenario s = {0};
    struct run_plan plan = {0};
    enum status st = scenario_load(q->args->words[0], d->registry, q->backend, q->args->sets, q->args->set_count, &s);

    if (st >= 0)
        st = run_plan_create(&s, UINT64_MAX, NULL, &plan);
    if (st >= 0) {
        *backend_out = s.backend;
        d->needs |= backend_needs(s.backend, s.backend_options);
        d->memory_wanted_bytes =
            max_u64(largest_bytes(plan.points, plan.point_count), largest_bytes(plan.checks, plan.check_count));
    }
    run_plan_destroy(&plan);
    scenario_fini(&s);
    return st;
}

/* ---- the report ---- */

enum verdict { VERDICT_OK, VERDICT_ABSENT, VERDICT_MISSING, VERDICT_UNKNOWN };

static const char *const verdict_words[] = {"ok", "absent (optional)", "missing", "not looked at"};

struct report {
    json_t *checks; /* NULL: lines are wanted */
    uint32_t missing;
};

static void report_add(struct report *r, enum verdict v, const struct doctor_check *c, const struct finding *f)
{
    bool remedy = (v == VERDICT_ABSENT || v == VERDICT_MISSING) && c->remedy[0];
    json_t *o;

    r->missing += v == VERDICT_MISSING;
    if (!r->checks) {
        printf("%-18s %-18s %s%s%s\n", verdict_words[v], c->name, f->text, f->text[0] ? ": " : "", c->use);
        if (remedy)
            printf("%-18s %-18s %s\n", "", "", c->remedy);
        return;
    }
    o = json_pack("{s:s, s:s, s:s, s:s}", "name", c->name, "verdict", verdict_words[v], "found", f->text, "use",
                  c->use);
    if (remedy)
        json_object_set_new(o, "remedy", json_string(c->remedy));
    json_array_append_new(r->checks, o);
}

static void look(const struct doctor *d, const struct doctor_check *c, struct report *r)
{
    struct finding f = {0};

    if (c->live && d->root[0]) {
        report_add(r, VERDICT_UNKNOWN, c, &f);
        return;
    }
    c->look(d, c, &f);
    report_add(r, f.ok ? VERDICT_OK : c->needed_for & d->needs ? VERDICT_MISSING : VERDICT_ABSENT, c, &f);
}

static void look_at_transports(const struct doctor *d, struct report *r)
{
    for (size_t i = 0; transport_list[i] && !d->root[0]; i++) {
        const struct transport *t = transport_list[i];
        struct finding f = {0};
        char name[64];
        struct doctor_check c = {.name = name, .use = t->title, .remedy = ""};

        snprintf(name, sizeof name, "%s transport", t->name);
        f.ok = transport_available(t, f.text, sizeof f.text) >= 0;
        report_add(r, f.ok ? VERDICT_OK : VERDICT_ABSENT, &c, &f);
    }
}

/* One that cannot run here (no GPU) leaves the others. */
static void look_at_backends(const struct doctor *d, const struct backend *wanted, struct report *r)
{
    for (size_t i = 0; d->registry->backends[i]; i++) {
        const struct backend *b = d->registry->backends[i];
        struct finding f = {0};
        char name[64];
        struct doctor_check c = {.name = name, .use = b->title, .remedy = ""};

        snprintf(name, sizeof name, "%s backend", b->name);
        f.ok = b->available(f.text, sizeof f.text) >= 0;
        report_add(r, f.ok ? VERDICT_OK : b == wanted ? VERDICT_MISSING : VERDICT_ABSENT, &c, &f);
    }
}

static void print_end(const struct request *q, const struct report *r)
{
    bool scenario = q->args->word_count > 0;
    const char *what = scenario ? q->args->words[0] : "simulation and checks";

    if (r->missing == 0)
        printf("everything that %s need%s is here\n", what, scenario ? "s" : "");
    else
        printf("%" PRIu32 " required thing%s missing\n", r->missing, r->missing == 1 ? " is" : "s are");
}

static void print_json(struct report *r)
{
    json_t *o = json_pack("{s:i, s:s, s:s, s:i}", "schema", DOCTOR_SCHEMA, "version", build_version, "commit",
                          build_commit, "missing", (int)r->missing);

    json_object_set_new(o, "checks", r->checks);
    json_dumpf(o, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    printf("\n");
    json_decref(o);
}

static int examine(const struct doctor *d, const struct request *q, const struct backend *wanted)
{
    struct report r = {.checks = q->json ? json_array() : NULL};

    if (!q->json)
        printf("mkernel %s (%s)\n", build_version, build_commit);
    for (size_t t = 0; doctor_tables[t]; t++)
        for (const struct doctor_check *c = doctor_tables[t]; c->name; c++)
            look(d, c, &r);
    look_at_transports(d, &r);
    look_at_backends(d, wanted, &r);
    if (q->json)
        print_json(&r);
    else
        print_end(q, &r);
    return status_exit_code(r.missing ? ST_ENVIRONMENT : ST_OK);
}

/* ---- arguments ---- */

/* -1: go on; else the exit code. */
static int check_arguments(const struct args *a, const struct request *q)
{
    struct stat st;

    if (a->word_count == 0 && (q->backend || a->set_count > 0))
        return args_error(a, "%s is about a scenario: which one?", flags[q->backend ? BACKEND : SET].name);
    if (*q->root && (stat(q->root, &st) != 0 || !S_ISDIR(st.st_mode)))
        return args_error(a, "--root %s: no such folder", q->root);
    return -1;
}

int cmd_doctor(int argc, char **argv, const struct registry *r)
{
    const struct backend *wanted = NULL;
    struct args a;
    struct request q = {.args = &a, .root = ""};
    int code = args_parse(&a, &usage, argc, argv, &q);
    struct doctor d = {.root = q.root, .registry = r, .needs = NEED_ALWAYS, .memory_wanted_bytes = MEMORY_WANTED_BYTES};
    enum status st = ST_OK;

    if (code < 0)
        code = check_arguments(&a, &q);
    if (code < 0 && a.word_count > 0 && (st = read_needs(&d, &q, &wanted)) < 0)
        code = status_exit_code(st);
    if (code < 0)
        code = examine(&d, &q, wanted);
    args_fini(&a);
    return code;
}
