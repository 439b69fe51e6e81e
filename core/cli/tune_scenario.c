/* What was found, as a scenario to run. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/cli/tune_report.h"
#include "core/log.h"
#include "core/results/result.h"
#include "core/parse/yaml.h"

/* Prints "key: value" of the keys that begin with a section, as the inside of a flow map. */
struct section {
    FILE *file;
    const char *prefix; /* "problem." */
    bool any;
};

static void print_key(void *arg, const char *key, const char *value)
{
    struct section *s = arg;
    size_t size = strlen(s->prefix);

    if (strncmp(key, s->prefix, size) != 0)
        return;
    fprintf(s->file, "%s%s: %s", s->any ? ", " : "", key + size, value);
    s->any = true;
}

static void print_section(const struct tune *t, const struct point *p, const char *title, const char *prefix, FILE *f)
{
    struct section s = {.file = f, .prefix = prefix};

    fprintf(f, "%s{", title);
    scenario_point_keys(t->scenario, p, print_key, &s);
    fprintf(f, "}\n");
}

static void print_scenario(const struct tune *t, const struct tune_problem *p, int argc, char *const *argv, FILE *f)
{
    const struct point *program = t->units[p->program].point;
    const struct yaml_node *machine = yaml_get(t->scenario->source->root, "machine");
    char text[TUNE_TEXT_BYTES];

    fprintf(f, "# Found by: mkernel");
    for (int i = 0; i < argc; i++)
        fprintf(f, " %s", argv[i]);
    tune_params_text(t->units[p->best].point, text);
    fprintf(f, "\n# Fastest of all: %s, %.2f us.  The fastest program: %.2f us.\n", text,
            (double)tune_time_ps(&t->units[p->best]) / 1e6, (double)tune_time_ps(&t->units[p->program]) / 1e6);
    print_section(t, program, "problem:  ", "problem.", f);
    fprintf(f, "machine:  %s\n", machine->text);
    print_section(t, program, "world:    ", "world.", f);
    fprintf(f, "backend:  %s\nvariants:\n", t->scenario->backend->name);
    print_section(t, program, program->program == PROGRAM_FUSED ? "  fused:   " : "  unfused: ", "params.", f);
    if (p->streams != TUNE_NONE)
        fprintf(f, "  streams: {}\n");
    if (p->nccl != TUNE_NONE)
        fprintf(f, "  nccl:    {}\n");
    print_section(t, program, "timing:   ", "timing.", f);
    fprintf(f, "seed:     %" PRIu64 "\n", program->seed);
}

/* "a/b.yaml" -> "a/b-2.yaml" where there are several. */
static void number_path(const char *path, uint64_t index, uint64_t count, char out[RESULT_PATH_BYTES])
{
    size_t stem = strlen(path);

    if (stem > 5 && strcmp(path + stem - 5, ".yaml") == 0)
        stem -= 5;
    if (count == 1)
        snprintf(out, RESULT_PATH_BYTES, "%.*s.yaml", (int)stem, path);
    else
        snprintf(out, RESULT_PATH_BYTES, "%.*s-%" PRIu64 ".yaml", (int)stem, path, index + 1);
}

enum status tune_write_scenario(const struct tune *t, uint64_t index, const char *path, int argc, char *const *argv)
{
    struct result_file f = {0};
    char numbered[RESULT_PATH_BYTES], written[RESULT_PATH_BYTES];
    enum status st;

    number_path(path, index, t->problem_count, numbered);
    st = result_open(&f, numbered);
    if (st >= 0) {
        print_scenario(t, &t->problems[index], argc, argv, f.file);
        st = result_commit(&f, written);
    }
    if (st >= 0)
        log_info("scenario: %s", written);
    result_close(&f);
    return st;
}
