#include "core/parse/units.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* One unit is numerator / denominator of the quantity's base: byte, picosecond, byte per second. */
struct unit {
    const char *name;
    uint64_t numerator;
    uint32_t denominator;
};

#define KIB 1024ull
#define GIGA 1000000000ull
#define DIGITS_MAX (GIGA * GIGA - 1) /* the 18 digits that read_decimal takes */

/* Rising: printing takes the largest unit that is not larger than the value. */
static const struct unit size_units[] = {
    {"B", 1, 1},
    {"KB", 1000, 1},
    {"KiB", KIB, 1},
    {"MB", 1000000, 1},
    {"MiB", KIB *KIB, 1},
    {"GB", GIGA, 1},
    {"GiB", KIB *KIB *KIB, 1},
    {"TB", 1000 * GIGA, 1},
    {"TiB", KIB *KIB *KIB *KIB, 1},
    {NULL, 0, 0},
};
static const struct unit time_units[] = {
    {"ps", 1, 1}, {"ns", 1000, 1}, {"us", 1000000, 1}, {"ms", GIGA, 1}, {"s", 1000 * GIGA, 1}, {NULL, 0, 0},
};
static const struct unit rate_units[] = {
    {"B/s", 1, 1},        {"KB/s", 1000, 1}, {"MB/s", 1000000, 1},     {"GB/s", GIGA, 1}, {"TB/s", 1000 * GIGA, 1},
    {"Mb/s", 1000000, 8}, {"Gb/s", GIGA, 8}, {"Tb/s", 1000 * GIGA, 8}, {NULL, 0, 0},
};

static const struct {
    const struct unit *units;
    const char *noun, *examples, *base;
    uint64_t max; /* every value below is exact in the C type it ends up in */
} quantities[] = {
    [QUANTITY_SIZE] = {size_units, "size", "64KiB, 1MiB or 141GB", "byte", DIGITS_MAX},
    [QUANTITY_TIME] = {time_units, "time", "850ns, 4.4us or 2ms", "picosecond", DIGITS_MAX},
    [QUANTITY_RATE] = {rate_units, "rate", "48.5GB/s or 400Gb/s", "byte per second", 1ull << 53},
};

static const struct unit *find_unit(enum quantity q, const char *name)
{
    for (const struct unit *u = quantities[q].units; u->name; u++)
        if (strcmp(u->name, name) == 0)
            return u;
    return NULL;
}

/* Reads digits[.digits] as value / scale.  Returns where it stopped, NULL if that is no number. */
static const char *read_decimal(const char *at, uint64_t *value_out, uint64_t *scale_out)
{
    uint64_t value = 0, scale = 1;
    int digits = 0, point = 0;

    for (; isdigit((unsigned char)*at) || (*at == '.' && !point); at++) {
        if (*at == '.') {
            point = 1;
            continue;
        }
        if (++digits > 18) /* below 10^18: fits, and so does the scale */
            return NULL;
        value = value * 10 + (uint64_t)(*at - '0');
        scale *= point ? 10 : 1;
    }
    *value_out = value;
    *scale_out = scale;
    return digits ? at : NULL;
}

enum status units_parse(enum quantity q, const char *text, uint64_t *out, char *why, size_t why_bytes)
{
    uint64_t value, scale;
    const char *at = read_decimal(text, &value, &scale);
    const struct unit *unit;
    unsigned __int128 base, divisor;
    char limit[40];

#define EXPECTED "; expected a %s with a unit, for example %s"
    if (!at) {
        snprintf(why, why_bytes, "\"%.60s\" is not a %s" EXPECTED, text, quantities[q].noun, quantities[q].noun,
                 quantities[q].examples);
        return ST_INPUT;
    }
    while (*at == ' ')
        at++;
    unit = find_unit(q, at);
    if (!unit) {
        snprintf(why, why_bytes, *at ? "\"%.60s\" has a wrong unit" EXPECTED : "\"%.60s\" has no unit" EXPECTED, text,
                 quantities[q].noun, quantities[q].examples);
        return ST_INPUT;
    }
#undef EXPECTED
    base = (unsigned __int128)value * unit->numerator;
    divisor = (unsigned __int128)scale * unit->denominator;
    if (base % divisor != 0) {
        snprintf(why, why_bytes, "\"%.60s\" is finer than one %s; expected whole ones", text, quantities[q].base);
        return ST_INPUT;
    }
    if (base / divisor > quantities[q].max) {
        units_print(q, quantities[q].max, limit, sizeof limit);
        snprintf(why, why_bytes, "\"%.60s\" is too large; expected at most %s", text, limit);
        return ST_INPUT;
    }
    *out = (uint64_t)(base / divisor);
    return ST_OK;
}

/* value / unit with as many decimals as it takes; `unit` is a power of ten. */
static void print_decimal(uint64_t value, const struct unit *unit, char *out, size_t out_bytes)
{
    uint64_t rest = value % unit->numerator, step = unit->numerator;
    char fraction[24];
    size_t used = 0;

    while (rest > 0) {
        step /= 10;
        fraction[used++] = (char)('0' + rest / step);
        rest %= step;
    }
    snprintf(out, out_bytes, "%llu%s%.*s%s", (unsigned long long)(value / unit->numerator), used ? "." : "", (int)used,
             fraction, unit->name);
}

/* Sizes are printed whole: in the largest unit that divides them. */
static const struct unit *size_unit(uint64_t value)
{
    const struct unit *best = size_units;

    for (const struct unit *u = size_units; u->name && value > 0; u++)
        if (value % u->numerator == 0)
            best = u;
    return best;
}

void units_print(enum quantity q, uint64_t value, char *out, size_t out_bytes)
{
    const struct unit *unit = quantities[q].units;

    if (q == QUANTITY_SIZE) {
        unit = size_unit(value);
    } else {
        for (const struct unit *u = unit; u->name && u->denominator == 1; u++)
            if (u->numerator <= value)
                unit = u;
    }
    print_decimal(value, unit, out, out_bytes);
}
