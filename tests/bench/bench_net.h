/* What bench_net times: members of two, each a function of local_run() that leaves member 0's figure in
 * *figure, which the parent shares with its children. */
#ifndef BENCH_NET_H
#define BENCH_NET_H

#include "backends/net/bootstrap_local.h"
#include "member.h"

#define BENCH_BYTES (1u << 20)
#define BENCH_DEPTH 16 /* writes on their way */

struct bench {
    struct setting setting;
    uint32_t       puts, rounds; /* for bandwidth; for latency */
    double        *figure; /* MB/s (1e6); us one way */
};

/* The transport: puts of 1 MiB, each with its flag; 8 B and a flag there and back. */
local_member_fn bench_put_bandwidth, bench_put_latency;

/* The least one can write with libfabric for the same: fi_write, complete where the provider finds
 * that enough, the last one delivered; fi_writedata there and back. */
local_member_fn bench_plain_bandwidth, bench_plain_latency;

#endif
