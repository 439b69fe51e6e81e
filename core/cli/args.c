#include "core/cli/args.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/parse/nearest.h"

void args_begin(struct args *a, const struct usage *usage, int argc, char **argv)
{
    *a = (struct args){.usage = usage, .argc = argc, .argv = argv, .next = 1};
}

static void print_help(const struct usage *u)
{
    printf("usage: mkernel %s\n\n%s\n\n", u->line, u->about);
    for (const struct flag *f = u->flags; f->name; f++) {
        char left[64];

        snprintf(left, sizeof left, "%s %s", f->name, f->value ? f->value : "");
        printf("  %-22s %s\n", left, f->help);
    }
    printf("  %-22s %s\n\nexample:\n  %s\n", "--help", "print this", u->example);
}

static int unknown_flag(const struct args *a, const char *name)
{
    struct nearest n;
    char           guess[128];

    nearest_begin(&n, name);
    for (const struct flag *f = a->usage->flags; f->name; f++)
        nearest_offer(&n, f->name);
    args_error(a, "unknown option \"%s\"%s", name, nearest_text(&n, guess, sizeof guess));
    return ARGS_BAD;
}

static int take_value(struct args *a, int flag, const char *after_equals)
{
    const struct flag *f = &a->usage->flags[flag];

    a->value = after_equals;
    if (!f->value && after_equals) {
        args_error(a, "option %s takes no value", f->name);
        return ARGS_BAD;
    }
    if (!f->value || after_equals)
        return flag;
    if (a->next == a->argc) {
        args_error(a, "option %s needs a value: %s %s", f->name, f->name, f->value);
        return ARGS_BAD;
    }
    a->value = a->argv[a->next++];
    return flag;
}

int args_next(struct args *a)
{
    char   name[64];
    char  *word;
    size_t n;

    if (a->next == a->argc)
        return ARGS_END;
    a->value = word = a->argv[a->next++];
    if (a->words_only || word[0] != '-' || word[1] == 0)
        return ARGS_WORD;
    if (strcmp(word, "--") == 0) {
        a->words_only = true;
        return args_next(a);
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        print_help(a->usage);
        return ARGS_HELP;
    }
    n = strcspn(word, "=");
    snprintf(name, sizeof name, "%.*s", (int)n, word);
    for (int i = 0; a->usage->flags[i].name; i++)
        if (strcmp(a->usage->flags[i].name, name) == 0)
            return take_value(a, i, word[n] == '=' ? word + n + 1 : NULL);
    return unknown_flag(a, name);
}

int args_error(const struct args *a, const char *format, ...)
{
    char    text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_error("%s: %s (mkernel %s --help lists the options)", a->argv[0], text, a->argv[0]);
    return status_exit_code(ST_INPUT);
}

int args_value(const struct args *a, const struct option *values, int flag, void *base)
{
    const struct option *o = option_find(values, a->usage->flags[flag].name);
    char                 why[256];

    if (option_parse(o, base, a->value, NULL, why, sizeof why) >= 0)
        return -1;
    return args_error(a, "%s %s: %s", o->name, a->value, why);
}
