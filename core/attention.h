/* Where queries, keys, values and results of a sequence-parallel attention stand in the global tensors.
 *
 * The sequence is cut into `stripes` nearly equal runs of positions, two per rank; which two a rank owns is
 * the kernel's choice.  Tensors have head_dim columns, and rows stripe by stripe, within a stripe head by
 * head (of all sequences: head = sequence * heads + head), within a head position by position:
 *   TENSOR_Q, TENSOR_O   [batch * heads * seq, head_dim]
 *   TENSOR_KV            [2 * batch * kv_heads * seq, head_dim], of each head first its keys, then its values
 * So one rank's share of a tensor is two runs of rows, and one head's share of a stripe is one. */
#ifndef CORE_ATTENTION_H
#define CORE_ATTENTION_H

#include "core/problem.h"
#include "core/world.h"

enum attention_side { SIDE_QUERIES, SIDE_KEYS, SIDE_VALUES };

/* One row of a tensor. */
struct attention_place {
    enum attention_side side;
    uint64_t head;     /* query head or head of keys and values, over all sequences */
    uint64_t position; /* in the sequence */
    uint64_t left;     /* rows from this one on that belong to the same head, side and stripe */
};

static inline uint64_t attention_stripe_begin(const struct attention_problem *a, uint64_t stripe)
{
    return part_begin(a->seq, a->stripes, stripe);
}

static inline uint64_t attention_stripe_size(const struct attention_problem *a, uint64_t stripe)
{
    return part_size(a->seq, a->stripes, stripe);
}

/* Rows of a tensor per position. */
uint64_t attention_query_rows(const struct attention_problem *a);
uint64_t attention_key_rows(const struct attention_problem *a); /* keys and values */

/* First row of a head's share of a stripe.  `head` counts over all sequences. */
uint64_t attention_row_of_queries(const struct attention_problem *a, uint64_t stripe, uint64_t head);
uint64_t attention_row_of_keys(const struct attention_problem *a, uint64_t stripe, uint64_t head);

/* The other way round. */
struct attention_place attention_query_at(const struct attention_problem *a, uint64_t row);
struct attention_place attention_key_at(const struct attention_problem *a, uint64_t row);

/* The head of keys and values that a query head uses. */
uint64_t attention_key_head(const struct attention_problem *a, uint64_t query_head);

/* How many keys, from the first on, the query at `position` sees. */
uint64_t attention_keys_seen(const struct attention_problem *a, uint64_t position);

#endif
