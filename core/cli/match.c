#include "core/cli/match.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

/* ---- which keys tell points apart ---- */

static bool names_the_point(const char *key)
{
    static const char *const prefixes[] = {"problem.", "world.", "params."};

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return strcmp(key, "timing.mode") == 0 || strcmp(key, "timing.launch") == 0;
}

/* name -> its value, or null once two values have been seen. */
static json_t *keys_of(const struct records *r)
{
    json_t *keys = json_object();

    for (size_t i = 0; i < r->point_count; i++) {
        json_t *resolved = json_object_get(r->points[i].json, "resolved"), *value;
        const char *key;

        json_object_foreach (resolved, key, value) {
            json_t *seen = json_object_get(keys, key);

            if (!json_is_string(value))
                continue;
            if (!seen)
                json_object_set(keys, key, value);
            else if (!json_equal(seen, value))
                json_object_set_new(keys, key, json_null());
        }
    }
    return keys;
}

/* Of the keys in both files; a name leaves out those that are the same everywhere. */
struct common {
    json_t *a, *b;
};

/* Machine, seed and the like do where a file sweeps them. */
static bool tells_apart(const struct common *c, const char *key)
{
    const json_t *a = json_object_get(c->a, key), *b = json_object_get(c->b, key);

    return a && b && (names_the_point(key) || json_is_null(a) || json_is_null(b));
}

static bool varies(const struct common *c, const char *key)
{
    const json_t *a = json_object_get(c->a, key), *b = json_object_get(c->b, key);

    return json_is_null(a) || !json_equal(a, b);
}

static void append(char **text, const char *a, const char *b, const char *c, const char *d)
{
    size_t used = *text ? strlen(*text) : 0;
    size_t more = strlen(a) + strlen(b) + strlen(c) + strlen(d) + 1;

    *text = realloc(*text, used + more);
    assert(*text);
    stpcpy(stpcpy(stpcpy(stpcpy(*text + used, a), b), c), d);
}

/* In a name for people: the problem, and what differs between points; kernel and variant stand before. */
static bool is_worth_saying(const struct common *c, const char *key)
{
    static const char *const said[] = {"variant", "program", "problem.kernel"};

    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (strcmp(key, said[i]) == 0)
            return false;
    return varies(c, key) || (strncmp(key, "problem.", 8) == 0 && strcmp(key, "problem.dtype") != 0);
}

/* In the order of the record, which is that of the scenario's sections. */
static char *print_keys(const struct common *c, const struct records_point *p, bool all)
{
    json_t *resolved = json_object_get(p->json, "resolved"), *value;
    const char *key;
    char *text = NULL;

    append(&text, p->kernel, " ", p->variant, "");
    if (all || strcmp(p->variant, p->program) != 0)
        append(&text, " (", p->program, ")", "");
    json_object_foreach (resolved, key, value) {
        const char *dot = strchr(key, '.');

        if (!tells_apart(c, key) || !json_is_string(value))
            continue;
        if (all || is_worth_saying(c, key))
            append(&text, " ", all || !dot ? key : dot + 1, "=", json_string_value(value));
    }
    return text;
}

/* ---- pairing ---- */

struct keyed {
    char *key;
    const struct records_point *point;
};

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    int by_key = strcmp(x->key, y->key);

    return by_key != 0 ? by_key : (x->point->line > y->point->line) - (x->point->line < y->point->line);
}

/* What is left of a file's points, by key. */
struct side {
    const struct records *records;
    struct keyed *all, *next;
    size_t left;
};

/* A baseline that its backend does not have is not there, rather than failed. */
static bool was_skipped(const struct records_point *p)
{
    const char *verdict = json_string_value(json_object_get(p->json, "verdict"));

    return verdict && strcmp(verdict, "skipped") == 0;
}

static struct side sort_points(const struct common *c, const struct records *r)
{
    struct keyed *k = calloc(r->point_count + 1, sizeof *k);
    size_t count = 0;

    assert(k);
    for (size_t i = 0; i < r->point_count; i++)
        if (!was_skipped(&r->points[i]))
            k[count++] = (struct keyed){print_keys(c, &r->points[i], true), &r->points[i]};
    qsort(k, count, sizeof *k, compare_keyed);
    return (struct side){r, k, k, count};
}

static void free_side(struct side *s)
{
    for (struct keyed *k = s->all; k < s->next + s->left; k++)
        free(k->key);
    free(s->all);
}

/* A key in which two points of one file differ though their names are the same; NULL: there is none. */
static const char *key_apart(const struct records_point *a, const struct records_point *b)
{
    json_t *of_a = json_object_get(a->json, "resolved"), *of_b = json_object_get(b->json, "resolved"), *value;
    const char *key;

    json_object_foreach (of_a, key, value)
        if (!json_equal(value, json_object_get(of_b, key)))
            return key;
    return NULL;
}

/* Points that nothing tells apart matter where the other file has a partner for them. */
static enum status refuse_twins(const struct records *r, const struct keyed *k, const struct records *other)
{
    size_t line = k[0].point->line, twin = k[1].point->line;
    const char *key = key_apart(k[0].point, k[1].point);

    if (key)
        log_error("%s:%zu: differs from line %zu in %s, which %s does not know: %s; expected one value of it", r->path,
                  twin, line, key, other->path, k->key);
    else
        log_error("%s:%zu: the same point as in line %zu: %s; expected each once", r->path, twin, line, k->key);
    return ST_INPUT;
}

static double half_width(const struct records_point *p)
{
    return p->median_us > 0 ? (p->high_us - p->low_us) / p->median_us : 0;
}

static enum match_verdict judge(const struct match *m, double threshold)
{
    bool a = records_has_time(m->a), b = records_has_time(m->b);

    if (!a || !b)
        return a ? MATCH_FAILED : b ? MATCH_FIXED : MATCH_NO_TIME;
    if (fabs(m->change) <= threshold)
        return MATCH_SAME;
    if (m->a->low_us <= m->b->high_us && m->b->low_us <= m->a->high_us)
        return MATCH_NOISE;
    return m->change > 0 ? MATCH_SLOWER : MATCH_FASTER;
}

static void add_match(struct matches *out, const struct common *c, const struct records_point *a,
                      const struct records_point *b, double threshold)
{
    struct match *m = &out->items[out->count++];

    *m = (struct match){.a = a, .b = b, .name = print_keys(c, a, false)};
    if (records_has_time(a) && records_has_time(b)) {
        m->change = b->median_us / a->median_us - 1;
        m->spread = fmax(half_width(a), half_width(b));
    }
    m->verdict = judge(m, threshold);
    out->of[m->verdict]++;
}

static int compare_matches(const void *a, const void *b)
{
    const struct match *x = a, *y = b;

    return (x->a->line > y->a->line) - (x->a->line < y->a->line);
}

static bool has_twin(const struct side *s)
{
    return s->left > 1 && strcmp(s->next[0].key, s->next[1].key) == 0;
}

static const struct records_point *take(struct side *s)
{
    s->left--;
    return (s->next++)->point;
}

static enum status merge(const struct common *c, struct side a, struct side b, double threshold, struct matches *out)
{
    while (a.left > 0 || b.left > 0) {
        int order = a.left == 0 ? 1 : b.left == 0 ? -1 : strcmp(a.next->key, b.next->key);

        if (order == 0) {
            if (has_twin(&a))
                return refuse_twins(a.records, a.next, b.records);
            if (has_twin(&b))
                return refuse_twins(b.records, b.next, a.records);
            add_match(out, c, take(&a), take(&b), threshold);
        } else if (order < 0) {
            const struct records_point *alone = take(&a);

            if (out->only_a++ == 0 || alone->line < out->first_only_a->line)
                out->first_only_a = alone;
        } else {
            take(&b);
            out->only_b++;
        }
    }
    qsort(out->items, out->count, sizeof *out->items, compare_matches);
    return ST_OK;
}

enum status matches_find(const struct records *a, const struct records *b, double threshold, struct matches *out)
{
    struct common c = {keys_of(a), keys_of(b)};
    struct side of_a = sort_points(&c, a), of_b = sort_points(&c, b);
    enum status st;

    *out = (struct matches){.items = calloc(a->point_count + 1, sizeof *out->items)};
    assert(out->items);
    st = merge(&c, of_a, of_b, threshold, out);
    free_side(&of_a);
    free_side(&of_b);
    json_decref(c.a);
    json_decref(c.b);
    if (st < 0)
        matches_fini(out);
    return st;
}

void matches_fini(struct matches *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->items[i].name);
    free(m->items);
    *m = (struct matches){0};
}

const char *match_verdict_word(enum match_verdict v)
{
    static const char *const words[] = {"same", "noise", "faster", "slower", "failed", "fixed", "no time"};

    return words[v];
}
