/* NCCL's collectives by themselves, for validation against published times. */
#ifndef BACKENDS_SIM_COLLECTIVE_H
#define BACKENDS_SIM_COLLECTIVE_H

#include "core/backend.h"

enum status collective_time(const struct collective_call *call, struct collective_times *out);

#endif
