/* Machine files as text: every key with its value and, as a comment, what it means. */
#include "core/machine/machine.h"

#include <stdio.h>
#include <string.h>

#include "core/file.h"
#include "core/parse/units.h"

/* Plain words stand as they are; all else between double quotes. */
static void write_text(FILE *f, const char *text)
{
    size_t plain = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

    if (text[0] && text[plain] == '\0' && text[0] != '-') {
        fputs(text, f);
        return;
    }
    fputc('"', f);
    for (; *text; text++)
        fprintf(f, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    fputc('"', f);
}

#define COMMENT_COLUMN 30

static void write_row(FILE *f, const struct option *o, const char *key, const struct machine *m)
{
    char value[OPTION_TEXT_BYTES];
    int width = COMMENT_COLUMN - (int)strlen(key) - (key == o->name ? 2 : 4);

    option_print(o, m, value, sizeof value);
    fprintf(f, "%s%s: ", key == o->name ? "" : "  ", key);
    if (o->type == OPTION_TEXT)
        write_text(f, value);
    else
        fprintf(f, "%-*s", width, value);
    fprintf(f, " # %s\n", o->help);
}

static void write_steps(FILE *f, const struct machine *m)
{
    char duration[OPTION_TEXT_BYTES], step[OPTION_TEXT_BYTES];

    fprintf(f, "  steps:  # duration of the whole GEMM: time of one step of one tile\n");
    for (uint32_t i = 0; i < m->gemm.step_count; i++) {
        units_print(QUANTITY_TIME, m->gemm.steps[i].duration_ps, duration, sizeof duration);
        units_print(QUANTITY_TIME, m->gemm.steps[i].step_ps, step, sizeof step);
        fprintf(f, "    %s: %s\n", duration, step);
    }
}

static void write_comment(FILE *f, const char *text)
{
    while (*text) {
        size_t size = strcspn(text, "\n");

        fprintf(f, "#%s%.*s\n", size ? " " : "", (int)size, text);
        text += size + (text[size] == '\n');
    }
}

static void write_machine(FILE *f, const struct machine *m, const char *origin)
{
    const char *section = "";
    size_t section_size = 0;

    write_comment(f, origin);
    fputc('\n', f);
    for (const struct option *o = machine_options; o->name; o++) {
        const char *dot = strchr(o->name, '.');
        size_t size = dot ? (size_t)(dot - o->name) : 0;

        if (size != section_size || strncmp(o->name, section, size) != 0) {
            section = o->name;
            section_size = size;
            fprintf(f, "\n%.*s:\n", (int)size, o->name);
            if (strncmp(o->name, "gemm.", 5) == 0)
                write_steps(f, m);
        }
        write_row(f, o, dot ? dot + 1 : o->name, m);
    }
}

struct writing {
    const struct machine *machine;
    const char *origin;
};

static void write_file(void *arg, FILE *f)
{
    const struct writing *w = arg;

    write_machine(f, w->machine, w->origin);
}

enum status machine_write(const struct machine *m, const char *origin, const char *path)
{
    struct writing w = {m, origin};

    if (path)
        return file_create(path, write_file, &w);
    write_machine(stdout, m, origin);
    return fflush(stdout) == 0 ? ST_OK : ST_IO;
}
