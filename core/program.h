/* The task language: a fused multi-GPU kernel as data.
 *
 * A program is, per rank, a set of queues of tile-sized tasks that wait for flags and signal flags.
 * It is never stored: `queue_length` and `task` generate it, so memory follows what is in flight.
 * The same program is printed (cli/show), run on threads (backends/cpu), timed on a model
 * (backends/sim).  docs/task-language.md is the tutorial; this header is the contract.
 *
 * Window.  Every rank owns the same buffers and flags.  Inside a node any rank may read and write a
 *   peer's buffers; between nodes only OP_PUT crosses.
 * Flag.  A 64-bit counter, monotonic, never reset.  Only the owner waits for it; anyone signals it.
 *   Per epoch it receives exactly flag_total() in sum.  All signals of an epoch happen before all
 *   signals of the next epoch on that flag.
 * Epoch.  Counted from 1.  On one rank all tasks of epoch e are complete before any of e + 1 starts
 *   (launches of one stream); between ranks only signals order anything.
 * Order.  Only signal -> wait orders data, ever.  Queue order, crew sizes and worker identity do not.
 *
 * Offsets, leading dimensions and extents count elements of the buffer's type, in 64 bits. */
#ifndef CORE_PROGRAM_H
#define CORE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/problem.h"
#include "core/world.h"

/* A buffer of DTYPE_I32 is a *control* buffer (routing tables, counts, index lists, work lists): it holds real
 * contents in every backend and mode, timing without data included. */
enum dtype { DTYPE_BF16, DTYPE_F32, DTYPE_I32 };

#define NO_BUFFER UINT32_MAX

/* A matrix in every rank's window.  With depth d, epoch e uses copy e mod d. */
struct buffer {
    const char *name;
    enum dtype dtype;
    uint64_t rows, cols; /* cols is the leading dimension */
    uint32_t depth;
};

/* A named run of flags, so that reports can say "ready[17]". */
struct flag_group {
    const char *name;
    uint32_t first, count;
};

/* Target of a store or a signal: every rank of the executing rank's node, itself included.  Uses the
 * switch's multicast where the machine has it and is unrolled elsewhere; a copy of bytes onto
 * themselves is nothing. */
#define RANK_NODE UINT32_MAX

/* Target of a store: the same ranks, by one store to each, never through multicast.  A multicast leaves the sender once
 * but also enters the sender itself. */
#define RANK_EACH (UINT32_MAX - 1)

struct operand {
    uint32_t rank; /* or RANK_NODE or RANK_EACH in targets, RANK_NODE in a REDUCE's addend */
    uint32_t buffer;
    uint64_t offset; /* elements from the start of the epoch's copy */
    uint64_t ld;     /* elements from one row to the next */
};

/* When a wait must be satisfied.  All writes of a task are complete at their readers before it signals. */
enum wait_phase {
    WAIT_ENTRY, /* before any access */
    WAIT_LATE,  /* only before addends are read and results written */
};

#define FLAG_TOTAL UINT64_MAX /* as a wait's value: the flag's declared total per epoch */

/* Satisfied in epoch e when each of `count` flags from `flag` on has reached
 * (e - lag - 1) * total + value; always satisfied while e <= lag.  Flags are the waiter's own. */
struct wait {
    uint32_t flag;
    uint32_t count; /* 0: no wait */
    uint32_t lag;
    enum wait_phase phase;
    uint64_t value; /* 1..total, or FLAG_TOTAL */
};

struct signal {
    uint32_t rank; /* or RANK_NODE */
    uint32_t flag;
    uint64_t add;
};

/* One stretch of a main loop, over k of a GEMM or over the keys of an attention: a task walks
 * `segment_count` segments of a table from `segment_first` on, wrapping at the table's end, and reads
 * segment s only once its wait is met. */
struct segment {
    uint64_t k;                  /* steps of the reduction in this segment, in elements; ATTENTION: keys */
    uint64_t a_offset, b_offset; /* added to the task's operand offsets */
    uint64_t position;           /* ATTENTION: of the segment's first key in the sequence */
    struct wait wait;
};

/* Dynamic work: where a task finds out, once its entry waits are met, how much of it there is.  What a
 * task says itself is then the most that it can be, and memory is planned for that. */
enum select_mode {
    SELECT_ALL,   /* nothing to find out: the task is as it stands */
    SELECT_COUNT, /* `buffer` [., 1] holds at row `entry` how many rows there are; the task takes those
                     from `skip` on, at most m, where its operands stand */
    SELECT_ENTRY, /* `buffer` [., 3] is a work list: row `entry` is {group, first, rows}.  The task takes
                     rows [skip, skip + m) of it, as far as they exist: the `index`, every target and a GEMM's
                     `a`, if its rows are not found by index, move down by first + skip rows, a GEMM's `b` by
                     group * b_step elements */
    SELECT_GROUP, /* The same rows of the same kind of list, where the task's operands stand: of them a GEMM's
                     `b` alone moves, by group * b_step elements.  For lists whose entries have a place each,
                     route->aligned */
};

/* The control buffer is the own rank's.  Nothing selected: only waits and signals are left. */
struct selection {
    enum select_mode mode;
    uint32_t buffer;
    uint64_t entry, skip, b_step;
};

/* An index value that names no row: what OP_COMBINE_ROWS leaves out of a sum. */
#define INDEX_DROPPED (-1)

/* Before a task reads the row that index value v names, flag `first` + v / `rows_per_flag` must have its
 * total. */
struct indexed_wait {
    uint32_t first, count; /* count 0: no such wait */
    uint64_t rows_per_flag;
};

struct route; /* core/route.h */

enum op {
    OP_NOP,          /* waits and signals only */
    OP_GEMM,         /* out[m, n] = a[m, k] x b[n, k]^T (+ addends); f32 sums, one rounding at the store */
    OP_COPY,         /* out[m, n] = a[m, n] */
    OP_REDUCE,       /* out[m, n] = sum of the addends, f32 in index order, one rounding at the store.  With addend.rank
                        RANK_NODE they are the same place on every GPU of the node, which the switch adds on their way
                        where the machine has that, in an order of its own; elsewhere each is read */
    OP_PUT,          /* m x n elements, contiguous, to the one target on another node */
    OP_ATTENTION,    /* out[m, n] = softmax(q[m, n] x keys[k, n]^T / sqrt(n)) x values[k, n] */
    OP_GATHER_ROWS,  /* out[i, n] = a[index[i], n] for m rows; index values are below index_limit.  a.rank RANK_NODE:
                        the node's copies of the buffer stacked, row v is row v % rows of GPU v / rows */
    OP_ROUTE,        /* from a routing table to counts, index lists and work lists: core/route.h */
    OP_COMBINE_ROWS, /* out[i, n] = sum over j of weight[i, j] * a[index[i, j], n] for m rows; f32 products and
                        sums from 0 on in order of j, one rounding at the store; `a` and the index values as in
                        GATHER_ROWS, but INDEX_DROPPED names no row: that term is neither read nor waited for,
                        and a sum without any term is 0.  A backend may fuse a product with its sum */
};

/* Whether the op has a main loop: segment tables, late waits, and addends that are read late. */
static inline bool op_walks(enum op op)
{
    return op == OP_GEMM || op == OP_ATTENTION;
}

#define TASK_TARGETS_MAX 2
#define TASK_WAITS_MAX 4
#define TASK_SIGNALS_MAX 2

#define NO_TABLE UINT32_MAX

/* The rest of an ATTENTION task, which attends from m queries of one head, n elements each, to the keys
 * at `a` and the values at `b`, in f32: scores, their running maximum and sum, and the running result, one
 * rounding at the store.  A backend may round the weights to bf16 before they meet the values.
 *
 * With `causal` a query sees the keys up to its own position, and program_step() cuts a segment behind the
 * last query's.  A task without any key it sees gives 0 and a log-sum-exp of minus infinity.
 *
 * Tasks may share the keys of one result: the first leaves its result and `lse` in f32, each next one takes
 * up what the one before left (addend_count 1: the result so far at `addend`, and lse) and merges its own
 * share into it.  A result may overwrite the addend it was made from. */
struct attention {
    struct operand q;
    uint64_t position; /* of the first query in the sequence; the others follow it */
    bool causal;
    bool leaves;        /* writes lse, for a next task */
    struct operand lse; /* f32 [m, 1]: logarithm of the sum of exp(score) over the keys so far */
};

/* What a GEMM makes of its sums, in f32, before the one rounding at the store.
 *
 * EPILOGUE_SWIGLU: out[i, j] = g / (1 + exp(-g)) * u, where g and u are two sums of row i: `b` has 2 n rows, in
 * groups of 2 * SWIGLU_GROUP that give SWIGLU_GROUP columns of the result, first the gate rows of these columns,
 * then their up rows:
 *
 *   column j:  gate row 2 g + c,  up row 2 g + w + c,  where c = j % SWIGLU_GROUP, g = j - c,
 *              w = min(SWIGLU_GROUP, n - g)
 *
 * Only the last group of a task can be narrower (w < SWIGLU_GROUP); a task's columns begin at a multiple of
 * SWIGLU_GROUP.  So a tile of 128 x 256 sums gives 128 x 128 results, and one that holds eight columns of a row in
 * a row of registers (as wgmma does) finds gate and up in the same thread.  No addends. */
enum epilogue { EPILOGUE_NONE, EPILOGUE_SWIGLU };

#define SWIGLU_GROUP 8

/* The rest of a COMBINE_ROWS task. */
struct combine {
    uint64_t terms;        /* columns of the index list: rows that a sum has at most */
    bool weighted;         /* false: every weight is 1 */
    struct operand weight; /* f32 [m, terms] of the own rank */
};

/* One tile's worth of work.
 *
 * OP_PUT: n may be 0 (a bare signal).  signals[] holds exactly one signal to the target's rank, which
 * becomes visible there only after this put's own data and is that flag's only signal per epoch;
 * nothing is promised between two puts.  A signal to the own rank fires when the put is complete: data and
 * signal are delivered (an RDMA completion says so) and the source may be overwritten.  Only by waiting for
 * that is a put of the next epoch kept from overtaking this one. */
struct task {
    enum op op;
    uint64_t m, n, k;
    struct operand a, b;
    uint32_t segment_table; /* main loops only; NO_TABLE: one segment of k without a wait */
    uint32_t segment_first, segment_count;

    struct operand out[TASK_TARGETS_MAX]; /* the same result to each */
    uint32_t out_count;

    struct operand addend;      /* GEMM: tiles added in f32, in index order; REDUCE: the sources;
                                   ATTENTION: at most one, the result so far */
    uint64_t addend_stride;     /* elements between the starts of two addends */
    uint32_t addend_count;      /* RANK_NODE: the node's GPUs */
    struct attention attention; /* ATTENTION only */
    enum epilogue epilogue;     /* GEMM only */
    struct combine combine;     /* COMBINE_ROWS only */

    struct selection select;
    bool by_index;               /* GEMM: row i of `a`, of bf16, is the row of it that index[i] names, found as
                                    GATHER_ROWS finds it; no segment table */
    struct operand index;        /* of a control buffer of the own rank; COMBINE_ROWS: [m, terms], else [m, 1] */
    uint64_t index_limit;        /* index values are below this */
    struct indexed_wait indexed; /* what task_indexes(): the own rank's flags */
    const struct route *route;   /* ROUTE; lives as long as the program */

    struct wait waits[TASK_WAITS_MAX];
    uint32_t wait_count;
    struct signal signals[TASK_SIGNALS_MAX];
    uint32_t signal_count;
};

/* Whether the task reads rows that an index list names: indexed waits. */
static inline bool task_indexes(const struct task *t)
{
    return t->op == OP_GATHER_ROWS || t->op == OP_COMBINE_ROWS || (t->op == OP_GEMM && t->by_index);
}

/* An ordered list of tasks; whichever worker of whichever crew lists it comes next pops the next one. */
struct queue {
    const char *name;
};

#define CREW_QUEUES_MAX 6

/* `workers` CTAs (threads, simulated SMs) per rank that drain `queues` in the order given. */
struct crew {
    const char *name;
    uint32_t workers;
    uint32_t queues[CREW_QUEUES_MAX];
    uint32_t queue_count;
};

/* Before the first task of an epoch the rank's inputs are written, after its last one its outputs are
 * read.  A slice says which part of a global tensor stands where: element (i, j) of the slice is
 * tensor[tensor_row + i, tensor_col + j]. */
struct io_slice {
    enum { IO_INPUT, IO_OUTPUT } role;
    uint32_t buffer;
    uint64_t row, rows, cols; /* rows [row, row + rows) of the buffer, from column 0 */
    uint32_t tensor;          /* meaning belongs to the kernel: TENSOR_A, TENSOR_B, TENSOR_C */
    uint64_t tensor_row, tensor_col;
};

#define NO_FLAG UINT32_MAX

/* Per rank.  Generators refuse problems that would need more. */
#define PROGRAM_FLAGS_MAX (1u << 30)

#define PROGRAM_BUFFERS_MAX 24
#define PROGRAM_FLAG_GROUPS_MAX 20
#define PROGRAM_QUEUES_MAX 10
#define PROGRAM_CREWS_MAX 6
#define PROGRAM_IO_MAX 16

struct program;

/* What a kernel's generator supplies; all are pure functions of their arguments. */
struct program_ops {
    uint64_t (*queue_length)(const struct program *p, uint32_t rank, uint32_t queue);
    /* Fills a zeroed *t. */
    void (*task)(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *t);
    uint64_t (*flag_total)(const struct program *p, uint32_t rank, uint32_t flag);
    uint32_t (*io)(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX]);
    /* NULL where no task names a segment table. */
    uint32_t (*segment_table_size)(const struct program *p, uint32_t rank, uint32_t table);
    void (*segment)(const struct program *p, uint32_t rank, uint32_t table, uint32_t index, struct segment *out);
    /* Frees `state`; NULL where there is none. */
    void (*fini)(struct program *p);
};

struct program {
    const char *kernel, *variant;
    struct world world;
    const struct program_ops *ops;
    void *state; /* the generator's own */

    struct buffer buffers[PROGRAM_BUFFERS_MAX];
    uint32_t buffer_count;
    struct flag_group flag_groups[PROGRAM_FLAG_GROUPS_MAX];
    uint32_t flag_group_count;
    uint32_t flag_count;
    struct queue queues[PROGRAM_QUEUES_MAX];
    uint32_t queue_count;
    struct crew crews[PROGRAM_CREWS_MAX];
    uint32_t crew_count;
};

/* ---- building (generators) ---- */

/* Each returns the index of what it added. */
uint32_t program_add_buffer(struct program *p, struct buffer b);
/* The first flag; with count 0 adds nothing and returns NO_FLAG. */
uint32_t program_add_flags(struct program *p, const char *name, uint64_t count);
uint32_t program_add_queue(struct program *p, const char *name);
uint32_t program_add_crew(struct program *p, const char *name, uint32_t workers);
void program_crew_drains(struct program *p, uint32_t crew, uint32_t queue);
void program_fini(struct program *p); /* safe on a zeroed program */

void task_wait(struct task *t, uint32_t flag, uint32_t count, uint64_t value);
void task_wait_late(struct task *t, uint32_t flag, uint32_t count, uint64_t value);
void task_wait_as(struct task *t, struct wait w); /* any phase and lag */
void task_signal(struct task *t, uint32_t rank, uint32_t flag, uint64_t add);
void task_store_to(struct task *t, struct operand target);

/* ---- reading (everyone) ---- */

uint64_t program_queue_length(const struct program *p, uint32_t rank, uint32_t queue);
void program_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *out);
uint64_t program_flag_total(const struct program *p, uint32_t rank, uint32_t flag);
uint32_t program_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX]);

/* Number of segments a task walks (1 without a table), and its `step`th with absolute operands: a and b
 * point at the segment's data.  Of an ATTENTION's segment only the keys that some query sees are left. */
uint32_t program_step_count(const struct task *t);
void program_step(const struct program *p, uint32_t rank, const struct task *t, uint32_t step, struct segment *out,
                  struct operand *a_out, struct operand *b_out);

/* Extents of a step's operands: GEMM a[m, k], b[n, k] or, with SwiGLU, b[2 n, k]; ATTENTION a[k, n], b[k, n]. */
struct extent {
    uint64_t rows, cols;
};
struct extent step_extent_a(const struct task *t, const struct segment *s);
struct extent step_extent_b(const struct task *t, const struct segment *s);

/* The i-th addend of a task of `rank`, on the rank that holds it. */
struct operand program_addend(const struct program *p, uint32_t rank, const struct task *t, uint32_t i);

/* Values of the index list for each row; 0 where the task has none. */
uint64_t program_index_terms(const struct task *t);

/* Elements of each row that is read by index. */
uint64_t program_index_cols(const struct task *t);

/* The wait that guards what index value `value` names; count 0: none. */
struct wait program_indexed_wait(const struct task *t, uint64_t value);

/* Makes t what the selected {group, first, rows} leave of it; SELECT_COUNT looks at rows alone. */
void program_select(struct task *t, uint64_t group, uint64_t first, uint64_t rows);

/* The counter value at which `w` is satisfied for flag w->flag + i in `epoch`; 0: at once. */
uint64_t program_wait_target(const struct program *p, uint32_t rank, const struct wait *w, uint32_t i, uint64_t epoch);

const struct flag_group *program_flag_group(const struct program *p, uint32_t flag);

size_t dtype_bytes(enum dtype d);
const char *dtype_name(enum dtype d);
uint64_t buffer_elements(const struct buffer *b);       /* of one epoch's copy */
uint64_t buffer_bytes(const struct buffer *b);          /* of all copies */
uint64_t program_window_bytes(const struct program *p); /* buffers of one rank, each 256-aligned */
/* In bytes.  Control buffers come first: a window of program_control_bytes() holds all of them. */
uint64_t program_buffer_offset(const struct program *p, uint32_t buffer, uint64_t epoch);
uint64_t program_control_bytes(const struct program *p);
bool buffer_is_control(const struct buffer *b);
uint64_t program_task_count(const struct program *p); /* over all ranks, one epoch */

/* The ranks a target means for a task of `rank`: [*first_out, *first_out + returned count). */
uint32_t program_target_ranks(const struct program *p, uint32_t rank, uint32_t target, uint32_t *first_out);

/* "gemm #402": written as `show` prints it. */
const char *op_name(enum op op);

#endif
