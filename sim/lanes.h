/* Streams of one rank as a host drives them: work on a lane is done in the order of the calls, each once its lane is
 * free and what it waits for has come.  Times are picoseconds from the start of an iteration. */
#ifndef SIM_LANES_H
#define SIM_LANES_H

#include <stdint.h>

struct host_lane {
    double free_ps;  /* when the next call can be issued */
    double issue_ps; /* of each; 0 where the host's time does not count */
    uint32_t calls;  /* issued so far */
};

static inline double later_ps(double a_ps, double b_ps)
{
    return a_ps > b_ps ? a_ps : b_ps;
}

/* Runs on `*lane_ps` once that is free and `ready_ps` has come; returns the end. */
static inline double lane_run(struct host_lane *host, double *lane_ps, double ready_ps, uint32_t calls, double cost_ps)
{
    double issued_ps = host->free_ps;

    host->calls += calls;
    host->free_ps += (double)calls * host->issue_ps;
    *lane_ps = later_ps(*lane_ps, later_ps(ready_ps, issued_ps)) + cost_ps;
    return *lane_ps;
}

#endif
