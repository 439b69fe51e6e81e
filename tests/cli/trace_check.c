/* trace_check FILE: strict JSON, and every event as docs/trace.md says.  Prints, sorted by the caller, a line a
 * task: "0 compute gemm #3".  Fails with the reason at the first event that is wrong. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct slice {
    long pid, tid;
    double begin, end;
};

#define THREADS_MAX 100000

static char *threads[THREADS_MAX]; /* names by tid, the same on every rank */
static struct slice *slices;
static size_t slice_count;
static long arrows_open;

static void refuse(const json_t *e, const char *why)
{
    char *text = json_dumps(e, JSON_COMPACT);

    fprintf(stderr, "%s: %s\n", why, text);
    exit(EXIT_FAILURE);
}

static double number(const json_t *e, const char *key)
{
    const json_t *v = json_object_get(e, key);

    if (!json_is_number(v) || !isfinite(json_number_value(v)) || json_number_value(v) < 0)
        refuse(e, key);
    return json_number_value(v);
}

static const char *text(const json_t *e, const char *key)
{
    const char *v = json_string_value(json_object_get(e, key));

    if (!v || !*v)
        refuse(e, key);
    return v;
}

static void check_slice(const json_t *e)
{
    double ts = number(e, "ts");
    const json_t *args = json_object_get(e, "args");

    slices[slice_count++] = (struct slice){(long)number(e, "pid"), (long)number(e, "tid"), ts, ts + number(e, "dur")};
    text(args, "queue");
    if (number(args, "epoch") < 1)
        refuse(e, "epoch");
    if (strcmp(text(e, "cat"), "wait") == 0) {
        if (strncmp(text(e, "name"), "wait ", 5) != 0 || !*text(e, "cname"))
            refuse(e, "a wait's name");
    } else if (strcmp(text(e, "cat"), "task") != 0 || !strstr(text(e, "name"), " #")) {
        refuse(e, "a task's name");
    }
}

static void check_counter(const json_t *e)
{
    const char *key;
    json_t *value;

    number(e, "ts");
    json_object_foreach (json_object_get(e, "args"), key, value)
        if (!json_is_number(value) || json_number_value(value) < -1e-3)
            refuse(e, key);
}

static void check_name(const json_t *e)
{
    const json_t *args = json_object_get(e, "args");

    if (strcmp(text(e, "name"), "thread_name") == 0) {
        long tid = (long)number(e, "tid");

        if (tid >= THREADS_MAX)
            refuse(e, "tid");
        free(threads[tid]);
        threads[tid] = strdup(text(args, "name"));
    } else if (strcmp(text(e, "name"), "process_name") == 0) {
        text(args, "name");
    } else if (strcmp(text(e, "name"), "process_labels") == 0) {
        text(args, "labels");
    } else {
        refuse(e, "metadata of this name");
    }
}

static void check_event(const json_t *e)
{
    const char *kind = text(e, "ph");

    number(e, "pid");
    switch (kind[0]) {
    case 'X': check_slice(e); break;
    case 'C': check_counter(e); break;
    case 'M': check_name(e); break;
    case 's':
    case 'f':
        number(e, "id");
        number(e, "ts");
        text(e, "name");
        arrows_open += kind[0] == 's' ? 1 : -1;
        break;
    case 'b':
    case 'e':
        number(e, "id");
        text(e, "name");
        text(e, "cat");
        break;
    default: refuse(e, "ph");
    }
}

static int compare_slices(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

/* On one thread a slice lies inside another or beside it: waits are one deep. */
static void check_nesting(void)
{
    const struct slice *outer = NULL;

    qsort(slices, slice_count, sizeof *slices, compare_slices);
    for (size_t i = 0; i < slice_count; i++) {
        const struct slice *s = &slices[i];
        bool same = outer && outer->pid == s->pid && outer->tid == s->tid;

        if (same && s->begin < outer->end - 1e-9 && s->end > outer->end + 1e-6) {
            fprintf(stderr, "slices of pid %ld tid %ld overlap at %.3f us\n", s->pid, s->tid, s->begin);
            exit(EXIT_FAILURE);
        }
        if (!same || s->end > outer->end)
            outer = s;
    }
}

/* By its queue: which crew gets to it first may differ. */
static void print_task(const json_t *e)
{
    if (!threads[(long)number(e, "tid")])
        refuse(e, "a thread without a name");
    printf("%ld %s %s\n", (long)number(e, "pid"), text(json_object_get(e, "args"), "queue"), text(e, "name"));
}

static void check_head(const json_t *root)
{
    const json_t *o = json_object_get(root, "otherData");

    if (strcmp(text(root, "displayTimeUnit"), "ns") != 0 || number(o, "schema") != 1)
        refuse(o, "otherData");
    text(o, "version");
    text(o, "backend");
    text(o, "kernel");
    number(o, "dropped");
    if (!json_is_string(json_object_get(o, "left_out")))
        refuse(o, "left_out");
    fprintf(stderr, "%zu events; left out: %s\n", json_array_size(json_object_get(root, "traceEvents")),
            json_string_value(json_object_get(o, "left_out")));
}

int main(int argc, char **argv)
{
    json_error_t error = {0};
    json_t *root = argc == 2 ? json_load_file(argv[1], JSON_REJECT_DUPLICATES, &error) : NULL, *e, *events;
    size_t i;

    if (!root) {
        fprintf(stderr, "%s: not JSON: %s, line %d\n", argc == 2 ? argv[1] : "which file", error.text, error.line);
        return EXIT_FAILURE;
    }
    events = json_object_get(root, "traceEvents");
    slices = calloc(json_array_size(events) + 1, sizeof *slices);
    json_array_foreach (events, i, e)
        check_event(e);
    if (arrows_open != 0)
        refuse(root, "an arrow without its other end");
    check_nesting();
    check_head(root);
    json_array_foreach (events, i, e)
        if (strcmp(text(e, "ph"), "X") == 0 && strcmp(text(e, "cat"), "task") == 0)
            print_task(e);
    json_decref(root);
    free(slices);
    for (i = 0; i < THREADS_MAX; i++)
        free(threads[i]);
    return EXIT_SUCCESS;
}
