#include "core/cli/args.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/parse/nearest.h"
#include "core/parse/option.h"
#include "core/world.h"

#define GO_ON (-1)

int args_error(const struct args *a, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_error("%s: %s (mkernel %s --help lists the options)", a->usage->name, text, a->usage->name);
    return status_exit_code(ST_INPUT);
}

static void print_help(const struct usage *u)
{
    printf("usage: mkernel %s %s\n\n%s\n\n", u->name, u->takes, u->about);
    for (const struct flag *f = u->flags; f->name; f++) {
        char left[64];

        snprintf(left, sizeof left, "%s %s", f->name, f->value ? f->value : "");
        printf("  %-22s %s\n", left, f->help);
    }
    printf("  %-22s %s\n\nexample:\n  %s\n", "--help", "print this", u->example);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* ---- values ---- */

static bool digits(const char *text, const char *end)
{
    if (text == end || end - text > 9)
        return false;
    while (text < end && isdigit((unsigned char)*text))
        text++;
    return text == end;
}

static int take_world(const struct args *a, const struct flag *f, const char *text, struct world *out)
{
    const char *x = strchr(text, 'x');
    struct world w = {0};

    if (x && digits(text, x) && digits(x + 1, x + 1 + strlen(x + 1)))
        w = (struct world){(uint32_t)atoi(text), (uint32_t)atoi(x + 1)};
    if (w.nodes == 0 || w.gpus_per_node == 0)
        return args_error(a, "%s %s: expected %s, for example 2x8", f->name, text, f->value);
    *out = w;
    return GO_ON;
}

static int take_number(const struct args *a, const struct flag *f, const char *text, void *request)
{
    static const enum option_type types[] = {
        [FLAG_COUNT] = OPTION_COUNT,
        [FLAG_SIZE] = OPTION_SIZE,
        [FLAG_TIME] = OPTION_TIME,
        [FLAG_NUMBER] = OPTION_NUMBER,
    };
    struct option row = {.name = f->name, .type = types[f->kind], .offset = f->offset, .min = f->min, .max = f->max};
    char why[256];

    if (option_parse(&row, request, text, NULL, why, sizeof why) >= 0)
        return GO_ON;
    return args_error(a, "%s %s: %s", f->name, text, why);
}

static int take_value(struct args *a, const struct flag *f, const char *text, void *request)
{
    char *field = (char *)request + f->offset;

    a->given |= 1ull << (f - a->usage->flags);
    switch (f->kind) {
    case FLAG_SWITCH: *(bool *)field = true; return GO_ON;
    case FLAG_TEXT: *(const char **)field = text; return GO_ON;
    case FLAG_SET: a->sets[a->set_count++] = text; return GO_ON;
    case FLAG_WORLD: return take_world(a, f, text, (struct world *)field);
    default: return take_number(a, f, text, request);
    }
}

/* ---- flags and words ---- */

/* `word` up to its "=", if any; sets *value_out to what comes behind. */
static const struct flag *find_flag(const struct usage *u, const char *word, const char **value_out)
{
    size_t n = strcspn(word, "=");

    *value_out = word[n] == '=' ? word + n + 1 : NULL;
    for (const struct flag *f = u->flags; f->name; f++)
        if (strlen(f->name) == n && strncmp(f->name, word, n) == 0)
            return f;
    return NULL;
}

static int unknown_flag(const struct args *a, const char *word)
{
    char name[64], guess[128];
    struct nearest n;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    nearest_begin(&n, name);
    for (const struct flag *f = a->usage->flags; f->name; f++)
        nearest_offer(&n, f->name);
    return args_error(a, "unknown option \"%s\"%s", name, nearest_text(&n, guess, sizeof guess));
}

/* The flag at argv[*i]; moves *i on when its value is the next word. */
static int take_flag(struct args *a, int *i, void *request)
{
    const char *value;
    const struct flag *f = find_flag(a->usage, a->argv[*i], &value);

    if (!f)
        return unknown_flag(a, a->argv[*i]);
    if (f->kind == FLAG_SWITCH && value)
        return args_error(a, "option %s takes no value", f->name);
    if (f->kind != FLAG_SWITCH && !value)
        value = ++*i < a->argc ? a->argv[*i] : "";
    if (f->kind != FLAG_SWITCH && !*value)
        return args_error(a, "option %s needs a value: %s %s", f->name, f->name, f->value);
    return take_value(a, f, value, request);
}

static int take_word(struct args *a, const char *word)
{
    if (a->word_count == (uint32_t)a->usage->words_max)
        return args_error(a, "\"%s\" is one too many; expected %s", word, a->usage->takes);
    a->words[a->word_count++] = word;
    return GO_ON;
}

static int words_of(const char *name)
{
    return strchr(name, ' ') ? 2 : 1;
}

int args_parse(struct args *a, const struct usage *usage, int argc, char **argv, void *request)
{
    bool words_only = false; /* behind "--" */
    int code = GO_ON;

    *a = (struct args){.usage = usage, .argc = argc, .argv = argv};
    a->words = calloc((size_t)argc, sizeof *a->words);
    a->sets = calloc((size_t)argc, sizeof *a->sets);
    assert(a->words && a->sets);
    for (int i = words_of(usage->name); i < argc && code == GO_ON; i++) {
        if (words_only || argv[i][0] != '-' || argv[i][1] == 0) {
            code = take_word(a, argv[i]);
        } else if (is_help(argv[i])) {
            print_help(usage);
            return 0;
        } else if (strcmp(argv[i], "--") == 0) {
            words_only = true;
        } else {
            code = take_flag(a, &i, request);
        }
    }
    if (code == GO_ON && a->word_count < (uint32_t)usage->words_min)
        return args_error(a, "which %s? mkernel %s %s", usage->words, usage->name, usage->takes);
    return code;
}

void args_fini(struct args *a)
{
    free(a->words);
    free(a->sets);
    *a = (struct args){0};
}

const struct usage *args_choose(const struct usage *usages, int argc, char **argv, int *code_out)
{
    const char *word = argc > 1 ? argv[1] : "";
    char names[128] = "";

    for (const struct usage *u = usages; u->name; u++) {
        const char *second = strchr(u->name, ' ') + 1;
        size_t used = strlen(names);

        if (strcmp(second, word) == 0)
            return u;
        snprintf(names + used, sizeof names - used, "%s%s", used ? " or " : "", second);
    }
    *code_out = is_help(word) ? 0 : status_exit_code(ST_INPUT);
    if (is_help(word))
        for (const struct usage *u = usages; u->name; u++) {
            print_help(u);
            printf("%s", u[1].name ? "\n" : "");
        }
    else
        log_error("%s: expected %s%s%s%s (mkernel %s --help tells more)", argv[0], names, *word ? ", found \"" : "",
                  word, *word ? "\"" : "", argv[0]);
    return NULL;
}

bool args_given(const struct args *a, int flag)
{
    return a->given >> flag & 1;
}
