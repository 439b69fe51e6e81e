/* A machine file for a box that has none yet: the shipped machine of its GPU model, changed by what
 * is known of the box. */
#ifndef CORE_CLI_MACHINE_NEW_H
#define CORE_CLI_MACHINE_NEW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/machine/machine.h"

struct machine_request {
    char     gpu[OPTION_TEXT_BYTES]; /* "H200"; "": not known yet */
    uint64_t gpus, nics, gbps;       /* per node; 0: not known yet */
    bool     nics_known;             /* 0 NICs may be meant */
    uint64_t nodes;                  /* 0: as many as the shipped machine has, 1 without NICs */
    bool     efa;
    char     name[OPTION_TEXT_BYTES];
};

/* Fills what is not known yet from nvidia-smi and /sys/class/infiniband.  ST_ENVIRONMENT (logged)
 * without a GPU. */
enum status machine_detect(struct machine_request *r);

/* Builds the machine and the comment for its head.  ST_INPUT (logged) for what cannot be. */
enum status machine_from_request(const struct machine_request *r, struct machine *out, char *origin,
                                 size_t origin_bytes);

/* Gives it a name made of its parts if it has none: "h200-8x400" (model, NICs, Gb/s). */
void machine_request_name(struct machine_request *r);

#endif
