#include "fake_registry.h"

#define ROW(key, kind, member, ...)                                                                                    \
    {                                                                                                                  \
        .name = key, .type = OPTION_##kind, .offset = offsetof(struct fake_params, member), __VA_ARGS__                \
    }

static const struct option params[] = {
    ROW("comm_sms", COUNT, comm_sms, .initial = "8", .min = 1, .max = 132, .help = "CTAs that copy"),
    ROW("chunk", SIZE, chunk, .initial = "1MiB", .min = 1, .max = 1e12, .help = "bytes of a copy"),
    ROW("tile", COUNT, tile, .initial = "m/ranks", .min = 1, .max = 1e9, .help = "rows of a tile"),
    ROW("join", BOOL, join, .initial = "false", .help = "copying CTAs then compute"),
    ROW("order", CHOICE, order, .initial = "ring", .choices = "ring|direct", .help = "of pieces"),
    {0},
};

static const struct kernel ag_gemm = {
    .name = "ag_gemm", .family = &problem_gemm, .options = params, .params_size = sizeof(struct fake_params)};
static const struct kernel gemm_rs = {
    .name = "gemm_rs", .family = &problem_gemm, .options = params + 1, .params_size = sizeof(struct fake_params)};
static const struct kernel attention = {.name = "attention",
                                        .family = &problem_attention,
                                        .options = params + 4,
                                        .params_size = sizeof(struct fake_params)};

static const struct option options[] = {
    {.name = "timeout",
     .type = OPTION_TIME,
     .offset = offsetof(struct fake_options, timeout_ps),
     .initial = "30s",
     .help = "without progress"},
    {0},
};

static const struct backend sim = {.name = "sim", .options = options, .options_size = sizeof(struct fake_options)};
static const struct backend cpu = {.name = "cpu", .options = options, .options_size = sizeof(struct fake_options)};

static const struct kernel *const kernels[] = {&ag_gemm, &gemm_rs, &attention, NULL};
static const struct backend *const backends[] = {&sim, &cpu, NULL};

const struct registry fake_registry = {.kernels = kernels, .backends = backends};
