#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "core/cli/page.h"
#include "core/log.h"

#define LINE_BYTES 4096
#define LINES_MAX 20000000
#define THREADS_MAX 100000

struct slice {
    uint32_t thread;
    double begin, length;
    json_t *event; /* owned */
};

struct timeline {
    const char *path;
    uint32_t rank;
    size_t line;
    char *names[THREADS_MAX]; /* by tid */
    struct slice *slices;
    size_t count, space;
    char title[160];
    bool ended; /* the last line was there */
};

static enum status refuse(const struct timeline *t, const char *why)
{
    if (t->line > 0)
        log_error("%s:%zu: %s; expected a trace of mkernel run --trace", t->path, t->line, why);
    else
        log_error("%s: %s; expected a trace of mkernel run --trace", t->path, why);
    return ST_INPUT;
}

/* ---- events ---- */

static void take_name(struct timeline *t, const json_t *e, uint32_t thread)
{
    const char *kind = json_string_value(json_object_get(e, "name"));
    const char *name = json_string_value(json_object_get(json_object_get(e, "args"), "name"));

    if (!kind || !name)
        return;
    if (strcmp(kind, "process_name") == 0)
        snprintf(t->title, sizeof t->title, "%.150s", name);
    if (strcmp(kind, "thread_name") != 0)
        return;
    free(t->names[thread]);
    t->names[thread] = strdup(name);
}

static enum status take_slice(struct timeline *t, json_t *e, uint32_t thread)
{
    double begin = json_number_value(json_object_get(e, "ts")), length = json_number_value(json_object_get(e, "dur"));

    if (!isfinite(begin) || !isfinite(length) || begin < 0 || length < 0 || !json_is_string(json_object_get(e, "name")))
        return refuse(t, "a slice without a time or a name");
    if (t->count == t->space) {
        t->space = t->space ? 2 * t->space : 1024;
        t->slices = realloc(t->slices, t->space * sizeof *t->slices);
        assert(t->slices);
    }
    t->slices[t->count++] = (struct slice){thread, begin, length, json_incref(e)};
    return ST_OK;
}

static enum status take_event(struct timeline *t, json_t *e)
{
    const char *kind = json_string_value(json_object_get(e, "ph"));
    json_int_t pid = json_integer_value(json_object_get(e, "pid"));
    json_int_t tid = json_integer_value(json_object_get(e, "tid"));

    if (!kind)
        return refuse(t, "an event without \"ph\"");
    if (pid != (json_int_t)t->rank)
        return ST_OK;
    if (tid < 0 || tid >= THREADS_MAX)
        return refuse(t, "a \"tid\" that is no thread's");
    if (*kind == 'M')
        take_name(t, e, (uint32_t)tid);
    return *kind == 'X' ? take_slice(t, e, (uint32_t)tid) : ST_OK;
}

static enum status take_line(struct timeline *t, char *line)
{
    size_t size = strlen(line);
    char wanted[32];
    json_t *e;
    enum status st;

    snprintf(wanted, sizeof wanted, "\"pid\":%u,", t->rank);
    if (line[0] == ']')
        t->ended = true;
    if (line[0] != '{' || t->line == 1 || !strstr(line, wanted))
        return ST_OK; /* the frame, or another rank's */
    while (size > 0 && strchr(",\r\n", line[size - 1]))
        line[--size] = 0;
    e = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    if (!e)
        return refuse(t, "not JSON");
    st = take_event(t, e);
    json_decref(e);
    return st;
}

static enum status read_trace(struct timeline *t)
{
    char line[LINE_BYTES];
    enum status st = ST_OK;
    struct stat info;
    gzFile f;

    if (stat(t->path, &info) == 0 && !S_ISREG(info.st_mode))
        return refuse(t, "is a folder, device or pipe");
    errno = 0;
    f = gzopen(t->path, "r"); /* reads plain files, too */
    if (!f)
        return refuse(t, errno ? strerror(errno) : "cannot be read");
    while (st >= 0 && gzgets(f, line, sizeof line)) {
        t->line++;
        if (t->line == 1 && strncmp(line, "{\"traceEvents\":[", 16) != 0)
            st = refuse(t, "not a trace");
        else if (strlen(line) == LINE_BYTES - 1 || t->line > LINES_MAX)
            st = refuse(t, "too long");
        else if (!strchr(line, '\n'))
            break; /* cut short, or damaged where it is compressed */
        else
            st = take_line(t, line);
    }
    gzclose(f);
    if (st >= 0 && !t->ended)
        return refuse(t, t->line > 0 ? "ends too early" : "is empty");
    return st;
}

/* ---- what is shown ---- */

/* "compute 5": the first few of a crew; "compute 0 of 123" is one by itself. */
static bool is_shown(const struct timeline *t, uint32_t thread)
{
    const char *name = t->names[thread];

    return name && strtoul(name + strcspn(name, "0123456789"), NULL, 10) < PAGE_WORKERS_MAX;
}

static int compare_slices(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;

    return (x->begin > y->begin) - (x->begin < y->begin);
}

static json_t *thread_list(const struct timeline *t, uint32_t place[THREADS_MAX])
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < THREADS_MAX; i++)
        if (is_shown(t, i)) {
            place[i] = (uint32_t)json_array_size(list);
            json_array_append_new(list, json_string(t->names[i]));
        }
    return list;
}

static json_t *slice_list(const struct timeline *t, const uint32_t place[THREADS_MAX], size_t *cut)
{
    json_t *list = json_array();

    for (size_t i = 0; i < t->count; i++) {
        const struct slice *s = &t->slices[i];
        const char *kind = json_string_value(json_object_get(s->event, "cat"));

        if (!is_shown(t, s->thread))
            continue;
        if (json_array_size(list) >= PAGE_SLICES_MAX) {
            ++*cut;
            continue;
        }
        json_array_append_new(list, json_pack("[i,f,f,i,O]", (int)place[s->thread], s->begin, s->length,
                                              kind && strcmp(kind, "wait") == 0, json_object_get(s->event, "name")));
    }
    return list;
}

static json_t *timeline_object(struct timeline *t)
{
    uint32_t *place = calloc(THREADS_MAX, sizeof *place);
    json_t *o = json_object();
    size_t cut = 0;

    assert(place);
    qsort(t->slices, t->count, sizeof *t->slices, compare_slices);
    json_object_set_new(o, "file", json_string(t->path));
    json_object_set_new(o, "rank", json_integer(t->rank));
    json_object_set_new(o, "title", json_string(t->title));
    json_object_set_new(o, "threads", thread_list(t, place));
    json_object_set_new(o, "slices", slice_list(t, place, &cut));
    json_object_set_new(o, "cut", json_integer((json_int_t)cut));
    free(place);
    return o;
}

enum status page_timeline(const char *path, uint32_t rank, json_t **out)
{
    struct timeline *t = calloc(1, sizeof *t);
    enum status st;

    assert(t);
    t->path = path;
    t->rank = rank;
    st = read_trace(t);
    if (st >= 0 && t->count == 0) {
        log_error("%s: nothing about rank %u; --rank chooses another", path, rank);
        st = ST_INPUT;
    }
    if (st >= 0)
        *out = timeline_object(t);
    for (size_t i = 0; i < t->count; i++)
        json_decref(t->slices[i].event);
    for (size_t i = 0; i < THREADS_MAX; i++)
        free(t->names[i]);
    free(t->slices);
    free(t);
    return st;
}
