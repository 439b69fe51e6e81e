#include "core/cli/junit.h"

#include "core/log.h"
#include "core/results/result.h"

static void put_escaped(FILE *f, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '&' || c == '<' || c == '>' || c == '"')
            fprintf(f, "&#%d;", c);
        else if (c >= 0x20)
            fputc(c, f);
        else
            fputc(' ', f);
    }
}

static void put_case(FILE *f, const struct match *m)
{
    fprintf(f, "    <testcase classname=\"");
    put_escaped(f, m->a->kernel);
    fprintf(f, "\" name=\"");
    put_escaped(f, m->name);
    fprintf(f, "\" time=\"%.9f\">", m->b->median_us / 1e6);
    switch (m->verdict) {
    case MATCH_SLOWER:
        fprintf(f, "<failure type=\"slower\" message=\"%.2f us, was %.2f us: %+.1f %%\"/>", m->b->median_us,
                m->a->median_us, 100 * m->change);
        break;
    case MATCH_FAILED:
        fprintf(f, "<error type=\"failed\" message=\"");
        put_escaped(f, m->b->status);
        fprintf(f, "\"/>");
        break;
    case MATCH_NO_TIME: fprintf(f, "<skipped message=\"no time in either file\"/>"); break;
    default: break;
    }
    fprintf(f, "</testcase>\n");
}

enum status junit_write(const struct matches *m, const char *name, const char *path)
{
    struct result_file f;
    char final_path[RESULT_PATH_BYTES];
    enum status st = result_open(&f, path);

    if (st < 0)
        return st;
    fprintf(f.file, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"");
    put_escaped(f.file, name);
    fprintf(f.file, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\">\n", m->count,
            m->of[MATCH_SLOWER], m->of[MATCH_FAILED], m->of[MATCH_NO_TIME]);
    for (size_t i = 0; i < m->count; i++)
        put_case(f.file, &m->items[i]);
    fprintf(f.file, "  </testsuite>\n</testsuites>\n");
    st = result_commit(&f, final_path);
    if (st >= 0)
        log_info("junit: %s", final_path);
    return st;
}
