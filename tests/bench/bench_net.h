/* What bench_net times: members of two, each a function of local_run() that leaves member 0's figure in
 * *figure, which the parent shares with its children. */
#ifndef BENCH_NET_H
#define BENCH_NET_H

#include "backends/net/bootstrap_local.h"
#include "member.h"

#define BENCH_BYTES (1u << 20)
#define BENCH_DEPTH 16      /* writes on their way */
#define BENCH_PING_DEPTH 64 /* as a rank's queue of commands has by default */

struct bench {
    struct setting setting;
    uint32_t turn;
    uint32_t puts, rounds; /* for bandwidth; for latency */
    bool one_sided;        /* as ib_write_bw: the receiver may sleep, and all puts are of the same bytes */
    bool delivered;        /* the plain library, too, waits for the delivery of each write */
    double *figure;        /* MB/s (1e6); us one way */
};

/* The transport: puts of 1 MiB, each with its flag; 8 B and a flag there and back; one of 8 B at a time. */
local_member_fn bench_put_bandwidth, bench_put_latency, bench_put_completion;

/* What one would write by hand with libfabric: a loop of writes, the last one delivered; writes with data there and
 * back; one at a time.  They complete as `delivered` says, else where the provider finds that enough. */
local_member_fn bench_plain_bandwidth, bench_plain_latency, bench_plain_completion;

/* ib_write_bw of perftest, with as many writes on their way; waits for what it writes. */
local_member_fn bench_perftest_bandwidth;
bool perftest_is_there(void);

#endif
