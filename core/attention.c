#include "core/attention.h"

uint64_t attention_query_rows(const struct attention_problem *a)
{
    return a->batch * a->heads;
}

uint64_t attention_key_rows(const struct attention_problem *a)
{
    return 2 * a->batch * a->kv_heads;
}

uint64_t attention_row_of_queries(const struct attention_problem *a, uint64_t stripe, uint64_t head)
{
    return attention_query_rows(a) * attention_stripe_begin(a, stripe) + head * attention_stripe_size(a, stripe);
}

uint64_t attention_row_of_keys(const struct attention_problem *a, uint64_t stripe, uint64_t head)
{
    return attention_key_rows(a) * attention_stripe_begin(a, stripe) + 2 * head * attention_stripe_size(a, stripe);
}

static uint64_t stripe_of(const struct attention_problem *a, uint64_t position)
{
    uint64_t low = 0, high = a->stripes; /* begin(low) <= position < begin(high) */

    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;

        if (attention_stripe_begin(a, middle) <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Within its stripe a row stands in unit `row / size`: a head of queries, or keys or values of a head. */
static struct attention_place place(const struct attention_problem *a, uint64_t row, uint64_t rows, uint64_t *unit_out)
{
    uint64_t stripe = stripe_of(a, row / rows), begin = attention_stripe_begin(a, stripe);
    uint64_t size = attention_stripe_size(a, stripe), within = row - rows * begin;

    *unit_out = within / size;
    return (struct attention_place){.position = begin + within % size, .left = size - within % size};
}

struct attention_place attention_query_at(const struct attention_problem *a, uint64_t row)
{
    uint64_t unit;
    struct attention_place p = place(a, row, attention_query_rows(a), &unit);

    p.side = SIDE_QUERIES;
    p.head = unit;
    return p;
}

struct attention_place attention_key_at(const struct attention_problem *a, uint64_t row)
{
    uint64_t unit;
    struct attention_place p = place(a, row, attention_key_rows(a), &unit);

    p.side = unit % 2 ? SIDE_VALUES : SIDE_KEYS;
    p.head = unit / 2;
    return p;
}

uint64_t attention_key_head(const struct attention_problem *a, uint64_t query_head)
{
    uint64_t sequence = query_head / a->heads, head = query_head % a->heads;

    return sequence * a->kv_heads + head / (a->heads / a->kv_heads);
}

uint64_t attention_keys_seen(const struct attention_problem *a, uint64_t position)
{
    return a->causal ? position + 1 : a->seq;
}
