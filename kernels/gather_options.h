/* Parameters of kernels that gather what other ranks own before they compute on it: ag_gemm.c, ring_attention.c. */
#ifndef KERNELS_GATHER_OPTIONS_H
#define KERNELS_GATHER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of a kernel's parameters. */
struct gather_params {
    uint64_t comm_sms, send_sms;
    uint64_t chunk_bytes;
    uint64_t depth;
    bool     join;
};

#define GATHER_AT(member) offsetof(struct gather_params, member)

/* The rows at the head and at the end of both tables; `what` is gathered. */
#define GATHER_OPTIONS(what)                                                                              \
    {"comm_sms", OPTION_COUNT, GATHER_AT(comm_sms), "8", 1, 1024, "1|2|4|8|16|32",                        \
     "workers that copy within the node"},                                                                \
    {"send_sms", OPTION_COUNT, GATHER_AT(send_sms), "1", 1, 64, "1|2|4",                                  \
     "workers that issue puts to other nodes (none with one node)"},                                      \
    {"chunk", OPTION_SIZE, GATHER_AT(chunk_bytes), "1MiB", 1, 1ull << 32,                                 \
     "128KiB|256KiB|512KiB|1MiB|2MiB|4MiB|8MiB",                                                          \
     "bytes of " what " per copy and per put, rounded to whole rows"}

#define GATHER_LAST_OPTIONS(what)                                                                         \
    {"depth", OPTION_COUNT, GATHER_AT(depth), "2", 1, 8, NULL,                                            \
     "copies of the buffer of gathered " what ", used in turn by epochs"},                                \
    {"join", OPTION_BOOL, GATHER_AT(join), "true", 0, 0, "false|true",                                    \
     "copying workers compute when they have nothing left to copy"}

#endif
