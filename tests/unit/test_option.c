/* Values as users write them, arithmetic on names, and the guess at what was meant. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/parse/expression.h"
#include "core/parse/nearest.h"
#include "core/parse/option.h"
#include "core/parse/units.h"

#include "../suite.h"

struct fields {
    uint64_t count, size, time;
    double rate, number;
    bool flag;
    uint32_t choice;
    char text[OPTION_TEXT_BYTES];
};

static const struct option table[] = {
    {"count", OPTION_COUNT, offsetof(struct fields, count), "4096", 0, 0, NULL, "a count"},
    {"size", OPTION_SIZE, offsetof(struct fields, size), "1MiB", 0, 0, NULL, "a size"},
    {"time", OPTION_TIME, offsetof(struct fields, time), "4.4us", 0, 0, NULL, "a time"},
    {"rate", OPTION_RATE, offsetof(struct fields, rate), "450GB/s", 0, 0, NULL, "a rate"},
    {"number", OPTION_NUMBER, offsetof(struct fields, number), "0.95", 0, 0, NULL, "a number"},
    {"flag", OPTION_BOOL, offsetof(struct fields, flag), "true", 0, 0, NULL, "a flag"},
    {"choice", OPTION_CHOICE, offsetof(struct fields, choice), "ring", 0, 0, "ring|direct|tree", "a choice"},
    {"text", OPTION_TEXT, offsetof(struct fields, text), "", 0, 0, NULL, "a text"},
    {"bounded", OPTION_SIZE, offsetof(struct fields, size), NULL, 1024, 1048576, NULL, "bounded"},
    {0},
};

/* ---- what option_print writes, option_parse reads back ---- */

static const struct {
    const char *key, *written, *printed;
} round_trips[] = {
    {"count", "0", "0"},
    {"count", "18446744073709551615", "18446744073709551615"},
    {"count", "2 * (3 + 4) - 6/3", "12"},
    {"size", "0B", "0B"},
    {"size", "512B", "512B"},
    {"size", "100KB", "100KB"},
    {"size", "64KiB", "64KiB"},
    {"size", "1024KiB", "1MiB"},
    {"size", "1.5MiB", "1536KiB"},
    {"size", "1 MiB", "1MiB"},
    {"size", "2GiB", "2GiB"},
    {"size", "141GB", "141GB"},
    {"size", "80GB", "80GB"},
    {"size", "999999999999999999B", "999999999999999999B"},
    {"time", "0ps", "0ps"},
    {"time", "1ps", "1ps"},
    {"time", "0.85ns", "850ps"},
    {"time", "850ns", "850ns"},
    {"time", "4.4us", "4.4us"},
    {"time", "2ms", "2ms"},
    {"time", "30s", "30s"},
    {"time", "1.000000000001s", "1.000000000001s"},
    {"time", "999999.999999999999s", "999999.999999999999s"},
    {"rate", "450GB/s", "450GB/s"},
    {"rate", "400Gb/s", "50GB/s"},
    {"rate", "43.5GB/s", "43.5GB/s"},
    {"rate", "1.000000001GB/s", "1.000000001GB/s"},
    {"rate", "3.99TB/s", "3.99TB/s"},
    {"rate", "7B/s", "7B/s"},
    {"number", "0.95", "0.95"},
    {"number", "0.1", "0.1"},
    {"number", "-2", "-2"},
    {"number", "1e300", "1e+300"},
    {"number", "0.30000000000000004", "0.30000000000000004"},
    {"flag", "true", "true"},
    {"flag", "false", "false"},
    {"choice", "ring", "ring"},
    {"choice", "tree", "tree"},
    {"text", "anything at all", "anything at all"},
    {"text", "", ""},
};
static const int round_trip_count = sizeof round_trips / sizeof round_trips[0];

START_TEST(printed_value_reads_back)
{
    const struct option *o = option_find(table, round_trips[_i].key);
    struct fields first, second;
    char why[300], text[OPTION_TEXT_BYTES], again[OPTION_TEXT_BYTES];

    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    ck_assert_int_eq(option_parse(o, &first, round_trips[_i].written, NULL, why, sizeof why), ST_OK);
    option_print(o, &first, text, sizeof text);
    ck_assert_str_eq(text, round_trips[_i].printed);
    ck_assert_int_eq(option_parse(o, &second, text, NULL, why, sizeof why), ST_OK);
    option_print(o, &second, again, sizeof again);
    ck_assert_str_eq(text, again);
    ck_assert_int_eq(memcmp(&first, &second, sizeof first), 0);
}
END_TEST

/* ---- values in their C types ---- */

START_TEST(units_are_exact)
{
    static const struct {
        enum quantity quantity;
        const char *text;
        uint64_t value;
    } rows[] = {
        {QUANTITY_SIZE, "64KiB", 65536},         {QUANTITY_SIZE, "1KB", 1000},
        {QUANTITY_SIZE, "1TiB", 1099511627776},  {QUANTITY_TIME, "4.4us", 4400000},
        {QUANTITY_TIME, "0.1ms", 100000000},     {QUANTITY_TIME, "2s", 2000000000000},
        {QUANTITY_RATE, "400Gb/s", 50000000000}, {QUANTITY_RATE, "48.5GB/s", 48500000000},
        {QUANTITY_RATE, "1Mb/s", 125000},        {QUANTITY_RATE, "1.5TB/s", 1500000000000},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t value = 0;
        char why[300];

        ck_assert_int_eq(units_parse(rows[i].quantity, rows[i].text, &value, why, sizeof why), ST_OK);
        ck_assert_uint_eq(value, rows[i].value);
    }
}
END_TEST

/* Every value that a random draw makes, large or small, survives the trip through text. */
START_TEST(any_value_survives_text)
{
    uint64_t state = 88172645463325252u;

    for (int i = 0; i < 20000; i++) {
        enum quantity q = (enum quantity)(i % 3);
        uint64_t value, back;
        char text[64], why[300];

        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        value = (state >> (state % 60 + 4)) % 1000000000000000000u;
        if (q == QUANTITY_RATE)
            value &= (1ull << 53) - 1;
        units_print(q, value, text, sizeof text);
        ck_assert_msg(units_parse(q, text, &back, why, sizeof why) == ST_OK, "%s: %s", text, why);
        ck_assert_uint_eq(back, value);
    }
}
END_TEST

/* ---- refusals ---- */

static const struct {
    const char *key, *text, *why; /* a part of the message */
} refusals[] = {
    {"size", "5", "\"5\" has no unit; expected a size with a unit"},
    {"size", "5us", "\"5us\" has a wrong unit; expected a size"},
    {"size", "MiB", "\"MiB\" is not a size"},
    {"size", "", "\"\" is not a size"},
    {"size", "-1MiB", "is not a size"},
    {"size", "0.5B", "finer than one byte"},
    {"size", "99999999999TiB", "too large; expected at most"},
    {"size", "1111111111111111111111B", "is not a size"},
    {"size", "1..5MiB", "wrong unit"},
    {"time", "5", "has no unit; expected a time"},
    {"time", "0.5ps", "finer than one picosecond"},
    {"time", "5 hours", "wrong unit"},
    {"rate", "5GB", "wrong unit; expected a rate"},
    {"rate", "1e9B/s", "wrong unit"},
    {"number", "nan", "is not a number"},
    {"number", "inf", "is not a number"},
    {"number", "0x10", "is not a number"},
    {"number", "1e999", "is not a number"},
    {"number", "1.5x", "is not a number"},
    {"number", "", "is not a number"},
    {"flag", "yes", "expected true or false"},
    {"choice", "rng", "expected ring|direct|tree; did you mean \"ring\"?"},
    {"choice", "", "expected ring|direct|tree"},
    {"text", "0123456789012345678901234567890123456789012345678901234567890123", "too long"},
    {"bounded", "1B", "1B is too small; expected at least 1KiB"},
    {"bounded", "1GiB", "1GiB is too large; expected at most 1MiB"},
    {"count", "1.5", "is not a whole number"},
    {"count", "-1", "below zero"},
    {"count", "4096KiB", "without a unit"},
    {"count", "m", "\"m\" is not a number"},
    {"count", "18446744073709551616", "64 bits"},
};
static const int refusal_count = sizeof refusals / sizeof refusals[0];

START_TEST(bad_value_is_refused_with_a_reason)
{
    const struct option *o = option_find(table, refusals[_i].key);
    struct fields f, before;
    char why[300] = "";

    memset(&f, 0x55, sizeof f);
    before = f;
    ck_assert_int_eq(option_parse(o, &f, refusals[_i].text, NULL, why, sizeof why), ST_INPUT);
    ck_assert_msg(strstr(why, refusals[_i].why) != NULL, "\"%s\" lacks \"%s\"", why, refusals[_i].why);
    ck_assert_int_eq(memcmp(&f, &before, sizeof f), 0); /* written on success only */
}
END_TEST

/* ---- expressions ---- */

static const struct option_scope scope[] = {{"m", 100}, {"k", 4096}, {"ranks", 16}, {"zero", 0}, {NULL, 0}};

static const struct {
    const char *text;
    uint64_t value;
} expressions[] = {
    {"m", 100},   {"m/4", 25},  {"k/ranks/2", 128},   {"2*k+m", 8292}, {"(m - 4) * 2", 192},
    {" m ", 100}, {"m-100", 0}, {"k/(ranks*2)", 128}, {"zero/7", 0},   {"((((m))))", 100},
};
static const int expression_count = sizeof expressions / sizeof expressions[0];

START_TEST(expression_has_its_value)
{
    uint64_t value = 7;
    char why[300];

    ck_assert_int_eq(expression_value(expressions[_i].text, scope, &value, why, sizeof why), ST_OK);
    ck_assert_uint_eq(value, expressions[_i].value);
}
END_TEST

static const struct {
    const char *text, *why;
} bad_expressions[] = {
    {"m/16", "m/16 is not whole for m = 100"},
    {"m/(k-4096)", "divides by zero for m = 100, k = 4096"},
    {"m/zero", "divides by zero"},
    {"m-101", "is below zero for m = 100"},
    {"k*k*k*k*k*k", "does not fit"},
    {"99999999999999999999", "does not fit"},
    {"18446744073709551615+m", "does not fit"},
    {"rank*2", "did you mean \"ranks\"?"},
    {"n", "expected a whole number or arithmetic on m, k, ranks, zero"},
    {"(m", "closing parenthesis"},
    {"m)", "is not a whole number"},
    {"m m", "is not a whole number"},
    {"m%3", "is not a whole number"},
    {"+", "is not a whole number"},
    {"", "is not a whole number"},
    {"m/", "is not a whole number"},
    {"((((((((((((((((((((m))))))))))))))))))))", "nested parentheses"},
};
static const int bad_expression_count = sizeof bad_expressions / sizeof bad_expressions[0];

START_TEST(bad_expression_is_refused_with_a_reason)
{
    uint64_t value = 7;
    char why[300] = "";

    ck_assert_int_eq(expression_value(bad_expressions[_i].text, scope, &value, why, sizeof why), ST_INPUT);
    ck_assert_msg(strstr(why, bad_expressions[_i].why) != NULL, "\"%s\" lacks \"%s\"", why, bad_expressions[_i].why);
    ck_assert_uint_eq(value, 7);
}
END_TEST

START_TEST(expression_says_what_it_uses)
{
    ck_assert(expression_uses("m/16", "m"));
    ck_assert(expression_uses("2*(k+m)", "k"));
    ck_assert(!expression_uses("mm/16", "m"));
    ck_assert(!expression_uses("16", "m"));
    ck_assert(!expression_uses("", "m"));
}
END_TEST

/* ---- tables and guesses ---- */

START_TEST(defaults_come_from_the_table)
{
    struct fields f;
    char text[OPTION_TEXT_BYTES];

    memset(&f, 0, sizeof f);
    option_defaults(table, &f);
    for (const struct option *o = table; o->initial; o++) {
        option_print(o, &f, text, sizeof text);
        ck_assert_str_eq(text, o->initial);
    }
}
END_TEST

START_TEST(nearest_name_is_guessed)
{
    ck_assert_str_eq(option_nearest(table, "cuont"), "count"); /* two neighbours swapped */
    ck_assert_str_eq(option_nearest(table, "numbr"), "number");
    ck_assert_str_eq(option_nearest(table, "choices"), "choice");
    ck_assert_ptr_null(option_nearest(table, "elephant"));
    ck_assert_ptr_null(option_nearest(table, ""));
    ck_assert_ptr_null(option_find(table, "elephant"));
}
END_TEST

START_TEST(help_names_every_key)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    option_help(table, f);
    fclose(f);
    for (const struct option *o = table; o->name; o++)
        ck_assert_msg(strstr(text, o->help) != NULL, "%s is missing", o->name);
    ck_assert_ptr_nonnull(strstr(text, "required"));
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("option");
    TCase *tc = tcase_create("option");

    tcase_add_loop_test(tc, printed_value_reads_back, 0, round_trip_count);
    tcase_add_test(tc, units_are_exact);
    tcase_add_test(tc, any_value_survives_text);
    tcase_add_loop_test(tc, bad_value_is_refused_with_a_reason, 0, refusal_count);
    tcase_add_loop_test(tc, expression_has_its_value, 0, expression_count);
    tcase_add_loop_test(tc, bad_expression_is_refused_with_a_reason, 0, bad_expression_count);
    tcase_add_test(tc, expression_says_what_it_uses);
    tcase_add_test(tc, defaults_come_from_the_table);
    tcase_add_test(tc, nearest_name_is_guessed);
    tcase_add_test(tc, help_names_every_key);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
