#include "core/parse/expression.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/parse/nearest.h"

#define DEPTH_MAX 16 /* nested parentheses */

struct parser {
    const char *text, *at;
    const struct option_scope *scope;
    char *why;
    size_t why_bytes;
    unsigned depth;
};

static enum status sum(struct parser *p, uint64_t *out);

__attribute__((format(printf, 2, 3))) static enum status fail(struct parser *p, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(p->why, p->why_bytes, format, args);
    va_end(args);
    return ST_INPUT;
}

static bool name_begins(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static size_t name_size(const char *at)
{
    size_t size = 0;

    while (name_begins(at[size]) || isdigit((unsigned char)at[size]))
        size++;
    return size;
}

bool expression_uses(const char *text, const char *name)
{
    for (const char *at = text; *at;) {
        size_t size = name_size(at);

        if (name_begins(*at) && size == strlen(name) && strncmp(at, name, size) == 0)
            return true;
        at += size ? size : 1;
    }
    return false;
}

static char next(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        p->at++;
    return *p->at;
}

/* "m = 100, k = 20": what the names in the expression stand for. */
static const char *values_used(const struct parser *p, char *out, size_t out_bytes)
{
    size_t used = 0;

    out[0] = '\0';
    for (const struct option_scope *s = p->scope; s && s->name; s++) {
        if (!expression_uses(p->text, s->name) || used >= out_bytes)
            continue;
        used += (size_t)snprintf(out + used, out_bytes - used, "%s%s = %llu", used ? ", " : " for ", s->name,
                                 (unsigned long long)s->value);
    }
    return out;
}

static enum status fail_with_values(struct parser *p, const char *what)
{
    char values[160];

    return fail(p, "%.60s %s%s; expected a whole number of 64 bits", p->text, what,
                values_used(p, values, sizeof values));
}

static enum status number(struct parser *p, uint64_t *out)
{
    uint64_t value = 0;

    for (; isdigit((unsigned char)*p->at); p->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p->at - '0'), &value))
            return fail_with_values(p, "does not fit in 64 bits");
    *out = value;
    return ST_OK;
}

static enum status unknown_name(struct parser *p, const char *name)
{
    struct nearest near;
    char names[200] = "", guess[100];
    size_t used = 0;

    if (!p->scope)
        return fail(p, "\"%.60s\" is not a number; expected a whole number", p->text);
    nearest_begin(&near, name);
    for (const struct option_scope *s = p->scope; s->name; s++) {
        nearest_offer(&near, s->name);
        if (used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", s->name);
    }
    return fail(p, "\"%s\" has no value here; expected a whole number or arithmetic on %s%s", name, names,
                nearest_text(&near, guess, sizeof guess));
}

static enum status name_value(struct parser *p, uint64_t *out)
{
    char name[OPTION_TEXT_BYTES];
    size_t size = name_size(p->at);

    if (size >= sizeof name)
        return fail(p, "\"%.20s...\" is too long for a name", p->at);
    memcpy(name, p->at, size);
    name[size] = '\0';
    for (const struct option_scope *s = p->scope; s && s->name; s++) {
        if (strcmp(s->name, name) == 0) {
            p->at += size;
            *out = s->value;
            return ST_OK;
        }
    }
    return unknown_name(p, name);
}

static enum status factor(struct parser *p, uint64_t *out)
{
    char c = next(p);

    if (isdigit((unsigned char)c))
        return number(p, out);
    if (name_begins(c))
        return name_value(p, out);
    if (c == '-')
        return fail(p, "\"%.60s\" is below zero; expected a whole number from 0 up", p->text);
    if (c != '(')
        return fail(p,
                    "\"%.60s\" is not a whole number; expected a number such as 4096 or "
                    "arithmetic such as m/16",
                    p->text);
    if (++p->depth > DEPTH_MAX)
        return fail(p, "more than %d nested parentheses", DEPTH_MAX);
    p->at++;
    TRY(sum(p, out));
    if (next(p) != ')')
        return fail(p, "\"%.60s\" lacks a closing parenthesis", p->text);
    p->at++;
    p->depth--;
    return ST_OK;
}

static enum status product(struct parser *p, uint64_t *out)
{
    uint64_t right;
    char c;

    TRY(factor(p, out));
    while ((c = next(p)) == '*' || c == '/') {
        p->at++;
        TRY(factor(p, &right));
        if (c == '*') {
            if (__builtin_mul_overflow(*out, right, out))
                return fail_with_values(p, "does not fit in 64 bits");
            continue;
        }
        if (right == 0)
            return fail_with_values(p, "divides by zero");
        if (*out % right != 0)
            return fail_with_values(p, "is not whole");
        *out /= right;
    }
    return ST_OK;
}

static enum status sum(struct parser *p, uint64_t *out)
{
    uint64_t right;
    char c;

    TRY(product(p, out));
    while ((c = next(p)) == '+' || c == '-') {
        p->at++;
        TRY(product(p, &right));
        if (c == '+' && __builtin_add_overflow(*out, right, out))
            return fail_with_values(p, "does not fit in 64 bits");
        if (c == '-') {
            if (right > *out)
                return fail_with_values(p, "is below zero");
            *out -= right;
        }
    }
    return ST_OK;
}

enum status expression_value(const char *text, const struct option_scope *scope, uint64_t *out, char *why,
                             size_t why_bytes)
{
    struct parser p = {.text = text, .at = text, .scope = scope, .why = why, .why_bytes = why_bytes};
    uint64_t value;

    TRY(sum(&p, &value));
    if (next(&p) != '\0')
        return fail(&p,
                    "\"%.60s\" is not a whole number; expected a number such as 4096 or "
                    "arithmetic such as m/16, without a unit",
                    text);
    *out = value;
    return ST_OK;
}
