/* Looks for the fastest way to solve each problem of a scenario, on its backend: which program (fused or not) and
 * which parameters, or whether a baseline is faster still.  docs/tuning.md.
 *
 * The space.  An axis per parameter of the kernel: the values its option row offers (struct option, `choices`) and
 *   those that the scenario's own points hold; what has one value is no axis.  The form, fused or unfused, is one more.
 * The search.  First the scenario's own points and the baselines; then a spread, a Latin hypercube drawn from the
 *   seed, in which every value of every axis occurs about as often; then, for each form, axis by axis all values
 *   beside the form's best found so far, until a whole round finds nothing better.  Last, what makes no difference (0.1
 *   %) goes back, axis by axis, to what the scenario says.
 * The budget.  `points` bounds the programs timed per problem, and the result depends on scenario and seed alone.
 *   `time_ns` bounds real time: what is found in it depends on the computer. */
#ifndef CORE_TUNE_TUNE_H
#define CORE_TUNE_TUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/run/plan.h"
#include "core/run/run.h"

#define TUNE_AXES_MAX 32
#define TUNE_VALUES_MAX 16

struct tune_axis {
    const struct option *option; /* NULL: the form */
    uint32_t count;
    char values[TUNE_VALUES_MAX][OPTION_TEXT_BYTES]; /* as option_print() writes them */
};

struct tune_space {
    const struct point *model; /* what is no axis stays as it is here */
    uint32_t axis_count;
    struct tune_axis axes[TUNE_AXES_MAX];
};

/* By axis, which of its values. */
struct tune_place {
    uint8_t at[TUNE_AXES_MAX];
};

/* `points` are those of one problem, baselines among them; at least one is a program.  False: more axes or values
 * than the limits above. */
bool tune_space_create(const struct point *const *points, uint64_t count, struct tune_space *out);
/* Where a program's point stands. */
struct tune_place tune_space_place(const struct tune_space *s, const struct point *p);
/* Makes *p, a copy of the model with parameters of its own, stand there. */
void tune_space_apply(const struct tune_space *s, struct tune_place place, struct point *p);

/* Why a search ended. */
enum tune_end {
    TUNE_SETTLED, /* no single change makes the best one of either form faster */
    TUNE_POINTS,  /* the points are used up */
    TUNE_TIME,    /* so is the time */
};

#define TUNE_NONE UINT64_MAX

struct tune_problem {
    struct tune_space space;
    enum tune_end end;
    uint64_t timed;   /* programs, the scenario's own included */
    uint64_t refused; /* parameters that the kernel or the memory does not take */
    /* Indices of tune.units; TUNE_NONE: there is none. */
    uint64_t start;                  /* the scenario's own fastest program */
    uint64_t program, nccl, streams; /* the fastest of each; of programs within 0.1 % the plainest */
    uint64_t best;                   /* the fastest of all */
};

struct tune {
    const struct scenario *scenario;
    struct run_unit *units; /* everything that was timed, problem by problem */
    uint64_t unit_count;
    struct tune_problem *problems;
    uint64_t problem_count;
};

struct tune_config {
    uint64_t points, time_ns; /* 0: no such bound; at least one is given */
    uint64_t seed;
    struct run_config run;
};

/* ST_INPUT (logged): a problem has no program to start from, or the space is too large.  ST_INTERRUPTED: *out holds
 * the problems before.  A program that hangs or fails ends the search; its status, and its report in the last unit. */
enum status tune_run(const struct scenario *s, const struct tune_config *config, struct tune *out);
void tune_destroy(struct tune *t); /* safe on a zeroed one */

/* Median, ps; 0: has none. */
uint64_t tune_time_ps(const struct run_unit *u);

/* "settled", "points", "time": as records say it. */
const char *tune_end_name(enum tune_end e);

#endif
