/* What the files of the JSON trace share: trace_chrome.c takes events, trace_chrome_tail.c writes what is known
 * only at the end. */
#ifndef CORE_TRACE_TRACE_CHROME_H
#define CORE_TRACE_TRACE_CHROME_H

#include "core/trace/trace.h"
#include "core/trace/trace_bins.h"
#include "core/trace/trace_file.h"

/* Sizes of lines that the tail consists of, rounded up. */
#define COUNTER_BYTES 110
#define THREAD_BYTES 128

struct chrome {
    struct trace head;
    const struct program *program;
    const char *backend;
    struct trace_file file;
    uint64_t limit_bytes; /* of the events that are written as they come */
    bool any;             /* an event has been written */

    uint64_t epochs, told_from, first_epoch; /* run; told; kept from then on */
    uint32_t rank_stride;
    bool folded;
    uint32_t crew_workers[PROGRAM_CREWS_MAX], crew_first[PROGRAM_CREWS_MAX];
    uint64_t end_ps, arrows, flights, dropped;

    struct trace_bins bins; /* by rank kept: links, then of each crew busy and waiting where folded */
    char note[TRACE_NOTE_BYTES];
};

static inline uint32_t chrome_ranks_kept(const struct chrome *c)
{
    return (uint32_t)ceil_div(world_ranks(c->program->world), c->rank_stride);
}

/* The first of a kept rank's series. */
uint32_t chrome_series(const struct chrome *c, uint32_t rank);

/* An event's first member, and its next ones; the rest is up to the caller. */
void chrome_event(struct chrome *c, const char *kind);
void chrome_at(struct chrome *c, uint32_t rank, uint32_t thread, uint64_t ps);

/* In this order. */
void chrome_describe(struct chrome *c);    /* what was left out */
void chrome_write_ranks(struct chrome *c); /* names and counters */
void chrome_write_metadata(struct chrome *c);

#endif
