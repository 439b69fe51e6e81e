/* One line on stderr that says how far a run is; nothing unless stderr is a terminal. */
#ifndef CORE_CLI_PROGRESS_H
#define CORE_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool shown;
    const char *what; /* "checks", "points" */
    uint64_t start_ns;
};

void progress_begin(struct progress *p, const char *what, bool quiet);
void progress_update(void *progress, uint64_t finished, uint64_t total); /* fits run_config.progress */
void progress_end(struct progress *p);                                   /* wipes the line */

#endif
