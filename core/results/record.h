/* What a result file holds: one JSON object a line, docs/results.md describes each.
 *
 * Every function returns a line without its end, to be freed by the caller. */
#ifndef CORE_RESULTS_RECORD_H
#define CORE_RESULTS_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/results/compare.h"
#include "core/host.h"
#include "core/run/nodes.h"
#include "core/run/run.h"
#include "core/scenario/scenario.h"
#include "core/tune/tune.h"

#define RECORD_SCHEMA 1

char *record_run(const struct scenario *s, const struct host *host, const struct nodes *nodes, int argc,
                 char *const *argv);
char *record_check(const struct scenario *s, const struct run_unit *check);
char *record_point(const struct scenario *s, const struct compare *c, uint64_t index);
/* The answer of problem `index`; `seed` is of the search's spread. */
char *record_tuned(const struct tune *t, uint64_t index, uint64_t seed);
char *record_end(uint64_t points, uint64_t failed, bool interrupted);

/* "fused", "unfused", "nccl", "streams" */
const char *record_program_name(enum program_choice p);
/* "isolated", "pipelined" */
const char *record_mode_name(enum timing_mode m);

/* "2026-11-30T23:28:57Z", or with `compact` "20261130T232857Z" */
void record_date(bool compact, char *out, size_t out_bytes);

#endif
