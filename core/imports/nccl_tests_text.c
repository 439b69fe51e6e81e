#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/imports/nccl_tests_rows.h"

#define LINE_MAX_BYTES 1024
#define TOKENS_MAX 24

/* ---- numbers ---- */

static enum status number(const struct nccl_tests_reader *r, const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    if (end == text || *end)
        return nccl_tests_refuse(r, "expected a number, found", text);
    return ST_OK;
}

static enum status bytes(const struct nccl_tests_reader *r, const char *text, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || *out > 1ull << 50)
        return nccl_tests_refuse(r, "expected a size in bytes, found", text);
    return ST_OK;
}

/* "0", "N/A" where nothing was checked */
static enum status wrong(const struct nccl_tests_reader *r, const char *text, bool *out)
{
    double count;

    *out = false;
    if (strcmp(text, "N/A") == 0)
        return ST_OK;
    TRY(number(r, text, &count));
    *out = count > 0;
    return ST_OK;
}

/* ---- rows ---- */

/* time, algbw, busbw, #wrong */
static enum status take_group(struct nccl_tests_reader *r, char *const words[4], struct nccl_tests_row *row,
                              bool in_place)
{
    row->in_place = in_place;
    TRY(number(r, words[0], &row->time_us));
    TRY(number(r, words[1], &row->algbw));
    TRY(number(r, words[2], &row->busbw));
    TRY(wrong(r, words[3], &row->wrong));
    return nccl_tests_row_add(r, row);
}

static void word(char out[NCCL_TESTS_WORD], const char *text)
{
    snprintf(out, NCCL_TESTS_WORD, "%s", text);
}

/* size count type [redop [root]] and one or two groups of four: older versions leave columns empty, replays
 * print in-place results alone.  A time stamp is two words more. */
static enum status take_row(struct nccl_tests_reader *r, char *const words[], size_t count)
{
    struct nccl_tests_row row = {0};
    size_t named, groups;

    if (count >= 2 && strchr(words[count - 1], ':') && strchr(words[count - 2], '-'))
        count -= 2;
    named = count >= 11 ? count - 8 : count >= 7 && count <= 9 ? count - 4 : 0;
    groups = named ? (count - named) / 4 : 0;
    if (named < 3 || named > 5)
        return nccl_tests_refuse(r,
                                 "expected size, count, type, redop, root and twice time, algbw, busbw, "
                                 "#wrong",
                                 NULL);
    word(row.collective, r->collective);
    TRY(bytes(r, words[0], &row.bytes));
    word(row.type, words[2]);
    word(row.redop, named > 3 ? words[3] : "none");
    word(row.root, named > 4 ? words[4] : "-1");
    for (size_t i = 0; i < groups; i++)
        TRY(take_group(r, words + named + 4 * i, &row, i + 1 == groups));
    return ST_OK;
}

/* ---- comments ---- */

static void take_version(struct nccl_tests *t, const char *line)
{
    const char *version = strstr(line, "nccl-tests version ");

    if (version)
        snprintf(t->version, sizeof t->version, "%.63s", version);
}

/* "... warmup iters: 5 iters: 20 agg iters: 1 ..." */
static void take_iterations(struct nccl_tests *t, const char *line)
{
    const char *warmup = strstr(line, "warmup iters: ");
    unsigned long iterations;

    if (warmup && sscanf(warmup, "warmup iters: %*u iters: %lu", &iterations) == 1 && iterations <= 1000000000)
        t->iterations = iterations;
}

static enum status take_comment(struct nccl_tests_reader *r, const char *line)
{
    unsigned rank, group, pid, device;
    char host[64], gpu[64] = "";
    const char *at;

    take_version(r->out, line);
    if ((at = strstr(line, "Collective test starting: ")))
        nccl_tests_name(r, at + strlen("Collective test starting: "));
    take_iterations(r->out, line);
    if (sscanf(line, "# Rank %u Group %u Pid %u on %63s device %u [%*[^]]] %63[^\r\n]", &rank, &group, &pid, host,
               &device, gpu) >= 5)
        return nccl_tests_device(r, host, gpu);
    if (sscanf(line, "# Rank %u Pid %u on %63s device %u [%*[^]]] %63[^\r\n]", &rank, &pid, host, &device, gpu) >= 4)
        return nccl_tests_device(r, host, gpu);
    return ST_OK;
}

/* ---- lines ---- */

static size_t split(char *line, char *words[TOKENS_MAX])
{
    static const char space[] = " \t\r\n";
    size_t count = 0;
    char *save, *w = strtok_r(line, space, &save);

    for (; w && count < TOKENS_MAX; w = strtok_r(NULL, space, &save))
        words[count++] = w;
    return count;
}

/* What else mpirun and NCCL print between is passed over: only rows begin with a digit. */
static enum status take_line(struct nccl_tests_reader *r, char *line)
{
    char *words[TOKENS_MAX], *at = line + strspn(line, " \t");
    size_t count;

    if (*at == '#')
        return take_comment(r, at);
    if (*at < '0' || *at > '9')
        return ST_OK;
    count = split(at, words);
    return take_row(r, words, count);
}

enum status nccl_tests_read_text(struct nccl_tests_reader *r, const char *text, size_t text_bytes)
{
    const char *end = text + text_bytes;

    while (text < end) {
        const char *next = memchr(text, '\n', (size_t)(end - text));
        size_t size = next ? (size_t)(next - text) : (size_t)(end - text);
        char line[LINE_MAX_BYTES];

        r->line++;
        snprintf(line, sizeof line, "%.*s", (int)(size < sizeof line ? size : sizeof line - 1), text);
        TRY(take_line(r, line));
        text += size + (next != NULL);
    }
    return ST_OK;
}
