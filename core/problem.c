#include "core/problem.h"

#include <stdio.h>
#include <string.h>

#define OPERAND_BYTES 2            /* bf16 */
#define EXTENT_MAX 1099511627776.0 /* 2^40 */
#define EXTENT .type = OPTION_COUNT, .min = 1, .max = EXTENT_MAX

uint32_t problem_key_count(const struct problem_family *f)
{
    uint32_t count = 0;

    while (f->keys[count].name)
        count++;
    return count;
}

static size_t value_bytes(const struct option *o)
{
    switch (o->type) {
    case OPTION_BOOL: return sizeof(bool);
    case OPTION_CHOICE: return sizeof(uint32_t);
    case OPTION_TEXT: return OPTION_TEXT_BYTES;
    default: return sizeof(uint64_t);
    }
}

bool problem_equal(const struct problem_family *f, const struct problem *a, const struct problem *b)
{
    for (const struct option *o = f->keys; o->name; o++)
        if (memcmp((const char *)a + o->offset, (const char *)b + o->offset, value_bytes(o)) != 0)
            return false;
    return true;
}

static const char *print_keys(const struct problem_family *f, const struct problem *p, uint32_t count,
                              char out[PROBLEM_TEXT_BYTES])
{
    size_t used = 0;
    char value[64];

    out[0] = '\0';
    for (uint32_t i = 0; i < count && used < PROBLEM_TEXT_BYTES; i++) {
        option_print(&f->keys[i], p, value, sizeof value);
        used +=
            (size_t)snprintf(out + used, PROBLEM_TEXT_BYTES - used, "%s%s %s", i ? " " : "", f->keys[i].name, value);
    }
    return out;
}

const char *problem_text(const struct problem_family *f, const struct problem *p, char out[PROBLEM_TEXT_BYTES])
{
    return print_keys(f, p, problem_key_count(f), out);
}

const char *problem_size_text(const struct problem_family *f, const struct problem *p, char out[PROBLEM_TEXT_BYTES])
{
    return print_keys(f, p, 1, out);
}

/* The product stays below 2^62. */
static bool product_fits(const uint64_t *factors, uint32_t count)
{
    const unsigned __int128 limit = (unsigned __int128)1 << 62;
    unsigned __int128 product = 1;

    for (uint32_t i = 0; i < count && product < limit; i++)
        product *= factors[i];
    return product < limit;
}

/* ---- GEMM ---- */

static const struct option gemm_keys[] = {
    {.name = "m",
     EXTENT,
     .offset = offsetof(struct problem, m),
     .help = "rows of the GEMM that each rank runs; m, n, k may refer to each other"},
    {.name = "n", EXTENT, .offset = offsetof(struct problem, n), .help = "its columns, for example m/16"},
    {.name = "k", EXTENT, .offset = offsetof(struct problem, k), .help = "its depth"},
    {0},
};

static const char *const gemm_check[] = {"256", "192", "128"};

static bool gemm_fits(const struct problem *p, struct world w, char *why, size_t why_bytes)
{
    uint64_t factors[] = {p->m, p->n, p->k, world_ranks(w)};

    if (product_fits(factors, 4))
        return true;
    snprintf(why, why_bytes,
             "m = %llu, n = %llu, k = %llu on %u ranks is too large; expected m * n * k * ranks below 2^62",
             (unsigned long long)p->m, (unsigned long long)p->n, (unsigned long long)p->k, world_ranks(w));
    return false;
}

static double gemm_flops(const struct problem *p, struct world w)
{
    (void)w;
    return 2.0 * (double)p->m * (double)p->n * (double)p->k;
}

static double gemm_gathered_bytes(const struct problem *p)
{
    return OPERAND_BYTES * (double)p->m * (double)p->k;
}

static double gemm_reduced_bytes(const struct problem *p)
{
    return OPERAND_BYTES * (double)p->m * (double)p->n;
}

const struct problem_family problem_gemm = {
    .name = "gemm",
    .keys = gemm_keys,
    .check = gemm_check,
    .fits = gemm_fits,
    .work = "the GEMM",
    .library = "NCCL + cuBLAS",
    .flops_formula = "2 * m * n * k",
    .flops = gemm_flops,
    .gathered_bytes = gemm_gathered_bytes,
    .reduced_bytes = gemm_reduced_bytes,
};

/* ---- attention ---- */

#define ATTENTION_KEY(key, ...)                                                                                        \
    {                                                                                                                  \
        .name = #key, .offset = offsetof(struct problem, attention.key), __VA_ARGS__                                   \
    }

static const struct option attention_keys[] = {
    ATTENTION_KEY(seq, EXTENT, .help = "positions of the sequence, over all ranks"),
    ATTENTION_KEY(batch, .type = OPTION_COUNT, .initial = "1", .min = 1, .max = 65536, .help = "sequences"),
    ATTENTION_KEY(heads, .type = OPTION_COUNT, .min = 1, .max = 65536, .help = "query heads"),
    ATTENTION_KEY(kv_heads, .type = OPTION_COUNT, .initial = "heads", .min = 1, .max = 65536,
                  .help = "heads of keys and values; each serves heads / kv_heads query heads"),
    ATTENTION_KEY(head_dim, .type = OPTION_COUNT, .initial = "128", .min = 64, .max = 128,
                  .help = "elements of a head: 64 or 128"),
    ATTENTION_KEY(causal, .type = OPTION_BOOL, .initial = "false",
                  .help = "whether a query sees only keys up to its own position"),
    {0},
};

static const char *const attention_check[] = {"192", "1", "2", "1", "64", "false"};

static bool attention_fits(const struct problem *p, struct world w, char *why, size_t why_bytes)
{
    const struct attention_problem *a = &p->attention;
    uint64_t factors[] = {a->batch, a->heads, a->seq, a->seq, a->head_dim, world_ranks(w)};

    if (a->heads % a->kv_heads != 0)
        snprintf(why, why_bytes, "heads = %llu is no multiple of kv_heads = %llu", (unsigned long long)a->heads,
                 (unsigned long long)a->kv_heads);
    else if (a->head_dim != 64 && a->head_dim != 128)
        snprintf(why, why_bytes, "head_dim = %llu; expected 64 or 128", (unsigned long long)a->head_dim);
    else if (!product_fits(factors, 6))
        snprintf(why, why_bytes,
                 "seq = %llu on %u ranks is too large; expected batch * heads * seq^2 * "
                 "head_dim * ranks below 2^62",
                 (unsigned long long)a->seq, world_ranks(w));
    else
        return true;
    return false;
}

static double attention_flops(const struct problem *p, struct world w)
{
    const struct attention_problem *a = &p->attention;
    double whole = 4.0 * (double)a->batch * (double)a->heads * (double)a->seq * (double)a->seq * (double)a->head_dim;

    return (a->causal ? whole / 2 : whole) / world_ranks(w);
}

static double attention_gathered_bytes(const struct problem *p)
{
    const struct attention_problem *a = &p->attention;

    return 2.0 * OPERAND_BYTES * (double)a->batch * (double)a->kv_heads * (double)a->seq * (double)a->head_dim;
}

const struct problem_family problem_attention = {
    .name = "attention",
    .keys = attention_keys,
    .check = attention_check,
    .fits = attention_fits,
    .work = "attention",
    .library = "NCCL + attention",
    .flops_formula = "4 * batch * heads * seq^2 * head_dim / ranks, half of it when causal",
    .flops = attention_flops,
    .gathered_bytes = attention_gathered_bytes,
};

/* ---- mixture of experts ---- */

#define MOE_KEY(key, ...)                                                                                              \
    {                                                                                                                  \
        .name = #key, .offset = offsetof(struct problem, moe.key), __VA_ARGS__                                         \
    }

static const struct option moe_keys[] = {
    MOE_KEY(tokens, EXTENT, .help = "tokens of an epoch, over all ranks"),
    MOE_KEY(hidden, EXTENT, .help = "elements of a token"),
    MOE_KEY(inter, EXTENT, .help = "columns of an expert's first GEMM, or of its gate and of its up projection"),
    MOE_KEY(experts, .type = OPTION_COUNT, .min = 1, .max = 65536, .help = "experts, over all ranks"),
    MOE_KEY(top_k, .type = OPTION_COUNT, .initial = "8", .min = 1, .max = 64, .help = "experts that a token goes to"),
    MOE_KEY(routing, .type = OPTION_CHOICE, .initial = "uniform", .choices = "uniform|skewed|hot|half",
            .help = "how tokens choose: all experts alike, some far likelier, all the same ones, no second "
                    "half"),
    MOE_KEY(capacity, .type = OPTION_NUMBER, .initial = "1.25", .min = 0.01, .max = 65536,
            .help = "rows that a rank has room for, over tokens * top_k / ranks"),
    MOE_KEY(overflow, .type = OPTION_CHOICE, .initial = "error", .choices = "error|drop",
            .help = "what becomes of rows beyond the capacity: the run fails, or they are dropped and counted"),
    {0},
};

static const char *const moe_check[] = {"96", "64", "48", "24", "3", "uniform", "2", "error"};

uint64_t moe_capacity_rows(const struct moe_problem *p, struct world world)
{
    uint64_t ranks = world_ranks(world);
    double wanted = p->capacity * (double)(p->tokens * p->top_k) / (double)ranks;
    uint64_t most = p->tokens * min_u64(p->top_k, ceil_div(p->experts, ranks));
    uint64_t rows = wanted < (double)most ? (uint64_t)wanted : most;

    return min_u64(most, max_u64(1, rows + ((double)rows < wanted)));
}

static bool moe_fits(const struct problem *p, struct world w, char *why, size_t why_bytes)
{
    const struct moe_problem *s = &p->moe;
    uint64_t factors[] = {s->tokens, s->top_k, s->hidden, s->inter, world_ranks(w)};
    uint64_t weights[] = {s->experts, s->inter, s->hidden};

    if (s->top_k > s->experts)
        snprintf(why, why_bytes, "top_k = %llu is more than the %llu experts", (unsigned long long)s->top_k,
                 (unsigned long long)s->experts);
    else if (!product_fits(factors, 5) || !product_fits(weights, 3) || s->tokens > UINT32_MAX / 64)
        snprintf(why, why_bytes,
                 "tokens = %llu on %u ranks is too large; expected tokens below 2^26 and "
                 "tokens * top_k * hidden * inter * ranks below 2^62",
                 (unsigned long long)s->tokens, world_ranks(w));
    else
        return true;
    return false;
}

static struct problem moe_rank_gemm(const struct problem *p, struct world w)
{
    const struct moe_problem *s = &p->moe;

    return (struct problem){.m = ceil_div(s->tokens * s->top_k, world_ranks(w)), .n = s->inter, .k = s->hidden};
}

static double moe_flops(const struct problem *p, struct world w)
{
    const struct moe_problem *s = &p->moe;

    return 2.0 * (double)(s->tokens * s->top_k) * (double)s->hidden * (double)s->inter / world_ranks(w);
}

static double moe_routed_bytes(const struct problem *p)
{
    return OPERAND_BYTES * (double)(p->moe.tokens * p->moe.top_k) * (double)p->moe.hidden;
}

/* Gate, up and down: three matrices of [inter, hidden]. */
#define FFN_MATRICES 3

static struct problem ffn_rank_gemm(const struct problem *p, struct world w)
{
    struct problem gemm = moe_rank_gemm(p, w);

    gemm.n *= FFN_MATRICES;
    return gemm;
}

static double ffn_flops(const struct problem *p, struct world w)
{
    return FFN_MATRICES * moe_flops(p, w);
}

static bool ffn_fits(const struct problem *p, struct world w, char *why, size_t why_bytes)
{
    struct problem tripled = *p;

    tripled.moe.inter *= FFN_MATRICES;
    return moe_fits(&tripled, w, why, why_bytes);
}

const struct problem_family problem_moe_ffn = {
    .name = "moe_ffn",
    .work = "the GEMMs",
    .library = "NCCL + cuBLAS",
    .keys = moe_keys,
    .check = moe_check,
    .fits = ffn_fits,
    .rank_gemm = ffn_rank_gemm,
    .flops_formula = "6 * tokens * top_k * hidden * inter / ranks",
    .flops = ffn_flops,
    .reduced_bytes = moe_routed_bytes,
};

const struct problem_family problem_moe = {
    .name = "moe",
    .work = "the GEMM",
    .library = "NCCL + cuBLAS",
    .keys = moe_keys,
    .check = moe_check,
    .fits = moe_fits,
    .rank_gemm = moe_rank_gemm,
    .flops_formula = "2 * tokens * top_k * hidden * inter / ranks",
    .flops = moe_flops,
    .reduced_bytes = moe_routed_bytes,
};
