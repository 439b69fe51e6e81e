#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/cli/page.h"
#include "core/results/result.h"

/* Files of core/cli/page become part of the program: from NAME_begin to NAME_end. */
#define EMBED(name, path)                                                                                              \
    __asm__(".section .rodata\n"                                                                                       \
            ".global " #name "_begin\n" #name "_begin:\n"                                                              \
            ".incbin \"" PAGE_FOLDER "/" path "\"\n"                                                                   \
            ".global " #name "_end\n" #name "_end:\n"                                                                  \
            ".byte 0\n"                                                                                                \
            ".previous\n");                                                                                            \
    extern const char name##_begin[], name##_end[]

EMBED(page_css, "report.css");
EMBED(page_html, "report.html");
EMBED(page_script, "report.js");
EMBED(page_charts, "charts.js");
EMBED(page_chartjs, "chartjs/chart.umd.min.js");
EMBED(page_chartjs_licence, "chartjs/LICENSE.md");

static void put(struct result_file *f, const char *begin, const char *end)
{
    fwrite(begin, 1, (size_t)(end - begin), f->file);
}

static void put_text(struct result_file *f, const char *text)
{
    put(f, text, text + strlen(text));
}

static void put_script(struct result_file *f, const char *begin, const char *end)
{
    put_text(f, "<script>\n");
    put(f, begin, end);
    put_text(f, "</script>\n");
}

/* Within a script element no text may look like its end or like a comment: "<" only occurs in strings. */
static void put_json(struct result_file *f, const json_t *data)
{
    char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(9)), *at = text;

    assert(text);
    put_text(f, "<script type=\"application/json\" id=\"data\">");
    while (*at) {
        size_t plain = strcspn(at, "<");

        put(f, at, at + plain);
        at += plain;
        if (*at) {
            put_text(f, "\\u003c");
            at++;
        }
    }
    put_text(f, "</script>\n");
    free(text);
}

/* The words are there before the library has been read: first paint does not wait for it. */
static void put_page(struct result_file *f, const json_t *data)
{
    put_text(f, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<meta name=\"color-scheme\" content=\"light dark\">\n<title>mkernel report</title>\n"
                "<link rel=\"icon\" href=\"data:,\">\n<style>\n");
    put(f, page_css_begin, page_css_end);
    put_text(f, "</style>\n</head>\n<body>\n");
    put(f, page_html_begin, page_html_end);
    put_json(f, data);
    put_script(f, page_script_begin, page_script_end);
    put_text(f, "<!-- Chart.js:\n");
    put(f, page_chartjs_licence_begin, page_chartjs_licence_end);
    put_text(f, "-->\n");
    put_script(f, page_chartjs_begin, page_chartjs_end);
    put_script(f, page_charts_begin, page_charts_end);
    put_text(f, "</body>\n</html>\n");
}

enum status page_write(const json_t *data, const char *path, char *path_out)
{
    struct result_file f;

    TRY(result_open(&f, path));
    put_page(&f, data);
    return result_commit(&f, path_out);
}
