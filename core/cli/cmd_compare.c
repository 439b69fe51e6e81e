#include "core/cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "core/cli/args.h"
#include "core/cli/junit.h"
#include "core/cli/match.h"
#include "core/cli/table.h"
#include "core/log.h"
#include "core/parse/csv.h"

struct order {
    const char *junit;
    double threshold_percent;
    bool csv, quiet;
    const char *paths[2];
};

static const struct flag flags[] = {
    {"--threshold", "PERCENT", "a change of more than this counts (default: 2)", FLAG_NUMBER,
     offsetof(struct order, threshold_percent), 0, 1000},
    {"--junit", "FILE", "write a JUnit report, a test case a point", FLAG_TEXT, offsetof(struct order, junit), 0, 0},
    {"--csv", NULL, "print one row a point instead of the table", FLAG_SWITCH, offsetof(struct order, csv), 0, 0},
    {"--quiet", NULL, "print only the last line and errors", FLAG_SWITCH, offsetof(struct order, quiet), 0, 0},
    {0},
};

static const struct usage usage = {
    .name = "compare",
    .takes = "A B [options]",
    .about = "Compares the points that two result files have in common: B against A.  A point counts as slower\n"
             "when its median grew by more than the threshold and the middle halves of the samples do not\n"
             "overlap.  Exit codes: 0 nothing slower, 1 B failed where A did not, 2 bad input or nothing in\n"
             "common, 3 something is slower.",
    .example = "mkernel compare results/before.jsonl results/after.jsonl --threshold 3",
    .flags = flags,
    .words = "two result files",
    .words_min = 2,
    .words_max = 2,
};

/* ---- printing ---- */

static const struct column columns[] = {
    {"point", "", true},    {"A", "us", false},    {"B", "us", false},  {"change", "%", false},
    {"spread", "%", false}, {"verdict", "", true}, {NULL, NULL, false},
};

struct numbers {
    char a[32], b[32], change[32], spread[32];
};

/* With so many decimals; `none` where there is no time: that is not 0. */
static struct numbers numbers_of(const struct match *x, int decimals, int percent_decimals, const char *none)
{
    bool a = records_has_time(x->a), b = records_has_time(x->b);
    struct numbers n;

    snprintf(n.a, sizeof n.a, "%.*f", decimals, x->a->median_us);
    snprintf(n.b, sizeof n.b, "%.*f", decimals, x->b->median_us);
    snprintf(n.change, sizeof n.change, "%+.*f", percent_decimals, 100 * x->change);
    snprintf(n.spread, sizeof n.spread, "%.*f", percent_decimals, 100 * x->spread);
    if (!a)
        snprintf(n.a, sizeof n.a, "%s", none);
    if (!b)
        snprintf(n.b, sizeof n.b, "%s", none);
    if (!a || !b) {
        snprintf(n.change, sizeof n.change, "%s", none);
        snprintf(n.spread, sizeof n.spread, "%s", none);
    }
    return n;
}

static void print_table(const struct matches *m)
{
    struct table t;

    table_begin(&t, columns);
    for (size_t i = 0; i < m->count; i++) {
        struct numbers n = numbers_of(&m->items[i], 2, 2, "-");

        table_add(&t, "%s", m->items[i].name);
        table_add(&t, "%s", n.a);
        table_add(&t, "%s", n.b);
        table_add(&t, "%s", n.change);
        table_add(&t, "%s", n.spread);
        table_add(&t, "%s", match_verdict_word(m->items[i].verdict));
    }
    table_print(&t, false, stdout);
    table_end(&t);
}

static void print_csv(const struct matches *m)
{
    printf("kernel,variant,program,point,a_us,b_us,change_percent,spread_percent,verdict\n");
    for (size_t i = 0; i < m->count; i++) {
        const struct match *x = &m->items[i];
        const char *const texts[] = {x->a->kernel, x->a->variant, x->a->program, x->name};
        struct numbers n = numbers_of(x, 6, 4, "");

        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
            csv_put(texts[t], stdout);
            putchar(',');
        }
        printf("%s,%s,%s,%s,%s\n", n.a, n.b, n.change, n.spread, match_verdict_word(x->verdict));
    }
}

static const char *text_member(const json_t *run, const char *name)
{
    const char *text = json_string_value(json_object_get(run, name));

    return text ? text : "?";
}

static void print_file(const char *letter, const struct records *r)
{
    const json_t *run = r->runs[0];

    printf("# %s: %s, %zu points, %s on %s, mkernel %s (%.12s), %s\n", letter, r->path, r->point_count,
           text_member(run, "backend"), text_member(json_object_get(run, "machine"), "name"),
           text_member(run, "version"), text_member(run, "commit"), text_member(run, "date"));
}

static void print_sum(const struct matches *m, double threshold_percent)
{
    printf("%zu points in common: %zu slower by more than %g %%, %zu faster, %zu the same, %zu within their spread, "
           "%zu failed, %zu fixed, %zu without a time\n",
           m->count, m->of[MATCH_SLOWER], threshold_percent, m->of[MATCH_FASTER], m->of[MATCH_SAME], m->of[MATCH_NOISE],
           m->of[MATCH_FAILED], m->of[MATCH_FIXED], m->of[MATCH_NO_TIME]);
}

static void print(const struct order *o, const struct records *a, const struct records *b, const struct matches *m)
{
    if (o->csv) {
        print_csv(m);
        return;
    }
    if (!o->quiet) {
        print_file("A", a);
        print_file("B", b);
        printf("# change: median of B over median of A; spread: the wider middle half of the samples\n#\n");
        print_table(m);
    }
    print_sum(m, o->threshold_percent);
}

/* ---- comparing ---- */

static enum status verdict_of(const struct order *o, const struct matches *m)
{
    if (m->only_a > 0)
        log_warn("%s: %zu points of %s are missing, the first stands in its line %zu", o->paths[1], m->only_a,
                 o->paths[0], m->first_only_a->line);
    if (m->only_b > 0)
        log_warn("%s: %zu points of %s are missing", o->paths[0], m->only_b, o->paths[1]);
    if (m->count == 0) {
        log_error("compare: %s and %s have no point in common", o->paths[0], o->paths[1]);
        return ST_INPUT;
    }
    if (m->of[MATCH_FAILED] > 0)
        return ST_WRONG;
    return m->of[MATCH_SLOWER] > 0 ? ST_SLOW : ST_OK;
}

static enum status compare_loaded(const struct order *o, const struct records *a, const struct records *b)
{
    struct matches m;
    enum status st;

    for (int i = 0; i < 2; i++)
        if ((i ? b : a)->point_count == 0) {
            log_error("%s: no point in it; expected results of mkernel run", o->paths[i]);
            return ST_INPUT;
        }
    TRY(matches_find(a, b, o->threshold_percent / 100, &m));
    st = verdict_of(o, &m);
    if (m.count > 0)
        print(o, a, b, &m);
    if (m.count > 0 && o->junit) {
        enum status written = junit_write(&m, o->paths[1], o->junit);

        st = st == ST_OK ? written : st;
    }
    matches_fini(&m);
    return st;
}

static enum status compare_files(const struct order *o)
{
    struct records a, b;
    enum status st;

    TRY(records_load(o->paths[0], &a));
    st = records_load(o->paths[1], &b);
    if (st >= 0) {
        st = compare_loaded(o, &a, &b);
        records_fini(&b);
    }
    records_fini(&a);
    return st;
}

int cmd_compare(int argc, char **argv, const struct registry *r)
{
    struct order o = {.threshold_percent = 2};
    struct args a;
    int code = args_parse(&a, &usage, argc, argv, &o);

    (void)r;
    if (code < 0) {
        o.paths[0] = a.words[0];
        o.paths[1] = a.words[1];
        log_set_quiet(o.quiet);
        code = status_exit_code(compare_files(&o));
    }
    args_fini(&a);
    return code;
}
