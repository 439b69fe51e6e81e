/* goal_check FILE: a GOAL schedule as txt2bin of LogGOPSim reads it: labels defined before they are required,
 * every message sent once and received once with the same size, and an order in which everything can happen.
 * Prints the longest chain of calcs in ns. */
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPS_MAX 4000000
#define EDGES_MAX 16000000
#define NONE UINT32_MAX

enum kind { CALC, SEND, RECV };

struct op {
    enum kind kind;
    uint32_t rank, peer, tag;
    uint64_t size, end; /* end: longest chain of calcs up to and including it */
    uint32_t first_edge, waiting;
};

struct edge {
    uint32_t to, next;
};

static struct op *ops;
static uint32_t op_count, edge_count, rank_count;
static struct edge *edges;

/* Labels of the rank in hand: a letter and a number. */
static uint32_t *labels[26], label_space[26];
static size_t line_number;

static void refuse(const char *what, const char *line)
{
    fprintf(stderr, "line %zu: %s: %s\n", line_number, what, line);
    exit(EXIT_FAILURE);
}

static uint32_t *label_slot(const char *label)
{
    unsigned letter = (unsigned)(label[0] - 'a'), number = (unsigned)strtoul(label + 1, NULL, 10);

    if (letter >= 26 || !isdigit((unsigned char)label[1]))
        refuse("not a label", label);
    if (number >= label_space[letter]) {
        uint32_t space = 2 * number + 1024;

        labels[letter] = realloc(labels[letter], space * sizeof(uint32_t));
        for (uint32_t i = label_space[letter]; i < space; i++)
            labels[letter][i] = NONE;
        label_space[letter] = space;
    }
    return &labels[letter][number];
}

static void forget_labels(void)
{
    for (int i = 0; i < 26; i++)
        for (uint32_t k = 0; k < label_space[i]; k++)
            labels[i][k] = NONE;
}

static void connect(uint32_t from, uint32_t to)
{
    if (edge_count == EDGES_MAX)
        refuse("too many dependencies", "");
    edges[edge_count] = (struct edge){to, ops[from].first_edge};
    ops[from].first_edge = edge_count++;
    ops[to].waiting++;
}

/* ---- lines ---- */

static void take_op(const char *label, const char *rest, const char *line, uint32_t rank)
{
    struct op o = {.rank = rank, .first_edge = NONE};
    unsigned cpu, nic;
    int end = -1;

    if (sscanf(rest, "calc %" SCNu64 " cpu %u%n", &o.size, &cpu, &end) == 2)
        o.kind = CALC;
    else if (sscanf(rest, "send %" SCNu64 "b to %u tag %u cpu %u nic %u%n", &o.size, &o.peer, &o.tag, &cpu, &nic,
                    &end) == 5)
        o.kind = SEND;
    else if (sscanf(rest, "recv %" SCNu64 "b from %u tag %u cpu %u nic %u%n", &o.size, &o.peer, &o.tag, &cpu, &nic,
                    &end) == 5)
        o.kind = RECV;
    if (end < 0 || rest[end] || cpu > 255)
        refuse("not an operation", line);
    if (o.kind != CALC && (nic > 255 || o.peer >= rank_count || o.peer == rank))
        refuse("not an operation", line);
    if (*label_slot(label) != NONE || op_count == OPS_MAX)
        refuse("a label for the second time", line);
    *label_slot(label) = op_count;
    ops[op_count++] = o;
}

static void take_line(char *line, uint32_t *rank)
{
    char a[32], b[32], *colon;

    line[strcspn(line, "\n")] = 0;
    if (!*line || strncmp(line, "//", 2) == 0)
        return;
    if (sscanf(line, "num_ranks %u", &rank_count) == 1)
        return;
    if (sscanf(line, "rank %u {", rank) == 1) {
        forget_labels();
        return;
    }
    if (strcmp(line, "}") == 0)
        return;
    if (sscanf(line, "%31s requires %31s", a, b) == 2) {
        if (*label_slot(a) == NONE || *label_slot(b) == NONE)
            refuse("a label that is not defined", line);
        connect(*label_slot(b), *label_slot(a));
        return;
    }
    colon = strchr(line, ':');
    if (!colon || colon[1] != ' ' || colon - line > 30)
        refuse("neither operation nor dependency", line);
    snprintf(a, sizeof a, "%.*s", (int)(colon - line), line);
    take_op(a, colon + 2, line, *rank);
}

/* ---- the whole ---- */

static int compare_messages(const void *x, const void *y)
{
    const struct op *a = &ops[*(const uint32_t *)x], *b = &ops[*(const uint32_t *)y];
    uint32_t fa = a->kind == SEND ? a->rank : a->peer, fb = b->kind == SEND ? b->rank : b->peer;
    uint32_t ta = a->kind == SEND ? a->peer : a->rank, tb = b->kind == SEND ? b->peer : b->rank;

    if (fa != fb)
        return fa < fb ? -1 : 1;
    if (ta != tb)
        return ta < tb ? -1 : 1;
    if (a->tag != b->tag)
        return a->tag < b->tag ? -1 : 1;
    return (int)a->kind - (int)b->kind;
}

static void match_messages(void)
{
    uint32_t *list = malloc((op_count + 1) * sizeof *list), count = 0;

    for (uint32_t i = 0; i < op_count; i++)
        if (ops[i].kind != CALC)
            list[count++] = i;
    qsort(list, count, sizeof *list, compare_messages);
    for (uint32_t i = 0; i < count; i += 2) {
        const struct op *s = &ops[list[i]], *r = i + 1 < count ? &ops[list[i + 1]] : NULL;

        if (!r || s->kind != SEND || r->kind != RECV || s->peer != r->rank || s->rank != r->peer || s->tag != r->tag ||
            s->size != r->size) {
            fprintf(stderr, "rank %u tag %u: sent and received do not match\n", s->rank, s->tag);
            exit(EXIT_FAILURE);
        }
        connect(list[i], list[i + 1]);
    }
    free(list);
}

static uint64_t order(void)
{
    uint32_t *ready = malloc((op_count + 1) * sizeof *ready), first = 0, count = 0;
    uint64_t longest = 0;

    for (uint32_t i = 0; i < op_count; i++)
        if (ops[i].waiting == 0)
            ready[count++] = i;
    while (first < count) {
        struct op *o = &ops[ready[first++]];

        o->end += o->kind == CALC ? o->size : 0;
        longest = o->end > longest ? o->end : longest;
        for (uint32_t e = o->first_edge; e != NONE; e = edges[e].next) {
            struct op *next = &ops[edges[e].to];

            next->end = o->end > next->end ? o->end : next->end;
            if (--next->waiting == 0)
                ready[count++] = edges[e].to;
        }
    }
    free(ready);
    if (count < op_count) {
        fprintf(stderr, "%u of %u operations wait for each other\n", op_count - count, op_count);
        exit(EXIT_FAILURE);
    }
    return longest;
}

int main(int argc, char **argv)
{
    FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
    char line[512];
    uint32_t rank = 0;
    uint64_t longest;

    ops = calloc(OPS_MAX, sizeof *ops);
    edges = calloc(EDGES_MAX, sizeof *edges);
    if (!f || !ops || !edges)
        return EXIT_FAILURE;
    while (fgets(line, sizeof line, f)) {
        line_number++;
        take_line(line, &rank);
    }
    fclose(f);
    match_messages();
    longest = order();
    printf("%" PRIu64 "\n", longest);
    fprintf(stderr, "%u ranks, %u operations, %u dependencies\n", rank_count, op_count, edge_count);
    for (int i = 0; i < 26; i++)
        free(labels[i]);
    free(ops);
    free(edges);
    return rank_count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
