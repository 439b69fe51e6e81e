/* Max-min fair sharing once more, serial and obvious: the engine's flow times must equal these. */
#ifndef TESTS_UNIT_MAXMIN_ORACLE_H
#define TESTS_UNIT_MAXMIN_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#define ORACLE_LINKS_MAX 128
#define ORACLE_ROUTE_MAX 9

struct oracle_flow {
    double start, bytes, rate_bound; /* seconds; rate_bound 0: none */
    uint32_t links[ORACLE_ROUTE_MAX];
    uint32_t link_count;
    double end; /* out: when the last byte has left the links */
    double left, rate;
    bool fixed;
};

void oracle_run(const double *link_rates, uint32_t link_count, struct oracle_flow *flows, uint32_t flow_count);

#endif
