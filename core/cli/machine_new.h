/* A machine file for a box that has none yet: the shipped machine of its GPU model, changed by what
 * is known of the box. */
#ifndef CORE_CLI_MACHINE_NEW_H
#define CORE_CLI_MACHINE_NEW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/machine/machine.h"

struct machine_request {
    const char *gpu;           /* "H200"; NULL: not known yet */
    const char *name;          /* NULL: one made of its parts, "h200-8x400" (model, NICs, Gb/s) */
    uint64_t gpus, nics, gbps; /* per node; 0: not known yet */
    bool nics_known;           /* 0 NICs may be meant */
    uint64_t nodes;            /* 0: as many as the shipped machine has, 1 without NICs */
    bool efa;
    char gpu_found[OPTION_TEXT_BYTES]; /* where machine_detect() keeps what `gpu` then points to */
};

/* Fills what is not known yet from nvidia-smi and /sys/class/infiniband.  ST_ENVIRONMENT (logged)
 * without a GPU. */
enum status machine_detect(struct machine_request *r);

/* Builds the machine and the comment for its head.  ST_INPUT (logged) for what cannot be. */
enum status machine_from_request(const struct machine_request *r, struct machine *out, char *origin,
                                 size_t origin_bytes);

/* Writes it to a file that is not there yet; `output` NULL: NAME.yaml, "-": standard output. */
enum status machine_save(const struct machine *m, const char *origin, const char *output);

#endif
