/* What nccl-tests prints or writes with -J, as rows.  Results of the same point are taken together. */
#ifndef CORE_IMPORTS_NCCL_TESTS_H
#define CORE_IMPORTS_NCCL_TESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

#define NCCL_TESTS_BYTES_MAX ((size_t)64 << 20)
#define NCCL_TESTS_ROWS_MAX 100000
#define NCCL_TESTS_WORD 32

struct nccl_tests_row {
    char collective[NCCL_TESTS_WORD]; /* "all_gather" */
    char type[NCCL_TESTS_WORD], redop[NCCL_TESTS_WORD], root[NCCL_TESTS_WORD];
    uint64_t bytes;
    bool in_place;
    bool wrong;                   /* the check found wrong elements */
    double time_us, algbw, busbw; /* GB/s as nccl-tests defines them */
};

struct nccl_tests {
    struct nccl_tests_row *rows;
    size_t count, space;
    uint32_t ranks, nodes; /* of the device list; 0: there was none */
    char gpu[64], version[64];
    uint64_t iterations; /* 0: not said */
};

/* JSON when the text begins with "{".  `collective` stands in where the file does not name its test; may be
 * NULL.  ST_INPUT: logged with file:line. */
enum status nccl_tests_parse(const char *path, const char *text, size_t text_bytes, const char *collective,
                             struct nccl_tests *out);
void nccl_tests_fini(struct nccl_tests *t); /* safe on a zeroed one */

#endif
