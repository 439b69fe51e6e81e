#include "kernels/reference.h"

#include <assert.h>
#include <stdlib.h>

#include "core/check.h"

#define PRODUCTS_MAX 256 /* of +-1: no partial sum, in any order, leaves the integers that bf16 holds */

/* The non-zero elements of B[col .. col + cols, k], sorted by k: those of k stand from head[k] on.
 */
struct nonzero {
    uint32_t col;
    int32_t value;
};

struct nonzeros {
    uint64_t *head; /* k + 1 of them */
    struct nonzero *list;
};

static void *allocate(uint64_t count, size_t size)
{
    void *p = calloc(count + 1, size);

    assert(p); /* promised by check_memory_bytes() */
    return p;
}

/* Counts per k (list NULL) or places the elements of B's rows. */
static void scan_b(const struct problem *g, uint64_t seed, uint64_t epoch, uint64_t col, uint64_t cols, int8_t *row,
                   uint64_t *position, struct nonzero *list)
{
    for (uint64_t j = 0; j < cols; j++) {
        tensor_row(seed, epoch, TENSOR_B, g->k, col + j, 0, g->k, row);
        for (uint64_t k = 0; k < g->k; k++) {
            if (row[k] == 0)
                continue;
            if (list)
                list[position[k]] = (struct nonzero){.col = (uint32_t)j, .value = row[k]};
            position[k]++;
        }
    }
}

static void build_b(const struct problem *g, uint64_t seed, uint64_t epoch, uint64_t col, uint64_t cols, int8_t *row,
                    struct nonzeros *out)
{
    out->head = allocate(g->k + 1, sizeof *out->head);
    scan_b(g, seed, epoch, col, cols, row, out->head + 1, NULL);
    for (uint64_t k = 0; k < g->k; k++)
        out->head[k + 1] += out->head[k];
    out->list = allocate(out->head[g->k], sizeof *out->list);

    scan_b(g, seed, epoch, col, cols, row, out->head, out->list);
    for (uint64_t k = g->k; k > 0; k--) /* each head has moved to the next one's place */
        out->head[k] = out->head[k - 1];
    out->head[0] = 0;
}

static void multiply_row(const struct problem *g, const int8_t *a, const struct nonzeros *b, uint64_t cols,
                         int32_t *sum, uint32_t *products, int16_t *out)
{
    for (uint64_t j = 0; j < cols; j++)
        sum[j] = 0, products[j] = 0;
    for (uint64_t k = 0; k < g->k; k++) {
        if (a[k] == 0)
            continue;
        for (uint64_t i = b->head[k]; i < b->head[k + 1]; i++) {
            sum[b->list[i].col] += a[k] * b->list[i].value;
            products[b->list[i].col]++;
        }
    }
    for (uint64_t j = 0; j < cols; j++) {
        assert(products[j] <= PRODUCTS_MAX);
        out[j] = (int16_t)sum[j];
    }
}

void reference_gemm(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                    uint64_t col, uint64_t cols, int16_t *out)
{
    int8_t *line = allocate(global->k, sizeof *line);
    int32_t *sum = allocate(cols, sizeof *sum);
    uint32_t *products = allocate(cols, sizeof *products);
    struct nonzeros b;

    assert(cols <= UINT32_MAX);
    build_b(global, seed, epoch, col, cols, line, &b);
    for (uint64_t i = 0; i < rows; i++) {
        tensor_row(seed, epoch, TENSOR_A, global->k, row + i, 0, global->k, line);
        multiply_row(global, line, &b, cols, sum, products, out + i * cols);
    }
    free(b.list);
    free(b.head);
    free(products);
    free(sum);
    free(line);
}
