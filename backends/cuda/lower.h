/* Lowering: a program becomes the tables that the interpreter reads. */
#ifndef BACKENDS_CUDA_LOWER_H
#define BACKENDS_CUDA_LOWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cuda/words.h"
#include "core/route.h"
#include "core/status.h"

/* A growing array. */
struct gpu_table {
    void *items;
    size_t count, capacity, item_bytes;
};

/* Where ranks have their memory; filled by the caller before lowering.  Window 0: in another process, on another node;
 * such a rank's tasks are left out. */
struct placement {
    uint64_t window; /* addresses */
    uint64_t flags;
    uint32_t device;
};

struct view_map { /* a tensor map to be encoded */
    uint64_t address, rows, cols;
    uint32_t box_rows;
    bool is_f32; /* else bf16 */
};

struct lowered_route {
    struct gpu_route word; /* scratch and counter are the caller's to add */
    const struct route *route;
};

/* What of a put raises a flag. */
enum lowered_by {
    LOWERED_BY_ARRIVAL = 1, /* it has come from another rank */
    LOWERED_BY_COMPLETION,  /* one of the rank's own is complete */
};

struct lowered {
    const struct program *program;
    const struct placement *ranks;
    struct gpu_table tasks; /* struct gpu_task, by rank, then queue */
    struct gpu_table links, segments, views;
    struct gpu_table maps;   /* struct view_map; copy c of a view: two, loads then stores */
    struct gpu_table routes; /* struct lowered_route */
    struct gpu_table walks;  /* segment walks known so far */
    uint32_t *first_view;    /* by rank and buffer: head of a chain through view_next */
    struct gpu_table view_next;
    uint64_t *queue_first;          /* by rank and queue: index of the first task */
    uint8_t *put_raised;            /* by rank and flag: enum lowered_by, 0: not by puts; NULL: there is one node */
    uint8_t *far_raised;            /* the same: by tasks of another device; NULL: there is one device */
    struct gpu_table *puts;         /* by rank: struct task */
    bool attends;                   /* some task is an attention */
    uint64_t kinds[GPU_KIND_COUNT]; /* tasks by enum gpu_kind */
    uint64_t put_count, activated, by_index; /* tasks */
    char why[512];
};

/* ST_OK; ST_INPUT or ST_MEMORY with the reason in out->why. */
enum status lower_program(const struct program *p, const struct placement *ranks, struct lowered *out);
unsigned lowered_needs(const struct lowered *l); /* GPU_NEEDS_* */
/* Of the tasks [first, first + count) of the table: how many links each of them has; 0: not equally many. */
uint32_t lowered_links_per_task(const struct lowered *l, uint64_t first, uint64_t count);
void lowered_free(struct lowered *l); /* safe on a zeroed one */

void *gpu_table_add(struct gpu_table *t, size_t item_bytes, const void *item); /* NULL: out of memory */

#endif
