/* Kernels that gather what other ranks own before they compute on it, ag_gemm.c and ring_attention.c: their
 * parameters, queues and crews. */
#ifndef KERNELS_GATHER_H
#define KERNELS_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/kernel.h"

/* The first member of a kernel's parameters. */
struct gather_params {
    uint64_t comm_sms, send_sms;
    uint64_t chunk_bytes;
    uint64_t depth;
    bool join;
};

#define GATHER_AT(member) offsetof(struct gather_params, member)

/* The rows at the head and at the end of both tables; `what` is gathered. */
/* clang-format off */
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
/* clang-format on */

/* UINT32_MAX: nobody to copy for, or to send to. */
struct gather_queues {
    uint32_t compute, copy, send;
};

/* Whether the GPU has workers left to compute. */
enum status gather_check_crews(const struct gather_params *params, struct world w, const struct machine *machine,
                               struct complaint *c);

/* Adds the queues, `copy_name` among them, and the crews that drain them.  Behind a `barrier` (the unfused form)
 * everybody copies, then everybody computes. */
void gather_add_crews(const struct gather_params *params, struct world w, bool barrier, uint32_t sms,
                      const char *copy_name, struct program *p, struct gather_queues *out);

#endif
