/* Inside lowering: a task on its way, and what lower_*.c do for it. */
#ifndef BACKENDS_CUDA_LOWER_TASK_H
#define BACKENDS_CUDA_LOWER_TASK_H

#include <stdbool.h>

#include "backends/cuda/lower.h"

#define NO_VIEW GPU_NO_VIEW

struct lowering {
    struct lowered *out;
    const struct task *task;
    uint32_t rank, queue;
    uint64_t index;
    struct gpu_task word;
};

/* ---- lower.c ---- */

/* ST_INPUT, with the task named in out->why. */
enum status lower_refuse(struct lowering *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
enum status lower_out_of_memory(struct lowered *out);

#define ADD(lowered, table, type, item)                                                                                \
    do {                                                                                                               \
        if (!gpu_table_add(&(lowered)->table, sizeof(type), (item)))                                                   \
            return lower_out_of_memory(lowered);                                                                       \
    } while (0)

/* ---- lower_views.c ---- */

const struct gpu_view *lower_view(const struct lowered *out, uint32_t view);
uint64_t lower_view_rows(const struct lowered *out, uint32_t buffer, uint64_t ld);
/* From one epoch's copy to the next. */
uint64_t lower_copy_bytes(const struct program *p, uint32_t buffer);
/* An operand of `owner`, `extra` elements on, as a place in a view. */
enum status lower_place(struct lowering *l, const struct operand *o, uint32_t owner, uint64_t extra,
                        struct gpu_matrix *m_out);

/* ---- lower_links.c: what stands behind the task, in this order ---- */

enum status lower_waits(struct lowering *l);
enum status lower_targets(struct lowering *l);
enum status lower_addends(struct lowering *l);
enum status lower_signals(struct lowering *l);
enum status lower_wait(struct lowering *l, const struct wait *w, struct gpu_wait *out);
enum status lower_addend(struct lowering *l, const struct operand *o, uint32_t more);

/* ---- lower_dynamic.c ---- */

enum status lower_indexed(struct lowering *l);     /* gathers, combines */
enum status lower_check_index(struct lowering *l); /* all that read rows by index */
enum status lower_route(struct lowering *l);
/* What stands behind the signals of a task that looks into control buffers. */
enum status lower_dynamic(struct lowering *l);

/* ---- lower_segments.c ---- */

enum status lower_segments(struct lowering *l);

/* ---- lower_attention.c ---- */

enum status lower_attention(struct lowering *l);
enum status lower_attention_links(struct lowering *l); /* in the place of addends */

/* ---- lower_kind.c ---- */

/* Whether the result goes to all its targets by tensor map, as bf16 or with `wide` as f32. */
bool lower_stores_by_map(struct lowering *l, bool wide);

enum gpu_kind lower_gemm_kind(struct lowering *l, const struct gpu_matrix *a, const struct gpu_matrix *b);
enum gpu_kind lower_move_kind(const struct lowering *l);

#endif
