/* What both forms of nccl-tests' output are read with. */
#ifndef CORE_IMPORTS_NCCL_TESTS_ROWS_H
#define CORE_IMPORTS_NCCL_TESTS_ROWS_H

#include "core/imports/nccl_tests.h"

struct nccl_tests_reader {
    const char *path;
    size_t line;
    struct nccl_tests *out;
    char collective[NCCL_TESTS_WORD]; /* of the rows to come; "": not known */
    char hosts[64][64];
};

/* Logs; returns ST_INPUT. */
enum status nccl_tests_refuse(const struct nccl_tests_reader *r, const char *what, const char *value);

/* ".../all_gather_perf" is all_gather; anything else leaves it as it is. */
void nccl_tests_name(struct nccl_tests_reader *r, const char *program);

/* A GPU of the device list. */
enum status nccl_tests_device(struct nccl_tests_reader *r, const char *host, const char *gpu);

/* Checks that the numbers can be, and that they fit each other. */
enum status nccl_tests_row_add(struct nccl_tests_reader *r, const struct nccl_tests_row *row);

/* ---- nccl_tests_text.c, nccl_tests_json.c ---- */

enum status nccl_tests_read_text(struct nccl_tests_reader *r, const char *text, size_t text_bytes);
enum status nccl_tests_read_json(struct nccl_tests_reader *r, const char *text, size_t text_bytes);

#endif
