/* What `show` prints. */
#ifndef CORE_CLI_SHOW_H
#define CORE_CLI_SHOW_H

#include <stdint.h>
#include <stdio.h>

#include "core/scenario/scenario.h"

#define SHOW_ALL_TASKS UINT64_MAX

/* The resolved scenario: keys that all points share, then each point's own, or counts where there are many
 * points. */
void show_points(const struct scenario *s, FILE *f);

/* One rank's program: buffers, flags, crews, and the first `tasks` tasks of each queue. */
void show_program(const struct program *p, uint32_t rank, uint64_t tasks, FILE *f);

/* All ranks' tasks as a Graphviz graph: solid edges from a signal to the waits that need it, dashed ones
 * along each queue.  ST_INPUT, logged, when the program is too large to look at. */
enum status show_dot(const struct program *p, FILE *f);

#endif
