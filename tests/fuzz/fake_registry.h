/* Three kernels, of two families, and two backends that do nothing but own option tables. */
#ifndef TESTS_FUZZ_FAKE_REGISTRY_H
#define TESTS_FUZZ_FAKE_REGISTRY_H

#include "core/scenario/scenario.h"

enum fake_order { FAKE_RING, FAKE_DIRECT };

/* Parameters of "ag_gemm"; "gemm_rs" has all but comm_sms, "attention" only `order`. */
struct fake_params {
    uint64_t comm_sms, chunk, tile;
    bool join;
    uint32_t order;
};

struct fake_options { /* of both backends */
    uint64_t timeout_ps;
};

extern const struct registry fake_registry;

#endif
