#include "core/parse/option.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/parse/expression.h"
#include "core/parse/nearest.h"
#include "core/parse/units.h"

/* A value on its way between text and field: every type but OPTION_TEXT is one of these. */
union value {
    uint64_t whole;
    double real;
};

__attribute__((format(printf, 3, 4))) static enum status refuse(char *why, size_t why_bytes, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, why_bytes, format, args);
    va_end(args);
    return ST_INPUT;
}

static void *field(const struct option *o, void *base)
{
    return (char *)base + o->offset;
}

static void print_value(const struct option *o, union value v, char *out, size_t out_bytes);

static const char *choice_end(const char *choice)
{
    return choice + strcspn(choice, "|");
}

/* Copies the choice at `position`; false: there are fewer. */
static bool choice_name(const struct option *o, uint64_t position, char name[OPTION_TEXT_BYTES])
{
    const char *at = o->choices;

    for (; position > 0; position--) {
        at = choice_end(at);
        if (*at++ == '\0')
            return false;
    }
    snprintf(name, OPTION_TEXT_BYTES, "%.*s", (int)(choice_end(at) - at), at);
    return true;
}

static enum status parse_choice(const struct option *o, const char *text, uint64_t *out, char *why, size_t why_bytes)
{
    char name[OPTION_TEXT_BYTES], guess[100];
    struct nearest near;

    nearest_begin(&near, text);
    for (uint64_t i = 0; choice_name(o, i, name); i++) {
        if (strcmp(name, text) == 0) {
            *out = i;
            return ST_OK;
        }
        nearest_offer(&near, name);
    }
    return refuse(why, why_bytes, "\"%.60s\" is not a choice; expected %s%s", text, o->choices,
                  nearest_text(&near, guess, sizeof guess));
}

static enum status parse_number(const char *text, double *out, char *why, size_t why_bytes)
{
    char *end = NULL;
    size_t plain = strspn(text, "0123456789.eE+-"); /* no hexadecimal, inf or nan */
    double value = 0;

    if (plain > 0 && text[plain] == '\0')
        value = strtod(text, &end);
    if (!end || end == text || *end != '\0' || !isfinite(value))
        return refuse(why, why_bytes,
                      "\"%.60s\" is not a number; expected one such as 0.95, "
                      "without a unit",
                      text);
    *out = value;
    return ST_OK;
}

static enum status parse_bool(const char *text, uint64_t *out, char *why, size_t why_bytes)
{
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return refuse(why, why_bytes, "\"%.60s\" is not a truth value; expected true or false", text);
    *out = text[0] == 't';
    return ST_OK;
}

static enum status check_bounds(const struct option *o, union value v, const char *text, char *why, size_t why_bytes)
{
    bool real = o->type == OPTION_NUMBER;
    double value = real ? v.real : (double)v.whole;
    bool low = value < o->min;
    union value bound;
    char limit[OPTION_TEXT_BYTES];

    if ((o->min == 0 && o->max == 0) || (value >= o->min && value <= o->max))
        return ST_OK;
    if (real)
        bound.real = low ? o->min : o->max;
    else
        bound.whole = (uint64_t)(low ? o->min : o->max);
    print_value(o, bound, limit, sizeof limit);
    return refuse(why, why_bytes, "%.60s is too %s; expected at %s %s", text, low ? "small" : "large",
                  low ? "least" : "most", limit);
}

static enum status parse_value(const struct option *o, const char *text, const struct option_scope *scope,
                               union value *v, char *why, size_t why_bytes)
{
    switch (o->type) {
    case OPTION_COUNT: return expression_value(text, scope, &v->whole, why, why_bytes);
    case OPTION_SIZE: return units_parse(QUANTITY_SIZE, text, &v->whole, why, why_bytes);
    case OPTION_TIME: return units_parse(QUANTITY_TIME, text, &v->whole, why, why_bytes);
    case OPTION_RATE: return units_parse(QUANTITY_RATE, text, &v->whole, why, why_bytes);
    case OPTION_NUMBER: return parse_number(text, &v->real, why, why_bytes);
    case OPTION_BOOL: return parse_bool(text, &v->whole, why, why_bytes);
    case OPTION_CHOICE: return parse_choice(o, text, &v->whole, why, why_bytes);
    case OPTION_TEXT: break;
    }
    abort(); /* text is no value */
}

static enum status parse_text(const struct option *o, void *base, const char *text, char *why, size_t why_bytes)
{
    size_t size = strlen(text);

    if (size >= OPTION_TEXT_BYTES)
        return refuse(why, why_bytes, "\"%.20s...\" is too long; expected at most %d characters", text,
                      OPTION_TEXT_BYTES - 1);
    memset(field(o, base), 0, OPTION_TEXT_BYTES);
    memcpy(field(o, base), text, size);
    return ST_OK;
}

static void store(const struct option *o, void *base, union value v)
{
    void *to = field(o, base);

    switch (o->type) {
    case OPTION_RATE: *(double *)to = (double)v.whole; break;
    case OPTION_NUMBER: *(double *)to = v.real; break;
    case OPTION_BOOL: *(bool *)to = v.whole != 0; break;
    case OPTION_CHOICE: *(uint32_t *)to = (uint32_t)v.whole; break;
    default: *(uint64_t *)to = v.whole; break;
    }
}

static union value fetch(const struct option *o, const void *base)
{
    const void *from = (const char *)base + o->offset;

    switch (o->type) {
    case OPTION_RATE: return (union value){.whole = (uint64_t) * (const double *)from};
    case OPTION_NUMBER: return (union value){.real = *(const double *)from};
    case OPTION_BOOL: return (union value){.whole = *(const bool *)from};
    case OPTION_CHOICE: return (union value){.whole = *(const uint32_t *)from};
    default: return (union value){.whole = *(const uint64_t *)from};
    }
}

enum status option_parse(const struct option *o, void *base, const char *text, const struct option_scope *scope,
                         char *why, size_t why_bytes)
{
    union value v = {0};

    if (o->type == OPTION_TEXT)
        return parse_text(o, base, text, why, why_bytes);
    TRY(parse_value(o, text, scope, &v, why, why_bytes));
    TRY(check_bounds(o, v, text, why, why_bytes));
    store(o, base, v);
    return ST_OK;
}

void option_defaults(const struct option *table, void *base)
{
    char why[200] = "";

    for (const struct option *o = table; o && o->name; o++) {
        enum status st = o->initial ? option_parse(o, base, o->initial, NULL, why, sizeof why) : ST_OK;

        if (st != ST_OK)
            fprintf(stderr, "%s: %s\n", o->name, why);
        assert(st == ST_OK); /* a table of ours is wrong */
    }
}

const struct option *option_find(const struct option *table, const char *name)
{
    for (const struct option *o = table; o && o->name; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

const char *option_nearest(const struct option *table, const char *name)
{
    struct nearest near;

    nearest_begin(&near, name);
    for (const struct option *o = table; o && o->name; o++)
        nearest_offer(&near, o->name);
    return near.best[0] ? option_find(table, near.best)->name : NULL;
}

/* The fewest digits that strtod reads back as the same double; 10 is 10 and not 1e+01. */
static void print_number(double value, char *out, size_t out_bytes)
{
    if (value == nearbyint(value) && fabs(value) < 1e15) {
        snprintf(out, out_bytes, "%.0f", value);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, out_bytes, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            return;
    }
}

static void print_value(const struct option *o, union value v, char *out, size_t out_bytes)
{
    char name[OPTION_TEXT_BYTES] = "";

    switch (o->type) {
    case OPTION_COUNT: snprintf(out, out_bytes, "%llu", (unsigned long long)v.whole); return;
    case OPTION_SIZE: units_print(QUANTITY_SIZE, v.whole, out, out_bytes); return;
    case OPTION_TIME: units_print(QUANTITY_TIME, v.whole, out, out_bytes); return;
    case OPTION_RATE: units_print(QUANTITY_RATE, v.whole, out, out_bytes); return;
    case OPTION_NUMBER: print_number(v.real, out, out_bytes); return;
    case OPTION_BOOL: snprintf(out, out_bytes, "%s", v.whole ? "true" : "false"); return;
    case OPTION_CHOICE:
        choice_name(o, v.whole, name);
        snprintf(out, out_bytes, "%s", name);
        return;
    case OPTION_TEXT: break;
    }
    abort();
}

void option_print(const struct option *o, const void *base, char *out, size_t out_bytes)
{
    if (o->type == OPTION_TEXT)
        snprintf(out, out_bytes, "%s", (const char *)base + o->offset);
    else
        print_value(o, fetch(o, base), out, out_bytes);
}

static const char *type_name(const struct option *o)
{
    switch (o->type) {
    case OPTION_COUNT: return "count";
    case OPTION_SIZE: return "size";
    case OPTION_TIME: return "time";
    case OPTION_RATE: return "rate";
    case OPTION_NUMBER: return "number";
    case OPTION_BOOL: return "true|false";
    case OPTION_CHOICE: return o->choices;
    case OPTION_TEXT: return "text";
    }
    abort();
}

void option_help(const struct option *table, FILE *f)
{
    for (const struct option *o = table; o && o->name; o++) {
        fprintf(f, "  %-24s %-20s %-12s %s\n", o->name, type_name(o),
                o->initial ? (o->initial[0] ? o->initial : "none") : "required", o->help);
    }
}
